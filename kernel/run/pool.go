package run

import (
	"context"

	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Reserve takes amounts from the run's pool without a session, all or nothing: for
// what a script does outside its beats. A tag that no bound limits is not taken. A
// refusal is no error: it is recorded, it has fired the bound, and tag says which.
// Kind closed when another attempt has the run or it has ended.
func (h *Handle) Reserve(ctx context.Context, amounts budget.Amounts) (granted bool, tag string, err error) {
	if err := amounts.Validate(); err != nil {
		return false, "", err
	}
	if !h.limits(amounts) {
		return true, "", nil
	}
	err = h.move(ctx, "run.reserve", func(pool *budget.Account) error {
		tag = "" // a transaction may be carried out twice
		for _, t := range amounts.Tags() {
			if pool.Short(t, amounts[t]) {
				tag = t
				return pool.Refuse(t, amounts[t], pool.Left[t], nil)
			}
		}
		for _, t := range amounts.Tags() {
			if err := pool.Reserve(t, amounts[t]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, "", err
	}
	if tag != "" {
		h.Fired(tag)
	}
	return tag == "", tag, nil
}

// SettleUse gives back what Reserve took of tokens or cost and nobody used, or takes
// what was used beyond it.
func (h *Handle) SettleUse(ctx context.Context, tag string, reserved, used int64) error {
	if !h.Has(tag) {
		return nil
	}
	return h.move(ctx, "run.settle_use", func(pool *budget.Account) error {
		return pool.Settle(tag, min(reserved, pool.Held[tag]), used)
	})
}

func (h *Handle) limits(amounts budget.Amounts) bool {
	for tag := range amounts {
		if h.Has(tag) {
			return true
		}
	}
	return false
}

// move changes the pool in one transaction of its own.
func (h *Handle) move(ctx context.Context, op string, do func(*budget.Account) error) error {
	return h.ledger.store.Write(ctx, func(tx store.Tx) error {
		if _, err := h.mine(op, tx); err != nil {
			return err
		}
		pool, err := budget.Open(tx, h.Stream(), budget.Fields{"bound": "run"})
		if err != nil {
			return err
		}
		if err := do(pool); err != nil {
			return err
		}
		return pool.Save()
	})
}
