package knl

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// priceOf gives the price of the model that a beat is going to ask, nil where cost is
// not bounded, or where the device has a price of its own for a grant of cost. What
// has no price cannot be held to a bound of cost: unsupported.
func (k *Kernel) priceOf(ctx context.Context, s *session.Session, o vm.Opts) (*config.Price, error) {
	if !s.Has(budget.Cost) {
		return nil, nil
	}
	own := o.Int("cost", 0) > 0
	if tag, _ := s.Tag(); own && tag == budget.Cost {
		_, pooled, err := s.RunRemaining(ctx, budget.Cost)
		if err != nil || !pooled {
			return nil, err
		}
	}
	fn := o.Func("target")
	if fn == nil {
		return nil, vm.Errorf(string(kernel.Unsupported),
			"the budget bounds cost, and the device's llm is a function of the script, whose price nobody knows: use a port, or give the session a grant of cost and the device a cost function")
	}
	out, err := fn.Call(ctx)
	if err != nil {
		return nil, err
	}
	var target vm.Opts
	if len(out) > 0 {
		if m, ok := out[0].(map[string]any); ok {
			target = m
		}
	}
	provider, model := target.Str("provider", ""), target.Str("model", "")
	if request, _ := o["request"].(map[string]any); request != nil {
		if m, _ := request["model"].(string); m != "" {
			model = m
		}
	}
	if k.Price != nil {
		if p, ok := k.Price(provider, model); ok {
			return &p, nil
		}
	}
	return nil, vm.Errorf(string(kernel.Unsupported),
		"the budget bounds cost, and no price is known of %s/%s: add to config.toml a table `[model.%q]` with the line `price = { input = …, output = … }`, in USD for a million tokens",
		provider, model, provider+"/"+model)
}

// ownPrice puts the device's price in the place of the grant's first tag. A price of
// the script's own is for its own grant: where the run's pool pays too, it is never
// below the bound.
func (k *Kernel) ownPrice(ctx context.Context, s *session.Session, reserve budget.Amounts, p *pending, n int64) error {
	tag, ok := s.Tag()
	if !ok {
		return nil
	}
	held := map[string]*int64{budget.Tokens: &p.tokens, budget.Cost: &p.cost}[tag]
	if held != nil {
		_, pooled, err := s.RunRemaining(ctx, tag)
		if err != nil {
			return err
		}
		if pooled {
			n = max(n, *held)
		}
		*held = n
		p.own = tag == budget.Tokens && !pooled
	}
	reserve[tag] = n
	return nil
}

// settlements is what a beat is charged: what its device says, and at least what
// providers said to this process. What a call took that was sent and of which nothing
// is known stays spent. A usage without a cost gets the one that its price makes.
func (k *Kernel) settlements(p *pending, usage map[string]any) []session.Settlement {
	k.mu.Lock()
	defer k.mu.Unlock()
	u := vm.Opts(usage)
	cost := max(u.Int("cost", 0), p.sawCost)
	if p.price != nil && usage != nil {
		cost = max(cost, p.price.Cost(u.Int("input_tokens", 0), u.Int("cache_read_input_tokens", 0),
			u.Int("cache_creation_input_tokens", 0), u.Int("output_tokens", 0)))
	}
	if cost > 0 && usage != nil {
		usage["cost"] = cost
	}
	var out []session.Settlement
	for _, t := range []struct {
		tag            string
		held           bool
		reserved, used int64
	}{
		{budget.Tokens, p.reserved, p.tokens, max(Tokens(usage), p.saw)},
		{budget.Cost, p.price != nil, p.cost, cost},
	} {
		if t.held && (usage != nil || p.unsent || t.used > t.reserved) {
			out = append(out, session.Settlement{Tag: t.tag, Reserved: t.reserved, Used: t.used})
		}
	}
	return out
}
