package llm

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/session/budget"
)

// maxReply is the longest reply that is asked for where price and budget know no end.
const maxReply = 1 << 20

// modelOf is the model that a body asks, which may be another than the target's.
func modelOf(t Target, body map[string]any) string {
	if m, _ := body["model"].(string); m != "" {
		return m
	}
	return t.Model
}

func (s *Sender) priceOf(t Target, body map[string]any) *config.Price {
	if s.Price == nil {
		return nil
	}
	if p, ok := s.Price(t.Provider, modelOf(t, body)); ok {
		return &p
	}
	return nil
}

// mustPrice is priceOf for a run whose cost is bounded: a model without a price cannot
// be held to it.
func (s *Sender) mustPrice(t Target, body map[string]any) (*config.Price, error) {
	if p := s.priceOf(t, body); p != nil {
		return p, nil
	}
	name := t.Provider + "/" + modelOf(t, body)
	return nil, kernel.Errorf("llm.send", kernel.Unsupported,
		"not sent: the run bounds cost, and no price is known of %s: add to config.toml a table `[model.%q]` with the line `price = { input = …, output = … }`, in USD for a million tokens", name, name)
}

// cost is what a call took in micro-USD: what the provider says, or else what its
// tokens cost, 0 where no price is known.
func (s *Sender) cost(t Target, body map[string]any, u Usage) int64 {
	if u.Cost > 0 {
		return u.Cost
	}
	if p := s.priceOf(t, body); p != nil {
		return p.Cost(u.Input, u.CacheRead, u.CacheWrite, u.Output)
	}
	return 0
}

// longest is the limit of each reply that the pool covers, at least 1.
func (s *Sender) longest(ctx context.Context, input, replies int64, price *config.Price) (int64, error) {
	most := int64(maxReply)
	if s.Pool.Has(budget.Tokens) {
		left, _, err := s.Pool.Remaining(ctx, budget.Tokens)
		if err != nil {
			return 0, err
		}
		most = min(most, left-input)
	}
	if price != nil {
		left, _, err := s.Pool.Remaining(ctx, budget.Cost)
		if err != nil {
			return 0, err
		}
		most = min(most, price.Reply(input, left))
	}
	return max(1, most/replies), nil
}

// settleUse settles what a call outside a beat has reserved of the pool.
func (s *Sender) settleUse(ctx context.Context, c Call, h hold, tokens, cost int64) error {
	if !h.pooled {
		return nil
	}
	c.step(stepSettle, budget.Tokens, h.tokens, tokens)
	err := s.Pool.SettleUse(ctx, budget.Tokens, h.tokens, tokens)
	if h.price != nil && err == nil {
		c.step(stepSettle, budget.Cost, h.cost, cost)
		err = s.Pool.SettleUse(ctx, budget.Cost, h.cost, cost)
	}
	return err
}
