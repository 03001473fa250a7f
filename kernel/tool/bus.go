package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/kernel"
)

// Call is one tool call on its way through the bus.
type Call struct {
	Session string // the session that records it; "" for a call by a script
	ID      string // the model's id of the call; "" for a call by a script
	Beat    string
	Name    string
	Args    map[string]any
	Tool    *Tool  // the tool, where the caller brings it; nil: looked up in the registry
	Refusal string // a decision that was taken already: the call is recorded and not run
	// RefusalKind is the kind of Refusal: denied where it is empty.
	RefusalKind string
	Record      Recorder
}

// Result is what came of a call.
type Result struct {
	OK        bool
	Value     any        // what the handler returned, whole
	Model     any        // what the model sees: redacted, valid text, bounded
	Kind      string     // of a failure: denied, not_found, validation, timeout, cancelled, failed, budget
	Truncated *Truncated // set when Model is not the whole
	Sanitised bool       // text had to be made valid
	Raw       string     // the hash that the raw bytes of such a text are kept under
	Duration  time.Duration
}

// Truncated says how much there was, and under which hash the whole is kept.
type Truncated struct {
	Bytes  int
	Handle string
}

// Recorder keeps intent and outcome of calls. A session's recorder writes
// tool_call and tool_result; nil records nothing.
type Recorder interface {
	// Intent reserves one unit of tool_calls, where that tag is bounded, and records
	// the call. An error of kind Refused means that the quota does not cover it: the
	// recorder has then recorded the call as not run.
	Intent(ctx context.Context, c Call) error
	// Outcome records what came of a call whose intent was recorded.
	Outcome(ctx context.Context, c Call, r Result) error
	// Refuse records a call and its refusal together.
	Refuse(ctx context.Context, c Call, r Result) error
	// Keep keeps bytes by their hash.
	Keep(ctx context.Context, b []byte) (hash string, err error)
}

// Interceptor may change a call's arguments or refuse it, before the gate.
type Interceptor func(ctx context.Context, c Call) (args map[string]any, refusal string, err error)

// Gate decides whether a call may run now. A refusal is its reason; an error ends
// the run's turn (an approval that must be waited for).
type Gate func(ctx context.Context, c Call) (refusal string, err error)

// Observer sees calls and results as they happen, for the event stream.
type Observer interface {
	ToolCalled(c Call)
	ToolEnded(c Call, r Result)
}

// Bus executes tools. Its fields are set before the first call.
type Bus struct {
	Registry     *Registry
	Interceptors []Interceptor
	Gates        []Gate
	Observer     Observer            // may be nil
	Redact       func(string) string // over every text of a result; required
	Now          func() time.Time    // required
	Warn         func(string)        // what the host should know: an unusable schema (once), a panic; required
	schemas      schemas
}

// BudgetText is the result of a call that the quota did not cover.
const BudgetText = "not run: budget"

// HandlerGrace is how long a handler may take to return after its bound passed or
// its call was cancelled. One that takes longer is left behind: its call has failed,
// and what it may still do is unknown.
const HandlerGrace = 2 * time.Second

// Dispatch takes one call through the bus. Its error is one of the host or the
// record (the outcome could not be recorded, the run ended); what goes wrong with
// the call itself is a Result with OK false.
func (b *Bus) Dispatch(ctx context.Context, c Call) (Result, error) {
	start := b.Now()
	refusal, err := b.decide(ctx, &c)
	if err != nil {
		return Result{}, err
	}
	if refusal != nil {
		return *refusal, b.refuse(ctx, c, *refusal)
	}
	if c.Record != nil {
		err := c.Record.Intent(ctx, c)
		if errors.Is(err, kernel.Refused) {
			r := Result{Model: BudgetText, Value: BudgetText, Kind: "budget"}
			b.observe(c, &r)
			return r, nil
		}
		if err != nil {
			return Result{}, err
		}
	}
	b.observe(c, nil)
	value, runErr := b.run(ctx, c)
	r := b.result(ctx, c, value, runErr)
	r.Duration = b.Now().Sub(start)
	if c.Record != nil {
		// A run that is being cut still records what came of the call.
		if err := c.Record.Outcome(context.WithoutCancel(ctx), c, r); err != nil {
			return r, err
		}
	}
	if b.Observer != nil {
		b.Observer.ToolEnded(c, r)
	}
	return r, nil
}

// decide takes every decision about a call; a refusal is a finished Result. What
// panics while it decides is an error: no call runs undecided.
func (b *Bus) decide(ctx context.Context, c *Call) (refusal *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			refusal, err = nil, kernel.Errorf("tool."+c.Name, kernel.Internal, "a decision about the call panicked: %v", p)
		}
	}()
	refused := func(kind, format string, args ...any) *Result {
		text := b.Redact(fmt.Sprintf(format, args...))
		return &Result{Value: text, Model: text, Kind: kind}
	}
	if c.Args == nil {
		c.Args = map[string]any{}
	}
	if c.Refusal != "" {
		return refused(cmp.Or(c.RefusalKind, "denied"), "%s", c.Refusal), nil
	}
	if c.Tool == nil {
		t, ok := b.Registry.Get(c.Name)
		if !ok {
			return refused("not_found", "tool '%s' not found", c.Name), nil
		}
		c.Tool = &t
	}
	const misfit = "the arguments of '%s' do not fit its schema: %s"
	if problem := b.schemas.check(c.Tool.Contract, c.Args, b.Warn); problem != "" {
		return refused("validation", misfit, c.Name, problem), nil
	}
	for _, intercept := range b.Interceptors {
		args, reason, err := intercept(ctx, *c)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			return refused("denied", "%s", reason), nil
		}
		if args == nil {
			continue
		}
		if problem := b.schemas.check(c.Tool.Contract, args, b.Warn); problem != "" {
			return refused("validation", misfit, c.Name, problem), nil
		}
		c.Args = args
	}
	for _, gate := range b.Gates {
		shown := *c
		shown.Args = copied(c.Args) // a gate looks; it changes nothing
		reason, err := gate(ctx, shown)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			return refused("denied", "%s", reason), nil
		}
	}
	return nil, nil
}

// copied copies a value's lists and objects.
func copied[T any](v T) T {
	switch x := any(v).(type) {
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, e := range x {
			m[k] = copied(e)
		}
		return any(m).(T)
	case []any:
		l := make([]any, len(x))
		for i, e := range x {
			l[i] = copied(e)
		}
		return any(l).(T)
	}
	return v
}

func (b *Bus) refuse(ctx context.Context, c Call, r Result) error {
	if c.Record != nil {
		if err := c.Record.Refuse(ctx, c, r); err != nil {
			return err
		}
	}
	b.observe(c, &r)
	return nil
}

func (b *Bus) observe(c Call, r *Result) {
	if b.Observer == nil {
		return
	}
	b.Observer.ToolCalled(c)
	if r != nil {
		b.Observer.ToolEnded(c, *r)
	}
}
