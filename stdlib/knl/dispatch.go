package knl

import (
	"context"
	"encoding/hex"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
	"ashlar/kernel/tool"
	"ashlar/vm"
)

// recorder writes the intent and the outcome of a beat's tool calls to its session.
type recorder struct {
	session *session.Session
	short   string // the tag that did not cover a call
	turns   *turns // nil where the calls of the beat run one after the other
	turn    int64
}

// inTurn waits until the calls before this one have begun, and lets the next one go
// when record has returned.
func (r *recorder) inTurn(ctx context.Context, record func() error) error {
	if r.turns != nil {
		if err := r.turns.wait(ctx, r.turn); err != nil {
			return err
		}
		defer r.turns.pass(r.turn)
	}
	return record()
}

func meta(c tool.Call) map[string]any { return map[string]any{"beat": c.Beat} }

func called(c tool.Call) event.Draft {
	return event.Draft{Kind: event.ToolCall, Meta: meta(c), Data: map[string]any{"call_id": c.ID, "name": c.Name, "args": c.Args}}
}

func result(c tool.Call, r tool.Result) event.Draft {
	data := map[string]any{"call_id": c.ID, "ok": r.OK, "result": r.Model}
	if r.Truncated != nil {
		data["truncated"] = map[string]any{"bytes": int64(r.Truncated.Bytes), "handle": r.Truncated.Handle}
	}
	if r.Sanitised {
		data["sanitised"] = true
	}
	if r.Raw != "" {
		data["raw"] = r.Raw
	}
	return event.Draft{Kind: event.ToolResult, Meta: meta(c), Data: data}
}

// Intent implements tool.Recorder.
func (r *recorder) Intent(ctx context.Context, c tool.Call) error {
	b := session.Batch{Append: []event.Draft{called(c)}}
	if r.session.Has(budget.ToolCalls) {
		b.Reserve = budget.Amounts{budget.ToolCalls: 1}
		b.Otherwise = []event.Draft{called(c), result(c, tool.Result{Model: tool.BudgetText})}
	}
	var got session.Receipt
	err := r.inTurn(ctx, func() (err error) {
		got, err = r.session.Commit(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	if !got.Granted {
		r.short = got.Tag
		return kernel.Errorf("tool", kernel.Refused, "the budget of %s does not cover the call", got.Tag)
	}
	return nil
}

// Outcome implements tool.Recorder.
func (r *recorder) Outcome(ctx context.Context, c tool.Call, res tool.Result) error {
	_, err := r.session.Append(ctx, result(c, res))
	return err
}

// Refuse implements tool.Recorder.
func (r *recorder) Refuse(ctx context.Context, c tool.Call, res tool.Result) error {
	return r.inTurn(ctx, func() error {
		_, err := r.session.Append(ctx, called(c), result(c, res))
		return err
	})
}

// Keep implements tool.Recorder.
func (r *recorder) Keep(ctx context.Context, b []byte) (string, error) {
	return Keep(ctx, r.session.Store(), b)
}

// Keep keeps bytes in a store by their hash, and gives it in the form that events
// refer to content in.
func Keep(ctx context.Context, st store.Store, b []byte) (string, error) {
	var h event.Hash
	err := st.Write(ctx, func(tx store.Tx) (err error) {
		h, err = tx.PutContent(b)
		return err
	})
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h[:]), nil
}

// dispatch takes one call of a beat through the bus.
func (k *Kernel) dispatch(ctx context.Context, c *vm.Call, contractOf func(name string, o vm.Opts) tool.Contract, handlerOf func(*vm.Func) tool.Handler) ([]vm.Value, error) {
	s, err := sessionOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	o := c.Map(1)
	args, _ := object(o["args"])
	if args == nil {
		args = map[string]any{}
	}
	rec := &recorder{session: s, turn: o.Int("turn", 0)}
	if rec.turn > 0 {
		if rec.turns = k.turnsOf(s, o.Str("beat", "")); rec.turns != nil {
			defer rec.turns.pass(rec.turn)
		}
	}
	call := tool.Call{
		Session: s.ID(), ID: o.Str("call_id", ""), Beat: o.Str("beat", ""), Name: o.Str("name", ""),
		Args: args, Refusal: o.Str("refusal", ""), RefusalKind: o.Str("refusal_kind", ""), Record: rec,
	}
	if fn := o.Func("handler"); fn != nil {
		contract, _ := o["contract"].(map[string]any)
		call.Tool = &tool.Tool{Contract: contractOf(call.Name, contract), Handler: handlerOf(fn)}
	}
	r, err := k.Bus.Dispatch(ctx, call)
	if err != nil {
		return nil, err
	}
	out := map[string]any{"ok": r.OK}
	if rec.short != "" {
		out["stopped"] = rec.short
	}
	return []vm.Value{out}, nil
}
