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
	// Held gives what a beat has reserved for its first call; ok is false where neither
	// tokens nor cost are bounded.
	Held(beat string) (h budget.Call, ok bool)
	// Extend reserves more input and cost for a beat's first call. Where session or run
	// does not cover it, tag says of what; only a last word is recorded as a refusal.
	Extend(ctx context.Context, beat string, input, cost int64, last bool) (granted bool, tag string, err error)
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
		c.step(stepCovers)
		if h.beat, h.first = s.Beats.Covers(c.Task, c.Session, c.Beat); h.first {
			body, err := s.within(ctx, c, t, h.beat, body)
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
	c.step(stepReserve, amountsValue(amounts))
	granted, tag, err := s.Pool.Reserve(ctx, amounts)
	if err == nil && !granted {
		err = kernel.Errorf("llm.send", kernel.Refused, "not sent: the run's budget of %s does not cover the call", tag)
	}
	return h, body, err
}

// within holds a beat's own call to what the beat reserved, also where a device sends
// another body than the request that is recorded: a reply is never longer than what is
// held, and a body that is much larger, or asks a dearer model, needs more. What is not
// covered comes off the reply, and nothing is sent where none is left.
func (s *Sender) within(ctx context.Context, c Call, t Target, beat string, body []byte) ([]byte, error) {
	held, bounded := s.Beats.Held(beat)
	if !bounded {
		return body, nil
	}
	var price *config.Price
	if held.Priced {
		var err error
		if price, err = s.mustPrice(t, c.Body); err != nil {
			return nil, err
		}
	}
	replies := min(max(1, integer(c.Body["n"])), maxReplies)
	most := max(integer(c.Body["max_tokens"]), integer(c.Body["max_completion_tokens"]))
	limit := max(1, held.Reply/replies)
	if most > 0 {
		limit = min(most, limit)
	}
	input := held.Input + unforeseen(len(body), held.Bytes)
	more := input - held.Input
	cost := int64(0)
	if price != nil {
		cost = max(0, price.AtMost(input, limit*replies)-held.Cost)
	}
	if more > 0 || cost > 0 {
		var err error
		if limit, err = s.extend(ctx, c, beat, held, price, input, cost, limit, replies); err != nil {
			return nil, err
		}
	}
	if limit == most {
		return body, nil
	}
	return limited(c.Body, t, limit)
}

// extend makes a beat's reserve cover a call that takes more than was foreseen, and gives
// the limit of each reply that is covered then.
func (s *Sender) extend(ctx context.Context, c Call, beat string, held budget.Call, price *config.Price, input, cost, limit, replies int64) (int64, error) {
	more := input - held.Input
	covered := held.Reply - more
	if price != nil {
		covered = min(covered, price.Reply(input, held.Cost))
	}
	covered /= replies
	last := covered < 1
	c.step(stepExtend, beat, more, cost, last)
	granted, tag, err := s.Beats.Extend(ctx, beat, more, cost, last)
	switch {
	case err != nil:
		return 0, err
	case granted:
		return limit, nil
	case last:
		return 0, kernel.Errorf("llm.send", kernel.Refused,
			"not sent: what the device sends takes more %s than the request that was reserved for, and the budget does not cover it", tag)
	}
	return min(limit, covered), nil
}

// unforeseen gives the tokens that a body takes beyond those of its request. Each wire
// writes a request in words of its own: twice the request and a little is none.
func unforeseen(body, request int) int64 {
	return max(0, int64(body-2*request-wireBytes)) / 2
}

// wireBytes are those that a wire puts around the smallest request.
const wireBytes = 1024

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
			c.step(stepUnsent, h.beat)
			s.Beats.Unsent(h.beat)
		}
		return s.settleUse(ctx, c, h, 0, 0)
	}
	least, u, answered := r.usage(t.wire())
	if !answered {
		return nil
	}
	least.Cost, u.Cost = s.cost(t, c.Body, least), s.cost(t, c.Body, u)
	if h.beat != "" && !h.pooled && s.Beats != nil {
		c.step(stepSaw, h.beat, least.tokens(), least.Cost)
		s.Beats.Saw(h.beat, least.tokens(), least.Cost)
	}
	if !h.first && s.Usage != nil {
		s.Usage(c.Session, h.beat, u.facts())
	}
	return s.settleUse(ctx, c, h, u.tokens(), u.Cost)
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
