package session

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Resuming says how a session is taken up again.
type Resuming struct {
	Budget []budget.Grant // further grants of the owner

	// Keep reports of an open call that the caller will see to it: it is gated
	// and undecided, or approved and not yet run. nil keeps none.
	Keep func(callID string) bool
}

// maxTries is how often a resume reads the session anew because somebody wrote
// to it in between.
const maxTries = 8

// Resume takes up a session that has not ended. Where this process did not hold
// it already, each call that a crash left open gets its tool_result first, so
// that the log itself says what is known of the effect. Kinds: closed for a
// session that has ended, validation for a stream that is no session or one of
// the system's, busy for one that a living process writes.
func (b *Book) Resume(ctx context.Context, id string, o Resuming) (*Session, error) {
	const op = "session.resume"
	if err := checkGrants(o.Budget); err != nil {
		return nil, as(op, err)
	}
	for range maxTries {
		calls, head, err := b.openCalls(ctx, id, o.Keep)
		if err != nil {
			return nil, as(op, err)
		}
		s, moved, err := b.resume(ctx, id, o.Budget, calls, head)
		if err != nil {
			return nil, as(op, err)
		}
		if !moved {
			return s, nil
		}
	}
	return nil, kernel.Errorf(op, kernel.Busy, "session %s is being written all the time", id)
}

// resume is one try; moved reports that the session is longer than was read, so
// that nothing was written.
func (b *Book) resume(ctx context.Context, id string, grants []budget.Grant, calls []call, read int64) (s *Session, moved bool, err error) {
	var (
		r     row
		tags  []string
		epoch int64
		after func(context.Context) error
	)
	err = b.store.Write(ctx, func(tx store.Tx) (err error) {
		if r, err = resumable(tx, id); err != nil {
			return err
		}
		head, err := tx.Head(id)
		if err != nil {
			return err
		}
		if moved = head.Seq != read; moved {
			return nil
		}
		var fresh bool
		if epoch, fresh, err = b.take(tx, id); err != nil {
			return err
		}
		if fresh {
			for _, c := range calls {
				if _, err := tx.Append(id, c.result()); err != nil {
					return err
				}
			}
		}
		acc, err := account(tx, id, r.scope)
		if err != nil {
			return err
		}
		for _, g := range grants {
			if err := acc.Grant(g, nil); err != nil {
				return err
			}
		}
		if err := acc.Save(); err != nil {
			return err
		}
		// It belongs to the run that writes it now.
		if r.run != "" {
			if err := tx.DeleteRow(store.Open, openKey(r.run, id)); err != nil {
				return err
			}
		}
		r.run, tags = b.runID(), acc.Tags
		if err := r.write(tx, id); err != nil {
			return err
		}
		after, err = b.join(tx, id)
		return err
	})
	if err != nil || moved {
		return nil, moved, err
	}
	return b.handle(id, r, epoch, tags), false, after(ctx)
}

// The effects of a call that a crash left open.
const (
	EffectNone    = "none"    // the call was asked for, and never begun
	EffectUnknown = "unknown" // it was begun, and its end was not recorded
)

// call is a tool call without a result.
type call struct {
	id     string
	beat   any // meta.beat of the event that asked for it
	effect string
}

func (c call) result() event.Draft {
	text := "not run: the run was interrupted before this call began, so it had no effect"
	if c.effect == EffectUnknown {
		text = "interrupted: this call had begun and its end was not recorded; whether it took effect is unknown"
	}
	d := event.Draft{Kind: event.ToolResult, Data: map[string]any{"call_id": c.id, "ok": false, "result": text, "effect": c.effect}}
	if c.beat != nil {
		d.Meta = map[string]any{"beat": c.beat}
	}
	return d
}

// openCalls reads what a crash may have left open, and how long the session was:
// every tool_call without a tool_result, and of the newest response the calls
// that were never begun. Of an older response the latter are left alone: the
// conversation went on without them, and the fold has long answered for them.
func (b *Book) openCalls(ctx context.Context, id string, keep func(string) bool) (open []call, head int64, err error) {
	h, err := b.store.Head(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	var begun, asked []call
	answered := map[string]bool{}
	q := store.Query{From: 1, Kinds: []string{event.MsgUser, event.LLMRequest, event.LLMResponse, event.ToolCall, event.ToolResult}}
	for more := true; more; {
		var page []event.Event
		if page, more, err = b.store.Events(ctx, id, q); err != nil {
			return nil, 0, err
		}
		for _, e := range page {
			q.From = e.Seq + 1
			if e.Kind == event.MsgUser || e.Kind == event.LLMRequest {
				asked = nil
				continue
			}
			meta, data, err := bodies(e)
			if err != nil {
				return nil, 0, err
			}
			switch c := (call{id: str(data, "call_id"), beat: meta["beat"], effect: EffectUnknown}); e.Kind {
			case event.LLMResponse:
				asked = asks(data, meta["beat"])
				clear(answered) // a server may give the same ids at every beat
			case event.ToolCall:
				delete(answered, c.id)
				begun = append(begun, c)
			case event.ToolResult:
				answered[c.id] = true
				begun = without(begun, c.id)
			}
		}
	}
	open = begun
	for _, c := range asked {
		if !answered[c.id] && len(without(begun, c.id)) == len(begun) {
			open = append(open, c)
		}
	}
	if keep != nil {
		kept := open[:0]
		for _, c := range open {
			if !keep(c.id) {
				kept = append(kept, c)
			}
		}
		open = kept
	}
	return open, h.Seq, nil
}

// asks lists the tool_use blocks of a response.
func asks(data map[string]any, beat any) (calls []call) {
	blocks, _ := data["content"].([]any)
	for _, block := range blocks {
		m, _ := block.(map[string]any)
		if id := str(m, "id"); str(m, "type") == "tool_use" && id != "" {
			calls = append(calls, call{id: id, beat: beat, effect: EffectNone})
		}
	}
	return calls
}

func without(calls []call, id string) []call {
	for i, c := range calls {
		if c.id == id {
			return append(calls[:i:i], calls[i+1:]...)
		}
	}
	return calls
}
