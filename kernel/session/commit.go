package session

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Batch is one transaction on a session, in this order: the reserve, the events,
// the settlements, the spending. A beat makes two: Reserve with the llm_request,
// then the llm_response with Settle and Spend.
type Batch struct {
	Reserve   budget.Amounts // all or nothing, of session and run
	Need      budget.Amounts // must be left as well, and is not taken
	Append    []event.Draft
	Otherwise []event.Draft // instead of Append when the reserve is refused
	Settle    []Settlement
	Spend     budget.Amounts // deducted without asking, down to 0
}

// Settlement is what became of a reservation of tokens or cost.
type Settlement struct {
	Tag            string
	Reserved, Used int64
}

// Receipt says what a Batch did. When it was not granted, Tag is the first one
// that was short, Bound is "run" when the run's pool was what was short and ""
// when it was the session, and Remaining is what that one had left.
type Receipt struct {
	Granted   bool
	Tag       string
	Bound     string
	Remaining int64
	Seqs      []int64 // of Append, or of Otherwise
}

// BoundRun is Receipt.Bound, and the field bound of a budget event, where it is
// the run's pool that moves.
const BoundRun = "run"

// Commit carries out a Batch. A refusal is no error: it is recorded, and the
// Receipt says so. Kinds of failure: validation (nothing was written), closed
// for a handle that is closed, busy when another process has the session.
func (s *Session) Commit(ctx context.Context, b Batch) (Receipt, error) {
	r, err := s.commit(ctx, "session.commit", b)
	return r, err
}

// Append adds events to the session.
func (s *Session) Append(ctx context.Context, drafts ...event.Draft) (seqs []int64, err error) {
	r, err := s.commit(ctx, "session.append", Batch{Append: drafts})
	return r.Seqs, err
}

// Reserve takes amounts from the session and its run, all or nothing.
func (s *Session) Reserve(ctx context.Context, amounts budget.Amounts) (Receipt, error) {
	return s.commit(ctx, "session.reserve", Batch{Reserve: amounts})
}

// Spend deducts without asking, down to 0.
func (s *Session) Spend(ctx context.Context, amounts budget.Amounts) error {
	_, err := s.commit(ctx, "session.spend", Batch{Spend: amounts})
	return err
}

// Settle gives back what was reserved and not used.
func (s *Session) Settle(ctx context.Context, settlements ...Settlement) error {
	_, err := s.commit(ctx, "session.settle", Batch{Settle: settlements})
	return err
}

func (s *Session) commit(ctx context.Context, op string, b Batch) (Receipt, error) {
	if s.Closed() {
		return Receipt{}, kernel.Errorf(op, kernel.Closed, "this handle on session %s is closed", s.id)
	}
	b, err := s.prepare(b)
	if err != nil {
		return Receipt{}, as(op, err)
	}
	foreign := s.book.run != nil && !s.book.local()
	var no *refusal
	var taken bool // the pool's units are taken already
	if foreign {
		// The pool first: a crash between the two leaves its units spent, and
		// never a session that has taken what the run does not cover.
		if no, taken, err = s.reserveAbroad(ctx, b); err != nil {
			return Receipt{}, as(op, err)
		}
	}
	var r Receipt
	err = s.book.store.Write(ctx, func(tx store.Tx) error {
		if err := s.check(tx, op); err != nil {
			return err
		}
		m := moves{session: s, tx: tx, batch: b, no: no}
		err := m.carryOut()
		r = m.receipt
		return err
	})
	if taken && (err != nil || !r.Granted) {
		back := s.giveBackAbroad(context.WithoutCancel(ctx), b)
		if err == nil {
			err = back
		}
	}
	if err != nil {
		return Receipt{}, as(op, err)
	}
	if r.Bound == BoundRun {
		s.book.run.Refused(r.Tag)
	}
	if foreign && r.Granted {
		err = s.settleAbroad(ctx, b)
	}
	return r, as(op, err)
}

// prepare checks a batch and encodes its events on the caller's goroutine.
func (s *Session) prepare(b Batch) (Batch, error) {
	for _, a := range []budget.Amounts{b.Reserve, b.Need, b.Spend} {
		if err := a.Validate(); err != nil {
			return b, err
		}
	}
	for _, t := range b.Settle {
		if !budget.Settled(t.Tag) {
			return b, kernel.Errorf("budget", kernel.Validation, "%q is not settled; tokens and cost are", t.Tag)
		}
		if t.Reserved < 0 || t.Used < 0 {
			return b, kernel.Errorf("budget", kernel.Validation, "%s: an amount is never negative", t.Tag)
		}
	}
	for _, list := range []*[]event.Draft{&b.Append, &b.Otherwise} {
		ready := make([]event.Draft, len(*list))
		for i, d := range *list {
			if err := event.Validate(d, false); err != nil {
				return b, err
			}
			var err error
			if ready[i], err = s.book.store.Prepare(d); err != nil {
				return b, err
			}
		}
		*list = ready
	}
	return b, nil
}
