package knl

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// ClassName is the type of a session's handle in messages and declarations.
const ClassName = "session"

// class declares the methods of a session's handle.
func (k *Kernel) class() *vm.Class {
	type method = func(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error)
	bind := func(f vm.Function, m method) vm.Function {
		f.Impl = func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
			s, err := sessionOf(c.Self)
			if err != nil {
				return nil, err
			}
			return m(ctx, c, s)
		}
		return f
	}
	name := func(fn, doc string, get func(*session.Session) string) vm.Function {
		return bind(vm.Function{Name: fn, Doc: doc, Effect: vm.Pure, Results: []vm.Param{{Name: "id", Type: vm.String}}},
			func(_ context.Context, _ *vm.Call, s *session.Session) ([]vm.Value, error) {
				return []vm.Value{get(s)}, nil
			})
	}
	c := &vm.Class{Name: ClassName, Space: "knl", Doc: "A handle on one session: one stream of the log, with its budget."}
	c.Methods = []vm.Function{
		name("id", "The session's id.", (*session.Session).ID),
		name("scope_id", "The id of the scope that its budget belongs to.", (*session.Session).ScopeID),
		name("owner", "The principal that it was opened for.", (*session.Session).Owner),
		bind(vm.Function{
			Name: "append", Doc: "Adds one event {kind, meta?, data?} and gives its seq. meta holds scalars; the kernel's own kinds are refused.",
			Params: []vm.Param{{Name: "event", Type: vm.Map, Fields: []vm.Param{
				{Name: "kind", Type: vm.String}, {Name: "meta", Type: vm.Map, Optional: true, Doc: "labels: scalars"},
				{Name: "data", Type: vm.Map, Optional: true},
			}}},
			Results: []vm.Param{{Name: "seq", Type: vm.Integer}}, Effect: vm.Write, Record: vm.RecordNone, Waits: true,
		}, func(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
			d, err := draft(c.Map(0))
			if err != nil {
				return nil, err
			}
			seqs, err := s.Append(ctx, d)
			if err != nil {
				return nil, err
			}
			if d.Kind == event.MsgUser {
				k.Emit("user_message", s.ID(), "", map[string]any{"text": text(d.Data["content"])})
			}
			return []vm.Value{seqs[0]}, nil
		}),
		bind(vm.Function{
			Name: "events", Doc: "Events from a seq on, at most 1000, and whether there are more: page by asking from the last seq + 1.",
			Params:  []vm.Param{{Name: "from", Type: vm.Integer, Optional: true}},
			Results: []vm.Param{{Name: "events", Type: vm.List}, {Name: "truncated", Type: vm.Boolean}},
			Effect:  vm.Read, Record: vm.RecordNone, Waits: true,
		}, func(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
			return page(sameEnd(ctx, c, func() ([]event.Event, bool, error) { return s.Events(ctx, max(c.Int(0, 1), 1), true) }))
		}),
		bind(vm.Function{
			Name: "len", Doc: "How many events there are.", Results: []vm.Param{{Name: "n", Type: vm.Integer}},
			Effect: vm.Read, Waits: true,
		}, func(ctx context.Context, _ *vm.Call, s *session.Session) ([]vm.Value, error) {
			n, err := s.Len(ctx)
			return []vm.Value{n}, err
		}),
		bind(vm.Function{
			Name: "view", Doc: "view(\"tail\", {n = 20}): the last n events.",
			Params: []vm.Param{{Name: "name", Type: vm.String},
				{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{{Name: "n", Type: vm.Integer, Optional: true}}}},
			Results: []vm.Param{{Name: "events", Type: vm.List}}, Effect: vm.Read, Record: vm.RecordNone, Waits: true,
		}, view),
		bind(queryMethod(), query),
		bind(vm.Function{
			Name: "reserve", Doc: "Asks for units: a number of the first tag, or a table by tag. Gives whether they were granted, and the tag; a refusal is recorded and does not raise.",
			Params:  []vm.Param{{Name: "amount", Type: vm.Integer, Also: []vm.Type{vm.Map}}},
			Results: []vm.Param{{Name: "granted", Type: vm.Boolean}, {Name: "tag", Type: vm.String, Optional: true}},
			Effect:  vm.Write, Record: vm.RecordNone, Waits: true,
		}, reserve),
		bind(vm.Function{
			Name: "spend", Doc: "Deducts units without asking, down to 0.",
			Params: []vm.Param{{Name: "amount", Type: vm.Integer, Also: []vm.Type{vm.Map}}}, Effect: vm.Write, Record: vm.RecordNone, Waits: true,
		}, func(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
			amounts, err := amountsOf(c.Args[0], s)
			if err != nil || len(amounts) == 0 {
				return nil, err
			}
			return nil, s.Spend(ctx, amounts)
		}),
		bind(vm.Function{
			Name: "remaining", Doc: "What is left of a tag (of the first one when none is named), nil when it was never granted.",
			Params:  []vm.Param{{Name: "tag", Type: vm.String, Optional: true}},
			Results: []vm.Param{{Name: "left", Type: vm.Integer, Optional: true}}, Effect: vm.Read, Waits: true,
		}, remaining),
		bind(vm.Function{
			Name: "exhausted", Doc: "Whether nothing is left of a tag that was granted.",
			Results: []vm.Param{{Name: "yes", Type: vm.Boolean}}, Effect: vm.Read, Waits: true,
		}, func(ctx context.Context, _ *vm.Call, s *session.Session) ([]vm.Value, error) {
			yes, err := s.Exhausted(ctx)
			return []vm.Value{yes}, err
		}),
		bind(vm.Function{
			Name: "close", Doc: "Ends the session through this handle; again does nothing. reason is closed where none is given.",
			Params: []vm.Param{{Name: "reason", Type: vm.String, Optional: true}, {Name: "detail", Type: vm.String, Optional: true}},
			Effect: vm.Write, Record: vm.RecordNone, Waits: true,
		}, func(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
			if err := s.Close(ctx, c.Str(0), c.Str(1)); err != nil {
				return nil, err
			}
			k.closed(s.ID())
			return nil, nil
		}),
	}
	return c
}

