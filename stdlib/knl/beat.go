package knl

import (
	"context"
	"math"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// beatBegin names a beat, reserves what it may take and records its request, in one
// commit.
// A beat that is not covered leaves no request behind.
func (k *Kernel) beatBegin(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	s, err := sessionOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	o := c.Map(1)
	beat, err := k.newBeat(c)
	if err != nil {
		return nil, err
	}
	request, _ := o["request"].(map[string]any)
	if messages, ok := request["messages"].([]any); ok {
		unpacked(messages)
	}
	p := &pending{session: s.ID(), log: s, task: c.Task, start: k.Now()}
	b := session.Batch{Reserve: budget.Amounts{}, Need: budget.Amounts{}}
	if s.Has(budget.Beats) {
		b.Reserve[budget.Beats] = 1
	}
	if s.Has(budget.Seconds) {
		b.Need[budget.Seconds] = 1
	}
	if p.price, err = k.priceOf(ctx, s, o); err != nil {
		return nil, err
	}
	var capped int64
	if p.reserved = s.Has(budget.Tokens); p.reserved || p.price != nil {
		if capped, err = k.bound(ctx, s, request, reply{o.Int("max_tokens", 0), o.Int("default", 0)}, p); err != nil {
			return nil, err
		}
		if capped, err = p.sameBound(c, capped); err != nil {
			return nil, err
		}
	}
	if p.reserved {
		b.Reserve[budget.Tokens] = p.tokens
	}
	if p.price != nil {
		b.Reserve[budget.Cost] = p.cost
	}
	if n := o.Int("cost", 0); n > 0 {
		if err := k.ownPrice(ctx, s, b.Reserve, p, n); err != nil {
			return nil, err
		}
	}
	data := map[string]any{"request": request}
	if capped > 0 {
		// Beside the request, not in it: it changes with every beat, and what a request
		// holds beside its messages is stored once as long as it stays the same.
		data["max_tokens"] = capped
	}
	if w := o["window"]; w != nil {
		data["window"] = w
	}
	b.Append = []event.Draft{{Kind: event.LLMRequest, Meta: map[string]any{"beat": beat}, Data: data}}
	r, err := s.Commit(ctx, b)
	if err != nil {
		return nil, err
	}
	if !r.Granted {
		out := map[string]any{"granted": false, "tag": r.Tag}
		if r.Bound != "" {
			out["bound"] = r.Bound
		}
		return []vm.Value{out}, nil
	}
	k.begun(beat, p)
	model, _ := request["model"].(string)
	k.Emit("beat_started", s.ID(), beat, map[string]any{"model": model, "tools": toolNames(request)})
	out := map[string]any{"granted": true, "beat": beat}
	if capped > 0 {
		out["max_tokens"] = capped
	}
	return []vm.Value{out}, nil
}

// beatEnd records what came of a call, with the settlement, in one commit.
func (k *Kernel) beatEnd(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	s, err := sessionOf(c.Args[0])
	if err != nil {
		return nil, err
	}
	o := c.Map(1)
	beat := o.Str("beat", "")
	p := k.running(beat)
	if p == nil {
		return nil, vm.Errorf(string(kernel.Validation), "beat %s has not begun", beat)
	}
	usage, _ := o["usage"].(map[string]any)
	settle := k.settlements(p, usage) // which says what the usage costs
	b := session.Batch{Append: []event.Draft{outcome(o, beat)}, Settle: settle}
	if s.Has(budget.Seconds) {
		took, err := c.Note(int64(math.Ceil(k.Now().Sub(p.start).Seconds())))
		if err != nil {
			return nil, err
		}
		seconds, _ := took.(int64)
		b.Spend = budget.Amounts{budget.Seconds: seconds}
	}
	// What came is recorded also where the run is being cut.
	if _, err := s.Commit(context.WithoutCancel(ctx), b); err != nil {
		return nil, err
	}
	k.ended(beat)
	if usage != nil && o["failed"] == nil {
		k.known(s.ID(), p.mark, o["content"], Tokens(usage))
	}
	k.tell(s, beat, o, usage)
	return nil, nil
}

// outcome is the event of a beat's second commit.
func outcome(o vm.Opts, beat string) event.Draft {
	d := event.Draft{Kind: event.LLMResponse, Meta: map[string]any{"beat": beat}, Data: map[string]any{}}
	if failed, ok := o["failed"].(map[string]any); ok {
		d.Kind = event.LLMCallFailed
		for _, key := range []string{"kind", "retryable", "retry_after", "status"} {
			if v := failed[key]; v != nil {
				d.Data[key] = v
			}
		}
		d.Data["error"] = failed["message"]
		if u := o["usage"]; u != nil {
			d.Data["usage"] = u
		}
		return d
	}
	d.Data["content"] = o["content"]
	if o["content"] == nil {
		d.Data["content"] = []any{}
	}
	if m, ok := d.Data["content"].(map[string]any); ok && len(m) == 0 {
		d.Data["content"] = []any{}
	}
	for _, key := range []string{"usage", "stop_reason", "finish_reason"} {
		if v := o[key]; v != nil {
			d.Data[key] = v
		}
	}
	return d
}

// tell sends the reply and its usage to the event stream.
func (k *Kernel) tell(s *session.Session, beat string, o vm.Opts, usage map[string]any) {
	if content, ok := o["content"].([]any); ok {
		all := ""
		for _, block := range content {
			if m, ok := block.(map[string]any); ok && m["type"] == "text" {
				t, _ := m["text"].(string)
				all += t
			}
		}
		if all != "" {
			k.Emit("assistant_message", s.ID(), beat, map[string]any{"text": all})
		}
	}
	if usage == nil {
		return
	}
	u := vm.Opts(usage)
	fields := map[string]any{
		"input": u.Int("input_tokens", 0), "output": u.Int("output_tokens", 0), "thinking": u.Int("thinking_tokens", 0),
		"cache_read": u.Int("cache_read_input_tokens", 0), "cache_creation": u.Int("cache_creation_input_tokens", 0),
	}
	if u.Bool("estimated", false) {
		fields["estimated"] = true
	}
	if cost := u.Int("cost", 0); cost > 0 {
		fields["cost"] = cost
	}
	k.Emit("usage", s.ID(), beat, fields)
}

// maxTokens is the most that one field of a usage counts for.
const maxTokens = 1 << 50

// Tokens counts a usage's disjoint fields: what the tag tokens is settled with. A
// fraction counts as a whole token, what is no count as none.
func Tokens(usage map[string]any) (sum int64) {
	u := vm.Opts(usage)
	for _, key := range []string{"input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"} {
		if f := math.Ceil(u.Float(key, 0)); f > 0 {
			sum += int64(min(f, maxTokens))
		}
	}
	return sum
}

func toolNames(request map[string]any) []any {
	names := []any{}
	list, _ := request["tools"].([]any)
	for _, t := range list {
		if m, ok := t.(map[string]any); ok {
			names = append(names, m["name"])
		}
	}
	return names
}
