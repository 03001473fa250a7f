package llm

import (
	"context"
	"strings"

	"ashlar/kernel"
)

// Partial is what had come of a reply that was cut off: by a cancel, by a deadline, by
// the server. It is no reply, and nothing is built on it; it is kept so that nobody has
// paid for words that are gone.
type Partial struct {
	Thinking, Text string

	// Reason is cancelled, timeout, network, limit, validation (on_delta raised), or how the
	// stream ended: closed, no_finish, malformed, error.
	Reason string
}

// content is the blocks of a partial reply.
func (p Partial) content() []any {
	out := []any{}
	if p.Thinking != "" {
		out = append(out, map[string]any{"type": "thinking", "thinking": p.Thinking})
	}
	if p.Text != "" {
		out = append(out, map[string]any{"type": "text", "text": p.Text})
	}
	return out
}

// heard gathers the text of a stream as it comes.
type heard struct{ thinking, text strings.Builder }

func (h *heard) add(kind, text string) {
	if kind == "thinking" {
		h.thinking.WriteString(text)
		return
	}
	h.text.WriteString(text)
}

// keep records what came of a reply that is not whole. That it could not be recorded
// is no fault of the call, which has one already.
func (s *Sender) keep(ctx context.Context, c Call, h *heard, r Reply, err error) {
	p := Partial{Thinking: h.thinking.String(), Text: h.text.String()}
	body := object(r.Body)
	switch {
	case p.Thinking == "" && p.Text == "":
		return
	case err != nil:
		p.Reason = string(kernel.KindOf(err))
		if p.Reason == string(kernel.Internal) { // the cause that ended task or run, which has its own record
			p.Reason = string(kernel.Cancelled)
		}
	case r.Notes["incomplete"] != nil:
		p.Reason, _ = r.Notes["incomplete"].(string)
	case body["error"] != nil:
		p.Reason = "error"
	default:
		return
	}
	ctx = context.WithoutCancel(ctx)
	if c.OnPartial != nil {
		_ = c.OnPartial(ctx, p)
	}
	if s.Partial != nil && p.Text != "" {
		s.Partial(c.Session, c.Beat, map[string]any{"text": p.Text, "partial": true})
	}
}