func view(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
	if c.Str(0) != "tail" {
		return nil, vm.Errorf(string(kernel.Validation), "no view %q; there is tail", c.Str(0))
	}
	events, err := tail(ctx, c, s, int(c.Map(1).Int("n", 20)))
	if err != nil {
		return nil, err
	}
	list, err := rows(events)
	return []vm.Value{list}, err
}

// amountsOf reads an amount of the first tag, or amounts by tag. Without a grant a
// plain amount is nothing.
func amountsOf(v vm.Value, s *session.Session) (budget.Amounts, error) {
	if n, ok := v.(int64); ok {
		tag, granted := s.Tag()
		if n < 0 {
			return nil, vm.Errorf(string(kernel.Validation), "amount is %d; it is never negative", n)
		}
		if !granted {
			return nil, nil
		}
		return budget.Amounts{tag: n}, nil
	}
	m, _ := v.(map[string]any)
	amounts := budget.Amounts{}
	for tag, n := range m {
		amount, ok := n.(int64)
		if !ok {
			return nil, vm.Errorf(string(kernel.Validation), "amount.%s: got %s, want integer", tag, vm.TypeName(n))
		}
		amounts[tag] = amount
	}
	return amounts, nil
}

func reserve(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
	amounts, err := amountsOf(c.Args[0], s)
	if err != nil {
		return nil, err
	}
	if len(amounts) == 0 {
		return []vm.Value{true}, nil
	}
	r, err := s.Reserve(ctx, amounts)
	if err != nil {
		return nil, err
	}
	tag := r.Tag
	if r.Granted {
		tag = amounts.Tags()[0]
	}
	if tag == "" {
		return []vm.Value{r.Granted, nil}, nil
	}
	return []vm.Value{r.Granted, tag}, nil
}

func remaining(ctx context.Context, c *vm.Call, s *session.Session) ([]vm.Value, error) {
	tag, _ := c.Args[0].(string)
	if c.Args[0] == nil {
		first, ok := s.Tag()
		if !ok {
			return []vm.Value{nil}, nil
		}
		tag = first
	}
	left, ok, err := s.Remaining(ctx, tag)
	if err != nil || !ok {
		return []vm.Value{nil}, err
	}
	return []vm.Value{left}, nil
}
