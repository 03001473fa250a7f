package llm

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// Pool is the run's budget, from which a call outside a beat takes.
type Pool interface {
	Has(tag string) bool
	Remaining(ctx context.Context, tag string) (left int64, ok bool, err error)
	Reserve(ctx context.Context, amounts budget.Amounts) (granted bool, tag string, err error)
	SettleUse(ctx context.Context, tag string, reserved, used int64) error
}

// Beats knows the beats that run. The reserve of a beat covers its first call.
type Beats interface {
	// Covers names the open beat that a call belongs to: the one that the call names,
	// or the one that its task is in; "" for none. first is true once for each beat.
	Covers(task *vm.Task, session, beat string) (open string, first bool)
	// Held gives the tokens that a beat has reserved or paid for its first call; ok is
	// false where neither tokens nor cost are bounded.
	Held(beat string) (tokens int64, ok bool)
	// Unsent is told that the call that was a beat's first never left: the beat's
	// reserve covers the next one, or is given back.
	Unsent(beat string)
	// Saw is told what a provider said, or at least, of a beat's calls; cost is in
	// micro-USD, 0 where no price is known.
	Saw(beat string, tokens, cost int64)
}

// Bounds of what a reply may claim and a request may ask for.
const (
	maxCount      = 1_000_000_000 // tokens of one reply; a larger figure is no figure
	maxAsked      = 1 << 40       // tokens that a request reserves at most for a reply
	maxReplies    = 1 << 20       // that one request asks for
	bytesPerToken = 3.2
)

// hold is what one call has of the budget.
type hold struct {
	beat   string // the open beat that it belongs to
	first  bool   // the beat reserved it, and reports its usage
	pooled bool   // what follows is to be settled with the pool
	tokens int64  // reserved of the pool
	cost   int64  // micro-USD, likewise
	price  *config.Price
}

// reserve takes from the pool what a call may use, unless a beat has done so. Where
// tokens are bounded and the request names no limit, it gets what is left as one.
func (s *Sender) reserve(ctx context.Context, c Call, t Target, body []byte) (hold, []byte, error) {
	var h hold
	if s.Beats != nil {
		if h.beat, h.first = s.Beats.Covers(c.Task, c.Session, c.Beat); h.first {
			body, err := s.within(c, t, h.beat, body)
			return h, body, err
		}
	}
	if s.Pool == nil {
		return h, body, nil
	}
	amounts := budget.Amounts{budget.Beats: 1}
	var err error
	if s.Pool.Has(budget.Cost) {
		if h.price, err = s.mustPrice(t, c.Body); err != nil {
			return h, nil, err
		}
	}
	if s.Pool.Has(budget.Tokens) || h.price != nil {
		h.pooled = true
		input := int64(len(body)+1) / 2
		replies := min(max(1, integer(c.Body["n"])), maxReplies)
		most := max(integer(c.Body["max_tokens"]), integer(c.Body["max_completion_tokens"]))
		if most <= 0 {
			if most, err = s.longest(ctx, input, replies, h.price); err != nil {
				return h, nil, err
			}
			if body, err = limited(c.Body, t, most); err != nil {
				return h, nil, err
			}
		}
		h.tokens = input + min(most, maxAsked)*replies
		amounts[budget.Tokens] = h.tokens
		if h.price != nil {
			h.cost = h.price.AtMost(input, h.tokens-input)
			amounts[budget.Cost] = h.cost
		}
	}
	granted, tag, err := s.Pool.Reserve(ctx, amounts)
	if err == nil && !granted {
		err = kernel.Errorf("llm.send", kernel.Refused, "not sent: the run's budget of %s does not cover the call", tag)
	}
	return h, body, err
}

// within holds the reply of a beat's own call to what the beat reserved, also where a
// device sends another body than the request that is recorded.
func (s *Sender) within(c Call, t Target, beat string, body []byte) ([]byte, error) {
	held, bounded := s.Beats.Held(beat)
	if !bounded {
		return body, nil
	}
	replies := min(max(1, integer(c.Body["n"])), maxReplies)
	most := max(integer(c.Body["max_tokens"]), integer(c.Body["max_completion_tokens"]))
	if most > 0 && most <= held/replies {
		return body, nil
	}
	return limited(c.Body, t, max(1, held/replies))
}

// limited encodes a request with a limit of its reply.
func limited(body map[string]any, t Target, most int64) ([]byte, error) {
	delete(body, "max_tokens")
	delete(body, "max_completion_tokens")
	model, _ := body["model"].(string)
	body[t.limit(model)] = most
	return logjson.Marshal(body)
}

// reasoning knows the models that take max_completion_tokens alone (llm_proto.openai
// knows them by the same names).
func reasoning(model string) bool {
	if len(model) > 1 && model[0] == 'o' && model[1] >= '0' && model[1] <= '9' {
		return true
	}
	return len(model) >= 5 && model[:5] == "gpt-5"
}

// settle gives back what a call has not used: all of it where it never left. One that
// brought no figure is estimated; one that was sent and brought nothing stays spent.
func (s *Sender) settle(ctx context.Context, c Call, t Target, h hold, r Reply) error {
	ctx = context.WithoutCancel(ctx)
	if !r.wrote {
		if h.first {
			s.Beats.Unsent(h.beat)
		}
		return s.settleUse(ctx, h, 0, 0)
	}
	least, u, answered := r.usage(t.wire())
	if !answered {
		return nil
	}
	least.Cost, u.Cost = s.cost(t, c.Body, least), s.cost(t, c.Body, u)
	if h.beat != "" && !h.pooled && s.Beats != nil {
		s.Beats.Saw(h.beat, least.tokens(), least.Cost)
	}
	if !h.first && s.Usage != nil {
		s.Usage(c.Session, h.beat, u.facts())
	}
	return s.settleUse(ctx, h, u.tokens(), u.Cost)
}

// usage is what the provider counted, the rest estimated; least is without an estimate
// of the answer. answered is false where nothing was counted and there is no answer.
func (r Reply) usage(w wire) (least, u Usage, answered bool) {
	body := object(r.Body)
	u = usageOf(w, object(body["usage"]))
	if u.Whole {
		return u, u, true
	}
	if r.Status >= 300 || body == nil || body["error"] != nil {
		return u, u, false
	}
	return u.completed(r.Sent, 0), u.completed(r.Sent, bytesOf(w.said(body))), true
}

// facts is a usage as the event stream has it: flagged where it is estimated.
func (u Usage) facts() map[string]any {
	f := map[string]any{
		"input": u.Input, "cache_read": u.CacheRead, "cache_creation": u.CacheWrite, "output": u.Output, "thinking": u.Thinking,
	}
	if u.Cost > 0 {
		f["cost"] = u.Cost
	}
	if !u.Whole {
		f["estimated"] = true
	}
	return f
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}
