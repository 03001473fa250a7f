package budget

import (
	"maps"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Account is one balance within one transaction: each move writes its event and
// changes the balance; Save writes the projection. The moves decide nothing:
// Short asks first.
type Account struct {
	Balance
	tx     store.Tx
	stream string
	fields Fields // in every event of the account: scope_id, or bound and session
	moved  bool
}

// Fields are further members of an event, such as child or parent.
type Fields map[string]any

// Open loads the account of a stream. fields go into each of its events.
func Open(tx store.Tx, stream string, fields Fields) (*Account, error) {
	b, err := Read(tx.Row(store.Balances, stream))
	if err != nil {
		return nil, err
	}
	return &Account{Balance: b, tx: tx, stream: stream, fields: fields}, nil
}

// Grant raises the balance. The kernel reads only the number.
func (a *Account) Grant(g Grant, more Fields) error {
	if g.Amount < 0 {
		return kernel.Errorf("budget", kernel.Validation, "a grant of %d; an amount is never negative", g.Amount)
	}
	data := Fields{"amount": g.Amount}
	if g.Desc != "" {
		data["desc"] = g.Desc
	}
	return a.record(event.BudgetGranted, g.Tag, data, more)
}

// Short reports whether the account limits the tag and holds less than amount.
func (a *Account) Short(tag string, amount int64) bool {
	return a.Holds(tag) && a.Left[tag] < amount
}

// Reserve takes an amount that Short has found covered. Where the account does
// not limit the tag, it records nothing.
func (a *Account) Reserve(tag string, amount int64) error {
	if !a.Holds(tag) {
		return nil
	}
	return a.record(event.BudgetReserved, tag, Fields{"amount": amount}, nil)
}

// Allocate takes an amount for a child. It is recorded even where the account
// does not limit the tag.
func (a *Account) Allocate(tag string, amount int64, child string) error {
	return a.record(event.BudgetReserved, tag, Fields{"amount": amount}, Fields{"child": child})
}

// Refuse records that an amount was not covered; the balance stays. remaining is
// that of the account that was short.
func (a *Account) Refuse(tag string, amount, remaining int64, more Fields) error {
	return a.record(event.BudgetRefused, tag, Fields{"amount": amount, "remaining": remaining}, more)
}

// Spend deducts without asking and stops at 0.
func (a *Account) Spend(tag string, amount int64) error {
	if !a.Holds(tag) {
		return nil
	}
	return a.record(event.BudgetSpent, tag, Fields{"amount": amount}, nil)
}

// Settle gives back what was reserved and not used, or takes what was used
// beyond it. More than is held cannot be settled: a settlement is no grant.
func (a *Account) Settle(tag string, reserved, used int64) error {
	if !a.Holds(tag) {
		return nil
	}
	if held := a.Held[tag]; reserved > held {
		return kernel.Errorf("budget", kernel.Validation, "%d %s were to be settled, but only %d are reserved", reserved, tag, held)
	}
	data := Fields{"reserved": reserved, "used": used, "returned": max(0, reserved-used)}
	if used > reserved {
		data["overdrawn"] = used - reserved
	}
	return a.record(event.BudgetSettled, tag, data, nil)
}

// Save writes the projection when something moved.
func (a *Account) Save() error {
	if !a.moved {
		return nil
	}
	row, err := a.Row()
	if err != nil {
		return err
	}
	return a.tx.PutRow(store.Balances, a.stream, row)
}

func (a *Account) record(kind, tag string, data, more Fields) error {
	maps.Copy(data, a.fields)
	maps.Copy(data, more)
	if tag != "" {
		data["tag"] = tag
	}
	if _, err := a.tx.Append(a.stream, event.Draft{Kind: kind, Data: data}); err != nil {
		return err
	}
	if kind != event.BudgetRefused {
		a.move(kind, data)
		a.moved = true
	}
	return nil
}
