package knl

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session"
	"ashlar/kernel/tool"
	"ashlar/vm"
)

// Tools is how a device's tool becomes one of the bus: the namespace tool's own
// way, handed in because namespaces do not import one another.
type Tools struct {
	Fields     []vm.Param
	ContractOf func(name string, o vm.Opts) tool.Contract
	HandlerOf  func(*vm.Func) tool.Handler
}

// packed is the class of values that were encoded for good.
var packed = &vm.Class{Name: "packed", Doc: "A value that was encoded once."}

// unpacked puts what packed handles hold in their places.
func unpacked(list []any) {
	for i, v := range list {
		if o, ok := v.(*vm.Object); ok {
			if p, ok := o.Data.(*logjson.Packed); ok {
				list[i] = p
			}
		}
	}
}

// Module declares the namespace.
func Module(k *Kernel, tools Tools) *vm.Module {
	class := k.class()
	handle := vm.Param{Name: "session", Type: vm.Handle, Class: ClassName}
	out := []vm.Param{handle}
	budgetDoc := "{amount, tag?, desc?}, {from_parent, tag?} of a child (from_parent may be amounts by tag), or amounts by tag; cost is in USD"
	m := &vm.Module{
		Name: "knl",
		Doc:  "Sessions: the log's streams, each with its budget. require(\"knl\") adds beat, device and the rest to them.",
		Funcs: []vm.Function{
			{
				Name: "open", Doc: "Opens a session and gives its handle.",
				Params: []vm.Param{{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
					{Name: "owner", Type: vm.String, Optional: true},
					{Name: "budget", Type: vm.Map, Optional: true, Doc: budgetDoc},
					{Name: "store", Type: vm.Any, Optional: true, Doc: "\"mem\" or {sqlite = path}; default: the run's own"},
					{Name: "meta", Type: vm.Map, Optional: true, Doc: "labels of the opening; scalars"},
					{Name: "parent", Type: vm.Handle, Class: ClassName, Optional: true},
				}}},
				Results: out, Effect: vm.Write, Record: vm.RecordNone, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return k.open(ctx, c, class) },
			},
			{
				Name: "resume", Doc: "Takes up a session that has not ended, and gives its handle; budget adds to what is left.",
				Params: []vm.Param{{Name: "opts", Type: vm.Options, Fields: []vm.Param{
					{Name: "session", Type: vm.String},
					{Name: "store", Type: vm.Any, Optional: true},
					{Name: "budget", Type: vm.Map, Optional: true, Doc: budgetDoc},
				}}},
				Results: out, Effect: vm.Write, Record: vm.RecordError, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return k.resume(ctx, c, class) },
			},
			{
				Name: "new_beat_id", Doc: "A unique id that sorts by time.", Results: []vm.Param{{Name: "id", Type: vm.String}}, Effect: vm.Read,
				Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
					id, err := k.IDs.Ordered()
					return []vm.Value{id}, err
				},
			},
			{
				Name: "error", Doc: "Reads what was raised: {kind?, namespace?, method?, retryable, message}.",
				Params: []vm.Param{{Name: "raised", Type: vm.Any}}, Effect: vm.Pure,
				Results: []vm.Param{{Name: "error", Type: vm.Map, Fields: []vm.Param{
					{Name: "kind", Type: vm.String, Optional: true}, {Name: "namespace", Type: vm.String, Optional: true},
					{Name: "method", Type: vm.String, Optional: true}, {Name: "retryable", Type: vm.Boolean}, {Name: "message", Type: vm.String},
				}}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{ReadError(c.Args[0])}, nil
				},
			},
			{
				Name: "is_session", Doc: "Whether a value is a session's handle.",
				Params: []vm.Param{{Name: "value", Type: vm.Opaque}}, Results: []vm.Param{{Name: "yes", Type: vm.Boolean}}, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					_, err := sessionOf(c.Args[0])
					return []vm.Value{err == nil}, nil
				},
			},
			{
				Name: "read", Doc: "A page of a session without the bodies of its requests: what a fold needs. Part of knl.beat.",
				Params:  []vm.Param{handle, {Name: "from", Type: vm.Integer}},
				Results: []vm.Param{{Name: "events", Type: vm.List}, {Name: "truncated", Type: vm.Boolean}},
				Effect:  vm.Read, Record: vm.RecordNone, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					s, err := sessionOf(c.Args[0])
					if err != nil {
						return nil, err
					}
					return page(sameEnd(ctx, c, func() ([]event.Event, bool, error) { return s.Conversation(ctx, max(c.Int(1, 1), 1)) }))
				},
			},
			{
				Name: "pack", Doc: "Encodes a value once, for a request's list of messages; it never changes. Part of knl.beat.",
				Params: []vm.Param{{Name: "value", Type: vm.Map}}, Results: []vm.Param{{Name: "packed", Type: vm.Handle, Class: "packed"}},
				Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					p, err := logjson.Pack(c.Args[0])
					if err != nil {
						return nil, err
					}
					return []vm.Value{&vm.Object{Class: packed, Data: p}}, nil
				},
			},
			{
				Name: "export", Doc: "A whole session, as \"events\" or as \"messages\".",
				Params:  []vm.Param{handle, {Name: "as", Type: vm.String}},
				Results: []vm.Param{{Name: "records", Type: vm.List}}, Effect: vm.Read, Record: vm.RecordNone, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					s, err := sessionOf(c.Args[0])
					if err != nil {
						return nil, err
					}
					return export(ctx, c, s, c.Str(1))
				},
			},
		},
	}
	m.Funcs = append(m.Funcs, k.beatFuncs(handle, tools)...)
	m.Funcs = append(m.Funcs, k.treeFuncs()...)
	m.Funcs = append(m.Funcs, vm.Function{
		Name: "api", Doc: "What the kernel offers: {session, module, errors, schema, fields}.",
		Results: []vm.Param{{Name: "report", Type: vm.Map}}, Effect: vm.Pure,
		Impl: func(context.Context, *vm.Call) ([]vm.Value, error) { return []vm.Value{report(m, class)}, nil },
	})
	m.Classes = []*vm.Class{class}
	return m
}

