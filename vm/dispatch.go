package vm

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// Dispatcher is the one way that a syscall is called. It checks arguments,
// releases the VM's lock where the call waits, names and redacts errors, and
// journals. There is one for each run.
type Dispatcher struct {
	host   *Host
	engine Engine
	replay Replay // nil on a live run
	calls  atomic.Int64
	// digest hashes arguments that are not kept (RecordResult).
	digest func([]Value) string
	// kindOf gives the error kind of a host error that is no *Error.
	kindOf func(error) (kind, message string)
}

// NewDispatcher returns the dispatcher of one run. digest and kindOf come from
// above, since vm knows neither log JSON nor the kernel's errors.
func NewDispatcher(h *Host, e Engine, digest func([]Value) string, kindOf func(error) (string, string)) *Dispatcher {
	d := &Dispatcher{host: h, engine: e, digest: digest, kindOf: kindOf}
	d.replay, _ = h.Journal.(Replay)
	return d
}

// Call runs one function of namespace ns for the task in ctx, which holds the
// lock; self is the object of a method. Errors are *Error, *Exit or *Fault.
func (d *Dispatcher) Call(ctx context.Context, ns string, fn *Function, self *Object, args []Value) ([]Value, error) {
	checked, err := checkArgs(fn.Params, args)
	if err != nil {
		return nil, d.name(ns, fn, err)
	}
	task := TaskOf(ctx)
	c := &Call{Args: checked, Self: self, Host: d.host, Engine: d.engine, Task: task, dispatch: d, ns: ns, fn: fn}
	if d.host.Journal == nil || fn.Effect == Pure && !fn.Waits {
		out, _, err := d.invoke(ctx, fn, c)
		if err != nil {
			return nil, d.name(ns, fn, err)
		}
		return out, nil
	}
	task.calls++
	entry := Entry{Task: task.ID, K: task.calls, Name: ns + "." + fn.Name, Tool: inTool(ctx)}
	if fn.Effect == Pure || fn.Record == RecordNone || fn.Record == RecordError {
		entry.Again = true
		return d.repeat(ctx, fn, c, entry)
	}
	return d.kept(ctx, fn, c, entry)
}

// kept carries a call out whose outcome the journal keeps, or gives the one that it has.
func (d *Dispatcher) kept(ctx context.Context, fn *Function, c *Call, entry Entry) ([]Value, error) {
	entry.N, entry.Mark = d.calls.Add(1), fn.Record == RecordMark
	switch fn.Record {
	case RecordFull:
		entry.Args = c.Args
	case RecordResult:
		entry.Hash = d.digest(c.Args)
	}
	if old, ok, err := d.answer(ctx, entry); err != nil {
		return nil, err
	} else if ok {
		return d.as(ctx, fn, c, old)
	}
	if !entry.Mark && fn.Waits {
		entry.Args = slices.Clone(entry.Args) // with the script's own functions
		c.stepping = true
		c.watchCallbacks()
	}
	out, _, err := d.invoke(ctx, fn, c)
	if err != nil {
		err = d.name(c.ns, fn, err)
		var e *Error
		if errors.As(err, &e) {
			entry.Err = e
		} else {
			// It ended the run: it has neither a result nor an error that a script saw.
			entry.Mark, entry.Args = true, nil
		}
	}
	if !entry.Mark {
		entry.Result, entry.Steps = out, c.stepped()
	}
	d.host.Journal.Record(entry)
	return out, err
}

// repeat carries a call out, on a replay too. What the journal keeps of it is that it
// failed for a reason outside of the run, which a replay would not meet.
func (d *Dispatcher) repeat(ctx context.Context, fn *Function, c *Call, entry Entry) ([]Value, error) {
	if old, ok, err := d.answer(ctx, entry); err != nil {
		return nil, err
	} else if ok {
		c.Task.calls += old.Notes // which it does not make now
		return d.as(ctx, fn, c, old)
	}
	out, interrupted, err := d.invoke(ctx, fn, c)
	if err == nil {
		return out, nil
	}
	err = d.name(c.ns, fn, err)
	var e *Error
	// Where functions of the script ran, they have entries of their own.
	if errors.As(err, &e) && (interrupted || fn.Record == RecordError || chance(e.Kind)) && c.Task.calls == entry.K+c.notes && e.Value == nil {
		entry.N, entry.Err, entry.Notes = d.calls.Add(1), e, c.notes
		d.host.Journal.Record(entry)
	}
	return nil, err
}

// chance reports whether an error of this kind may not come again in the same place.
func chance(kind string) bool {
	switch kind {
	case "busy", "storage", "corruption", "cancelled", "timeout":
		return true
	}
	return false
}

// answer asks a replay. A call that never returned waits here for the end.
func (d *Dispatcher) answer(ctx context.Context, now Entry) (old Entry, ok bool, err error) {
	if d.replay == nil {
		return old, false, nil
	}
	old, ok, err = d.replay.Answer(now)
	switch {
	case errors.Is(err, ErrNeverReturned):
		d.engine.Release(ctx)
		defer d.engine.Acquire(ctx)
		<-ctx.Done()
		return old, false, context.Cause(ctx)
	case err != nil:
		return old, false, &Fault{Err: err}
	}
	return old, ok, nil
}

// as gives what came of a recorded call, in the state of the lock in which it was made.
func (d *Dispatcher) as(ctx context.Context, fn *Function, c *Call, old Entry) ([]Value, error) {
	if fn.Waits {
		d.engine.Release(ctx)
		defer d.engine.Acquire(ctx)
	}
	out, err := c.again(ctx, old)
	if err != nil {
		return nil, d.name(c.ns, fn, err)
	}
	return out, nil
}

// Cut marks that a function of the script was cut while it ran, for a bound of its own:
// at which instruction nobody knows, so that no replay can do it again.
func (d *Dispatcher) Cut(task *Task, where string) {
	if d.host.Journal != nil && task != nil {
		d.host.Journal.Record(Entry{N: d.calls.Add(1), Task: task.ID, Name: "cut " + where, Mark: true})
	}
}

// invoke calls the implementation; interrupted reports that its wait was ended from
// outside. On a replay nothing is: what was interrupted then has its entry.
func (d *Dispatcher) invoke(ctx context.Context, fn *Function, c *Call) (out []Value, interrupted bool, err error) {
	if !fn.Waits {
		out, err = fn.Impl(ctx, c)
		return out, false, err
	}
	d.engine.Release(ctx)
	defer d.engine.Acquire(ctx)
	wait, done := ctx, func() {}
	if d.replay == nil {
		wait, done = interruptible(ctx)
	}
	defer done()
	out, err = fn.Impl(wait, c)
	return out, wait.Err() != nil, err
}

// name puts namespace and function on an error, gives it a kind, and redacts it.
func (d *Dispatcher) name(ns string, fn *Function, err error) error {
	var exit *Exit
	var fault *Fault
	if errors.As(err, &exit) || errors.As(err, &fault) {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		named := *e
		if named.Namespace == "" && named.Kind != "" {
			named.Namespace, named.Function = ns, fn.Name
		}
		named.Message = d.host.Redact(named.Message)
		return &named
	}
	kind, msg := d.kindOf(err)
	return &Error{Namespace: ns, Function: fn.Name, Kind: kind, Message: d.host.Redact(msg), Cause: err}
}
