package session

import (
	"context"
	"maps"

	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// moves is one Batch within its transaction.
type moves struct {
	session *Session
	tx      store.Tx
	batch   Batch
	no      *refusal // by a pool in another store
	own     *budget.Account
	pool    *budget.Account // nil without a run, or when its store is another
	receipt Receipt
}

// refusal is the first tag that was short, and where.
type refusal struct {
	tag           string
	amount, left  int64
	bound         string
	poolHasItsOwn bool // the pool's event is written already
}

func (m *moves) carryOut() (err error) {
	if m.own, err = account(m.tx, m.session.id, m.session.scope); err != nil {
		return err
	}
	if m.session.book.local() && m.batch.moves() {
		if m.pool, err = m.session.book.pool(m.tx, m.session.id); err != nil {
			return err
		}
	}
	m.session.tags.Store(&m.own.Tags)
	if m.no == nil {
		m.no = m.batch.short(m.own, m.pool)
	}
	if m.no != nil {
		return m.refuse()
	}
	m.receipt.Granted = true
	for _, step := range []func(*budget.Account) error{m.batch.reserve, nil, m.batch.settle, m.batch.spend} {
		if step == nil {
			err = m.append(m.batch.Append)
		} else if err = step(m.own); err == nil && m.pool != nil {
			err = step(m.pool)
		}
		if err != nil {
			return err
		}
	}
	if m.pool != nil {
		if err := m.pool.Save(); err != nil {
			return err
		}
	}
	return m.own.Save()
}

// refuse records the refusal and what is to be said instead.
func (m *moves) refuse() error {
	no := m.no
	m.receipt = Receipt{Tag: no.tag, Bound: no.bound, Remaining: no.left}
	more := budget.Fields{}
	if no.bound == BoundRun {
		more["bound"] = BoundRun
		if m.pool != nil && !no.poolHasItsOwn {
			if err := m.pool.Refuse(no.tag, no.amount, no.left, nil); err != nil {
				return err
			}
		}
	}
	if err := m.own.Refuse(no.tag, no.amount, no.left, more); err != nil {
		return err
	}
	return m.append(m.batch.Otherwise)
}

func (m *moves) append(drafts []event.Draft) error {
	for _, d := range drafts {
		e, err := m.tx.Append(m.session.id, d)
		if err != nil {
			return err
		}
		m.receipt.Seqs = append(m.receipt.Seqs, e.Seq)
	}
	return nil
}

// moves reports whether the batch has anything to do with a balance.
func (b Batch) moves() bool {
	return len(b.Reserve)+len(b.Need)+len(b.Settle)+len(b.Spend) > 0
}

// short finds the first tag that session or pool does not cover; pool may be
// nil. Where both are short it is the smaller one that decides, and the run when
// they are even: its bound was hit.
func (b Batch) short(own, pool *budget.Account) *refusal {
	wanted := maps.Clone(b.Reserve)
	if wanted == nil {
		wanted = budget.Amounts{}
	}
	for tag, n := range b.Need {
		wanted[tag] = max(wanted[tag], n)
	}
	for _, tag := range wanted.Tags() {
		n := wanted[tag]
		byOwn := own.Short(tag, n)
		if pool != nil && pool.Short(tag, n) && (!byOwn || pool.Left[tag] <= own.Left[tag]) {
			return &refusal{tag: tag, amount: n, left: pool.Left[tag], bound: BoundRun}
		}
		if byOwn {
			return &refusal{tag: tag, amount: n, left: own.Left[tag]}
		}
	}
	return nil
}

func (b Batch) reserve(a *budget.Account) error {
	for _, tag := range b.Reserve.Tags() {
		if err := a.Reserve(tag, b.Reserve[tag]); err != nil {
			return err
		}
	}
	return nil
}

// settle gives back at most what is held: a grant that came between reserve and
// settlement holds less, and the use beyond it is overdrawn.
func (b Batch) settle(a *budget.Account) error {
	for _, t := range b.Settle {
		if err := a.Settle(t.Tag, min(t.Reserved, a.Held[t.Tag]), t.Used); err != nil {
			return err
		}
	}
	return nil
}

func (b Batch) spend(a *budget.Account) error {
	for _, tag := range b.Spend.Tags() {
		if err := a.Spend(tag, b.Spend[tag]); err != nil {
			return err
		}
	}
	return nil
}

// reserveAbroad reserves in a pool that lives in another store. The session is
// asked first, without obligation, so that what it refuses costs the pool
// nothing. taken reports that the pool has given the units.
func (s *Session) reserveAbroad(ctx context.Context, b Batch) (no *refusal, taken bool, err error) {
	if len(b.Reserve)+len(b.Need) == 0 {
		return nil, false, nil
	}
	left, err := s.Balance(ctx)
	if err != nil {
		return nil, false, err
	}
	err = s.book.run.Store().Write(ctx, func(tx store.Tx) error {
		pool, err := s.book.pool(tx, s.id)
		if err != nil {
			return err
		}
		no = b.short(&budget.Account{Balance: left}, pool)
		switch {
		case no == nil:
			if err := b.reserve(pool); err != nil {
				return err
			}
			return pool.Save()
		case no.bound == BoundRun:
			no.poolHasItsOwn = true
			return pool.Refuse(no.tag, no.amount, no.left, nil)
		}
		return nil
	})
	switch {
	case err != nil:
	case no == nil:
		taken = true
	case no.bound == BoundRun:
		s.book.run.Refused(no.tag)
	default:
		no = nil // the session decides for itself, in its own transaction
	}
	return no, taken, err
}

// giveBackAbroad returns what reserveAbroad took when the session's own transaction
// came to nothing. Tokens and cost are settled with a use of 0. The units of other
// tags stay spent: the log has no event that returns a beat or a tool call, and a
// pool that gives too little is the safe side of the bound.
func (s *Session) giveBackAbroad(ctx context.Context, b Batch) error {
	back := Batch{}
	for _, tag := range b.Reserve.Tags() {
		if n := b.Reserve[tag]; n > 0 && budget.Settled(tag) {
			back.Settle = append(back.Settle, Settlement{Tag: tag, Reserved: n})
		}
	}
	return s.settleAbroad(ctx, back)
}

// settleAbroad does in another store what follows the session's own transaction.
func (s *Session) settleAbroad(ctx context.Context, b Batch) error {
	if len(b.Settle)+len(b.Spend) == 0 {
		return nil
	}
	return s.book.run.Store().Write(ctx, func(tx store.Tx) error {
		pool, err := s.book.pool(tx, s.id)
		if err != nil {
			return err
		}
		if err := b.settle(pool); err != nil {
			return err
		}
		if err := b.spend(pool); err != nil {
			return err
		}
		return pool.Save()
	})
}