// beatFuncs are the steps of knl.beat that must be native: they are part of the
// sealed module, not meant to be called by hand.
func (k *Kernel) beatFuncs(handle vm.Param, tools Tools) []vm.Function {
	return []vm.Function{
		{
			Name: "beat_begin", Doc: "Reserves a beat and records its request in one commit. Part of knl.beat.",
			Params: []vm.Param{handle, {Name: "beat", Type: vm.Options, Fields: []vm.Param{
				{Name: "request", Type: vm.Map},
				{Name: "window", Type: vm.Map, Optional: true}, {Name: "cost", Type: vm.Integer, Optional: true},
				{Name: "max_tokens", Type: vm.Integer, Optional: true, Doc: "the reply's limit where the request names none"},
				{Name: "default", Type: vm.Integer, Optional: true, Doc: "what the wire asks for where nobody names a limit: no more is reserved"},
				{Name: "target", Type: vm.Callable, Optional: true, Doc: "target() -> {provider, model}: where the call goes; asked where cost is bounded"},
			}}},
			Results: []vm.Param{{Name: "begun", Type: vm.Map}}, Effect: vm.Write, Record: vm.RecordNone, Waits: true,
			Impl: k.beatBegin,
		},
		{
			Name: "beat_end", Doc: "Records a reply or a failed call, with the settlement, in one commit. Part of knl.beat.",
			Params: []vm.Param{handle, {Name: "beat", Type: vm.Options, Fields: []vm.Param{
				{Name: "beat", Type: vm.String}, {Name: "content", Type: vm.List, Optional: true},
				{Name: "usage", Type: vm.Map, Optional: true}, {Name: "stop_reason", Type: vm.String, Optional: true},
				{Name: "finish_reason", Type: vm.String, Optional: true}, {Name: "failed", Type: vm.Map, Optional: true},
			}}},
			Effect: vm.Write, Record: vm.RecordNone, Waits: true, Impl: k.beatEnd,
		},
		{
			Name: "beat_done", Doc: "Tells the event stream how a beat ended. Part of knl.beat.",
			Params: []vm.Param{handle, {Name: "beat", Type: vm.String}, {Name: "outcome", Type: vm.String}}, Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				s, err := sessionOf(c.Args[0])
				if err != nil {
					return nil, err
				}
				k.over(c.Str(1))
				k.Emit("beat_finished", s.ID(), c.Str(1), map[string]any{"outcome": c.Str(2)})
				return nil, nil
			},
		},
		{
			Name: "dispatch", Doc: "Takes one tool call of a beat through the bus. Part of knl.beat.",
			Params: []vm.Param{handle, {Name: "call", Type: vm.Options, Fields: []vm.Param{
				{Name: "beat", Type: vm.String}, {Name: "call_id", Type: vm.String}, {Name: "name", Type: vm.String},
				{Name: "args", Type: vm.Map, Optional: true}, {Name: "refusal", Type: vm.String, Optional: true},
				{Name: "refusal_kind", Type: vm.String, Optional: true, Doc: "denied, not_found or validation; default denied"},
				{Name: "handler", Type: vm.Callable, Optional: true},
				{Name: "turn", Type: vm.Integer, Optional: true, Doc: "place among calls that run side by side"},
				{Name: "contract", Type: vm.Options, Optional: true, Fields: tools.Fields},
			}}},
			Results: []vm.Param{{Name: "result", Type: vm.Map}}, Effect: vm.Write, Record: vm.RecordNone, Waits: true,
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
				return k.dispatch(ctx, c, tools.ContractOf, tools.HandlerOf)
			},
		},
	}
}

