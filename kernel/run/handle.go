package run

import (
	"context"
	"sync"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Outcome is how a run ends. StoppedBy "" is the first bound that the handle was
// told of.
type Outcome struct {
	State     State
	Result    any // a neutral value
	Error     map[string]any
	StoppedBy string
}

// Handle is a run in the hands of the process that runs it. It implements
// session.Run and is safe for concurrent use.
type Handle struct {
	ledger  *Ledger
	id      string
	attempt int64
	bounds  budget.Amounts
	journal journal

	mu    sync.Mutex
	bound string
	ended Ended
}

// Ended is what a settled run consists of: what a cut tail would have to forge.
type Ended struct {
	Sessions []string
	Heads    []event.Head // of the run's own stream and of those sessions that share its store
}

// Ended gives what Settle wrote; nothing before it.
func (h *Handle) Ended() Ended {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

func (l *Ledger) handle(r Row) *Handle {
	h := &Handle{ledger: l, id: r.ID, attempt: r.Attempt, bounds: r.Bounds}
	h.journal.store, h.journal.stream = l.store, h.Stream()
	return h
}

// ID names the run.
func (h *Handle) ID() string { return h.id }

// Attempt counts the takings of the run, from 1.
func (h *Handle) Attempt() int64 { return h.attempt }

// Stream is the run's stream in the log.
func (h *Handle) Stream() string { return StreamOf(h.id) }

// Store is where that stream lives.
func (h *Handle) Store() store.Store { return h.ledger.store }

// Has reports whether a bound of the run limits the tag.
func (h *Handle) Has(tag string) bool { _, ok := h.bounds[tag]; return ok }

// Remaining is what is left of the pool; ok is false for a tag without a bound.
func (h *Handle) Remaining(ctx context.Context, tag string) (left int64, ok bool, err error) {
	b, err := budget.Read(h.ledger.store.Row(ctx, store.Balances, h.Stream()))
	return b.Left[tag], b.Holds(tag), err
}

// Refused is told that the pool refused; the first bound is kept.
func (h *Handle) Refused(tag string) { h.Fired(tag) }

// Fired is told that a bound fired: deadline, cancel, signal, …; the first one is
// kept.
func (h *Handle) Fired(bound string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bound == "" {
		h.bound = bound
	}
}

// Bound is the first bound of the run that refused or fired; "" for none.
func (h *Handle) Bound() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bound
}

// mine reads the row and refuses when another attempt has it.
func (h *Handle) mine(op string, tx store.Tx) (Row, error) {
	row, err := read(op, tx, h.id)
	if err == nil && (row.Attempt != h.attempt || row.State.Terminal()) {
		err = kernel.Errorf(op, kernel.Closed, "run %s is %s, attempt %d; this is attempt %d", h.id, row.State, row.Attempt, h.attempt)
	}
	return row, err
}

// Wait records that the run stands still until an approval is decided.
func (h *Handle) Wait(ctx context.Context, approval string) error {
	const op = "run.wait"
	return h.ledger.store.Write(ctx, func(tx store.Tx) error {
		row, err := h.mine(op, tx)
		if err != nil {
			return err
		}
		if row.State, err = next(op, h.id, row.State, wait, Waiting); err != nil {
			return err
		}
		row.Approval = approval
		if _, err := tx.Append(h.Stream(), event.Draft{Kind: event.RunWaiting, Data: map[string]any{"approval": approval}}); err != nil {
			return err
		}
		return row.write(tx)
	})
}

// GoOn ends a Wait in the process that made it.
func (h *Handle) GoOn(ctx context.Context) error {
	const op = "run.go_on"
	return h.ledger.store.Write(ctx, func(tx store.Tx) error {
		row, err := h.mine(op, tx)
		if err != nil {
			return err
		}
		_, err = h.ledger.owned(op, tx, row, goOn)
		return err
	})
}

// Settle ends the run: state and result in one transaction, after everything the
// journal has was written. Where some of that was lost, a run that completed is
// settled as failed, and the loss is returned. Kind closed when another attempt has
// it or it has ended; validation for a result without log JSON, after which it can
// still be settled otherwise.
func (h *Handle) Settle(ctx context.Context, o Outcome) error {
	const op = "run.settle"
	if o.StoppedBy == "" {
		o.StoppedBy = h.Bound()
	}
	lost := h.ledger.store.Flush(ctx)
	if lost != nil {
		lost = kernel.Errorf(op, kernel.Storage, "what was queued for the log was not written: %w", lost)
		if o.State == Completed {
			o.State, o.Result = Failed, nil
			o.Error = map[string]any{"kind": string(kernel.Storage), "message": kernel.Message(lost)}
		}
	}
	if err := h.settle(ctx, op, o); err != nil {
		return err
	}
	return lost
}

func (h *Handle) settle(ctx context.Context, op string, o Outcome) error {
	return h.ledger.store.Write(ctx, func(tx store.Tx) error {
		row, err := h.mine(op, tx)
		if err != nil {
			return err
		}
		if err := h.ledger.settle(op, tx, row, settle, o); err != nil {
			return err
		}
		ended := Ended{}
		if ended.Sessions, err = joined(h.id, tx.Rows); err != nil {
			return err
		}
		for _, stream := range append([]string{h.Stream()}, ended.Sessions...) {
			head, err := tx.Head(stream)
			if err != nil {
				return err
			}
			if head.Seq > 0 {
				ended.Heads = append(ended.Heads, head)
			}
		}
		h.mu.Lock()
		h.ended = ended
		h.mu.Unlock()
		return nil
	})
}
