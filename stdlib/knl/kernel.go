package knl

import (
	"context"
	"math"
	"sync"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/tool"
	"ashlar/vm"
)

// MicroUSD is how many units of the tag cost are one USD: grants and flags are in
// USD, events and balances in these.
const MicroUSD = 1_000_000

// Kernel is what the namespace needs of its run. Its fields are set before the
// first call.
type Kernel struct {
	// Book gives the sessions of a store option: nil, "mem" or {sqlite = path}.
	Book func(ctx context.Context, store vm.Value) (*session.Book, error)
	Bus  *tool.Bus
	IDs  *ident.Source
	Now  func() time.Time
	// Labels are merged into the opening meta of every session; the script's own
	// meta wins.
	Labels map[string]any
	// Emit sends a fact to the event stream: it must not wait.
	Emit func(typ, session, beat string, fields map[string]any)
	// Price gives what a model costs; ok is false where nobody has said. nil knows none.
	Price func(provider, model string) (p config.Price, ok bool)

	mu    sync.Mutex
	beats map[string]*pending
	order int64
	marks map[string]mark
	turns map[string]*turns // of beats whose calls run side by side
}

// pending is what a beat has reserved and when it began.
type pending struct {
	session  string
	log      *session.Session
	task     *vm.Task
	order    int64         // in which beats began
	sent     bool          // its first call has left
	unsent   bool          // it was tried, and never left
	saw      int64         // tokens that providers said its calls took
	sawCost  int64         // micro-USD, likewise
	bytes    int           // of the request
	input    int64         // tokens of it, of those that follow
	tokens   int64         // of request and reply
	reserved bool          // tokens are
	cost     int64         // micro-USD
	price    *config.Price // of its tokens; set where cost is reserved
	start    time.Time
	mark     mark // of the request, completed by the response
	own      bool // the device said what its tokens are; nothing is known of input and reply
}

func (k *Kernel) begun(beat string, p *pending) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.beats == nil {
		k.beats = map[string]*pending{}
	}
	k.order++
	p.order = k.order
	k.beats[beat] = p
}

// running gives a beat that has begun and has no end yet, nil for any other.
func (k *Kernel) running(beat string) *pending {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.beats[beat]
}

// Covers implements llm.Beats.
func (k *Kernel) Covers(task *vm.Task, session, beat string) (open string, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.beats[beat]
	if p != nil && p.session != session {
		p = nil
	}
	if open = beat; p == nil && task != nil {
		for id, other := range k.beats {
			if other.task == task && (p == nil || other.order > p.order) {
				open, p = id, other
			}
		}
	}
	if p == nil {
		return "", false
	}
	first = !p.sent
	p.sent, p.unsent = true, false
	return open, first
}

// Held implements llm.Beats.
func (k *Kernel) Held(beat string) (h budget.Call, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.beats[beat]
	if p == nil || !p.reserved && p.price == nil {
		return h, false
	}
	h = budget.Call{Bytes: p.bytes, Input: p.input, Reply: max(0, p.tokens-p.input), Cost: p.cost, Priced: p.price != nil}
	if p.own {
		h.Bytes, h.Input, h.Reply = math.MaxInt32, 0, p.tokens
	}
	return h, true
}

// Extend implements llm.Beats.
func (k *Kernel) Extend(ctx context.Context, beat string, input, cost int64, last bool) (granted bool, tag string, err error) {
	p := k.running(beat)
	if p == nil {
		return false, "", kernel.Errorf("knl.beat", kernel.Closed, "beat %s has ended", beat)
	}
	more := budget.Amounts{}
	if p.reserved && input > 0 {
		more[budget.Tokens] = input
	}
	if p.price != nil && cost > 0 {
		more[budget.Cost] = cost
	}
	for _, tag := range more.Tags() {
		if last {
			break
		}
		left, err := least(ctx, p.log, tag)
		if err != nil || left < more[tag] {
			return false, tag, err
		}
	}
	if len(more) > 0 {
		r, err := p.log.Reserve(ctx, more)
		if err != nil || !r.Granted {
			return false, r.Tag, err
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	p.input, p.tokens, p.cost = p.input+input, p.tokens+input, p.cost+cost
	return true, "", nil
}

// Unsent implements llm.Beats.
func (k *Kernel) Unsent(beat string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.beats[beat]; p != nil {
		p.sent, p.unsent = false, true
	}
}

// Saw implements llm.Beats.
func (k *Kernel) Saw(beat string, tokens, cost int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.beats[beat]; p != nil {
		p.saw += tokens
		p.sawCost += cost
	}
}

func (k *Kernel) ended(beat string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.beats, beat)
}

// closed forgets what is kept of a session that has ended. A call that still waits
// for its turn is let go: it finds the session closed.
func (k *Kernel) closed(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.marks, session)
	for id, p := range k.beats {
		if p.session == session {
			delete(k.beats, id)
		}
	}
	for id, t := range k.turns {
		if t.session == session {
			t.release()
			delete(k.turns, id)
		}
	}
}

