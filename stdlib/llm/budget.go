package llm

import (
	"context"
	"math"

	"ashlar/kernel"
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
	// Held gives the tokens that a beat has reserved for its first call; ok is false
	// where tokens are not bounded.
	Held(beat string) (tokens int64, ok bool)
	// Unsent is told that the call that was a beat's first never left: the beat's
	// reserve covers the next one, or is given back.
	Unsent(beat string)
	// Saw is told what a provider said, or at least, of a beat's calls.
	Saw(beat string, tokens int64)
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
	tokens int64  // reserved of the pool
	pooled bool   // tokens are to be settled with the pool
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
	if s.Pool.Has(budget.Tokens) {
		h.pooled = true
		input := int64(len(body)+1) / 2
		replies := min(max(1, integer(c.Body["n"])), maxReplies)
		most := max(integer(c.Body["max_tokens"]), integer(c.Body["max_completion_tokens"]))
		if most <= 0 {
			left, _, err := s.Pool.Remaining(ctx, budget.Tokens)
			if err != nil {
				return h, nil, err
			}
			most = max(1, (left-input)/replies)
			if body, err = limited(c.Body, t, most); err != nil {
				return h, nil, err
			}
		}
		h.tokens = input + min(most, maxAsked)*replies
		amounts[budget.Tokens] = h.tokens
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
	key := "max_tokens"
	if t.Dialect == "openai" && reasoning(model) {
		key = "max_completion_tokens"
	}
	body[key] = most
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
func (s *Sender) settle(ctx context.Context, c Call, h hold, r Reply) error {
	ctx = context.WithoutCancel(ctx)
	if !r.wrote {
		if h.first {
			s.Beats.Unsent(h.beat)
		}
		if h.pooled {
			return s.Pool.SettleUse(ctx, budget.Tokens, h.tokens, 0)
		}
		return nil
	}
	used, whole := usage(r)
	if !h.first && s.Usage != nil && (used > 0 || whole) {
		s.Usage(c.Session, h.beat, facts(r, whole))
	}
	if h.beat != "" && !h.pooled && s.Beats != nil {
		s.Beats.Saw(h.beat, used)
	}
	if !h.pooled || used == 0 && !whole {
		return nil
	}
	if !whole {
		used += answered(r)
	}
	return s.Pool.SettleUse(ctx, budget.Tokens, h.tokens, used)
}

// usage is what the provider counted; where it counted nothing, the least that it
// was, and whole is false. 0 where there is no answer.
func usage(r Reply) (tokens int64, whole bool) {
	body, _ := r.Body.(map[string]any)
	u, _ := body["usage"].(map[string]any)
	prompt, completion := figure(u["prompt_tokens"]), figure(u["completion_tokens"])
	switch {
	case prompt >= 0 && completion >= 0:
		return prompt + completion, true
	case r.Status >= 300 || body == nil || body["error"] != nil:
		return 0, false
	}
	return int64(math.Ceil(float64(r.Sent) / bytesPerToken)), false
}

// facts is a usage as the event stream has it: disjoint, and flagged where it is
// estimated.
func facts(r Reply, whole bool) map[string]any {
	body, _ := r.Body.(map[string]any)
	u, _ := body["usage"].(map[string]any)
	inner := func(name, key string) int64 {
		details, _ := u[name].(map[string]any)
		return max(0, figure(details[key]))
	}
	f := map[string]any{"thinking": int64(0), "cache_read": int64(0), "cache_creation": int64(0)}
	if !whole {
		least, _ := usage(r)
		f["input"], f["output"], f["estimated"] = least, answered(r), true
		return f
	}
	prompt := figure(u["prompt_tokens"])
	cached := min(prompt, inner("prompt_tokens_details", "cached_tokens"))
	f["input"], f["cache_read"], f["output"] = prompt-cached, cached, figure(u["completion_tokens"])
	f["thinking"] = inner("completion_tokens_details", "reasoning_tokens")
	return f
}

// answered estimates the tokens of an answer.
func answered(r Reply) int64 {
	body, _ := r.Body.(map[string]any)
	b, err := logjson.Marshal(body["choices"])
	if err != nil {
		return 0
	}
	return int64(math.Ceil(float64(len(b)) / bytesPerToken))
}

// figure reads a count of tokens; -1 for what no provider means.
func figure(v any) int64 {
	if n, ok := v.(int64); ok && n >= 0 && n < maxCount {
		return n
	}
	return -1
}

func integer(v any) int64 {
	n, _ := v.(int64)
	return n
}