func (k *Kernel) open(ctx context.Context, c *vm.Call, class *vm.Class) ([]vm.Value, error) {
	o := c.Map(0)
	own, fromParent, err := allotment(o["budget"])
	if err != nil {
		return nil, err
	}
	opening := session.Opening{Owner: o.Str("owner", ""), Budget: own, FromParent: fromParent, Meta: map[string]any{}}
	for key, v := range k.Labels {
		opening.Meta[key] = v
	}
	labels, _ := object(o["meta"])
	for key, v := range labels {
		opening.Meta[key] = v
	}
	book, err := k.Book(ctx, o["store"])
	if err != nil {
		return nil, err
	}
	if p, ok := o["parent"].(*vm.Object); ok {
		parent, err := sessionOf(p)
		if err != nil {
			return nil, err
		}
		if o["store"] != nil && parent.Store() != book.Store() {
			return nil, vm.Errorf(string(kernel.Validation), "a child lives in its parent's store, and opts.store names another")
		}
		opening.Parent = parent
		book = parent.Book()
	}
	if opening.IDs, err = openingIDs(c, book); err != nil {
		return nil, err
	}
	s, err := book.Open(ctx, opening)
	if err != nil {
		return nil, err
	}
	return []vm.Value{&vm.Object{Class: class, Data: s}}, nil
}

func (k *Kernel) resume(ctx context.Context, c *vm.Call, class *vm.Class) ([]vm.Value, error) {
	o := c.Map(0)
	own, fromParent, err := grants(o["budget"])
	if err != nil {
		return nil, err
	}
	if len(fromParent) > 0 {
		return nil, vm.Errorf(string(kernel.Validation), "from_parent is for opening a child; a resume takes amounts")
	}
	book, err := k.Book(ctx, o["store"])
	if err != nil {
		return nil, err
	}
	// On a replay, how long the session was says from where on it is this run's.
	id := o.Str("session", "")
	head, err := book.Store().Head(ctx, id)
	if err != nil {
		return nil, err
	}
	if _, err := c.Note([]any{id, head.Seq}); err != nil {
		return nil, err
	}
	s, err := book.Resume(ctx, id, session.Resuming{Budget: own})
	if err != nil {
		return nil, err
	}
	return []vm.Value{&vm.Object{Class: class, Data: s}}, nil
}