func sessionOf(v vm.Value) (*session.Session, error) {
	if o, ok := v.(*vm.Object); ok {
		if s, ok := o.Data.(*session.Session); ok {
			return s, nil
		}
	}
	return nil, vm.Errorf(string(kernel.Validation), "got %s, want a session", vm.TypeName(v))
}

// grants reads the option budget: {amount, tag?, desc?}, {from_parent, tag?}, or
// amounts by tag. Cost is given in USD.
func grants(v vm.Value) (own, fromParent []budget.Grant, err error) {
	m, _ := v.(map[string]any)
	if len(m) == 0 {
		return nil, nil, nil
	}
	_, hasAmount := m["amount"]
	_, hasParent := m["from_parent"]
	if !hasAmount && !hasParent {
		for tag, n := range m {
			g := budget.Grant{Tag: tag}
			if g.Amount, err = units(tag, n); err != nil {
				return nil, nil, err
			}
			own = append(own, g)
		}
		return sorted(own), nil, nil
	}
	for key := range m {
		if key != "amount" && key != "from_parent" && key != "tag" && key != "desc" {
			return nil, nil, vm.Errorf(string(kernel.Validation), "budget: unknown key %q; it takes amount or from_parent, tag and desc, or amounts by tag", key)
		}
	}
	if hasAmount && hasParent {
		return nil, nil, vm.Errorf(string(kernel.Validation), "budget: amount and from_parent contradict each other")
	}
	o := vm.Opts(m)
	g := budget.Grant{Tag: o.Str("tag", ""), Desc: o.Str("desc", "")}
	if hasParent {
		g.Amount, err = units(g.Tag, m["from_parent"])
		return nil, []budget.Grant{g}, err
	}
	g.Amount, err = units(g.Tag, m["amount"])
	return []budget.Grant{g}, nil, err
}

// sorted puts grants in the kernel's order of tags, so that the first is the same
// on every run.
func sorted(list []budget.Grant) []budget.Grant {
	byTag := budget.Amounts{}
	for _, g := range list {
		byTag[g.Tag] = g.Amount
	}
	out := list[:0]
	for _, tag := range byTag.Tags() {
		out = append(out, budget.Grant{Tag: tag, Amount: byTag[tag]})
	}
	return out
}

// units reads an amount: an integer, except that cost is USD with a fraction.
func units(tag string, v vm.Value) (int64, error) {
	if tag == budget.Cost {
		usd, ok := v.(float64)
		if n, whole := v.(int64); whole {
			usd, ok = float64(n), true
		}
		if ok && math.Abs(usd) > maxUSD {
			return 0, vm.Errorf(string(kernel.Validation), "budget: cost is %g USD; at most %g can be granted", usd, maxUSD)
		}
		if ok {
			return int64(math.Round(usd * MicroUSD)), nil
		}
	}
	if n, ok := v.(int64); ok {
		return n, nil
	}
	return 0, vm.Errorf(string(kernel.Validation), "budget: %s must be an integer, got %s", orAmount(tag), vm.TypeName(v))
}

// maxUSD is the largest grant of cost, which a balance holds many times.
const maxUSD = 1e9

func orAmount(tag string) string {
	if tag == "" {
		return "amount"
	}
	return tag
}

// draft reads {kind, meta?, data?}; any other key but those that the store
// overwrites is refused.
func draft(m map[string]any) (event.Draft, error) {
	for key := range m {
		switch key {
		case "kind", "meta", "data", "seq", "epoch_ms", "_schema_version":
		case "beat":
			return event.Draft{}, vm.Errorf(string(kernel.Validation), "an event has no key beat: put it into meta.beat")
		default:
			return event.Draft{}, vm.Errorf(string(kernel.Validation), "an event has no key %q; it has kind, meta and data", key)
		}
	}
	d := event.Draft{}
	var ok bool
	if d.Kind, ok = m["kind"].(string); !ok {
		return d, vm.Errorf(string(kernel.Validation), "an event's kind is %s, not a string", vm.TypeName(m["kind"]))
	}
	if d.Meta, ok = object(m["meta"]); !ok {
		return d, vm.Errorf(string(kernel.Validation), "meta of %s is %s, not an object", d.Kind, vm.TypeName(m["meta"]))
	}
	if d.Data, ok = object(m["data"]); !ok {
		return d, vm.Errorf(string(kernel.Validation), "data of %s is %s, not an object", d.Kind, vm.TypeName(m["data"]))
	}
	return d, nil
}

func object(v vm.Value) (map[string]any, bool) {
	switch m := v.(type) {
	case nil:
		return nil, true
	case map[string]any:
		return m, true
	case []any:
		return nil, len(m) == 0
	}
	return nil, false
}
