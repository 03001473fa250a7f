package run

import (
	"context"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Ledger begins runs and tells what became of them. It is safe for concurrent
// use.
type Ledger struct {
	store store.Store
	ids   *ident.Source
	pid   int
}

// New returns the ledger of a store.
func New(s store.Store, ids *ident.Source, pid int) *Ledger {
	return &Ledger{store: s, ids: ids, pid: pid}
}

// Start says what is to be run. Bounds are the run's pool: tags with amounts,
// cost in micro-USD.
type Start struct {
	Block   string
	Digest  string
	Project string
	Labels  map[string]any
	Bounds  budget.Amounts
	// Deadline is the bound on wall time, which its owner keeps; 0 is none. It is
	// recorded beside the others and is no part of the pool.
	Deadline time.Duration
	// Input is what the run is made of beside its bounds, so that it can be made again:
	// input in run_queued.
	Input map[string]any
	// ID names the run; "" makes a new one. A replay gives the recorded one.
	ID string
}

// deadlineKey is the deadline's place among the recorded bounds, in milliseconds.
const deadlineKey = "deadline_ms"

// bounds are all bounds as the record has them.
func (s Start) bounds() map[string]any {
	m := amounts(s.Bounds)
	if s.Deadline > 0 {
		m[deadlineKey] = s.Deadline.Milliseconds()
	}
	return m
}

// Begin queues a run and owns it, in one transaction: an attached run.
func (l *Ledger) Begin(ctx context.Context, s Start) (*Handle, error) {
	row, err := l.queue(ctx, s, true)
	if err != nil {
		return nil, err
	}
	return l.handle(row), nil
}

// Queue records a run that some process is to Own.
func (l *Ledger) Queue(ctx context.Context, s Start) (Row, error) { return l.queue(ctx, s, false) }

func (l *Ledger) queue(ctx context.Context, s Start, attached bool) (row Row, err error) {
	const op = "run.queue"
	if err := s.Bounds.Validate(); err != nil {
		return row, err
	}
	id := s.ID
	if id == "" {
		if id, err = l.ids.Ordered(); err != nil {
			return row, kernel.Errorf(op, kernel.Storage, "no id: %w", err)
		}
	}
	data := map[string]any{"block": s.Block, "digest": s.Digest, "project": s.Project,
		"labels": s.Labels, "bounds": s.bounds()}
	if s.Input != nil {
		data["input"] = s.Input
	}
	err = l.store.Write(ctx, func(tx store.Tx) error {
		e, err := tx.Append(StreamOf(id), event.Draft{Kind: event.RunQueued, Data: data})
		if err != nil {
			return err
		}
		// The row is made of what was stored, from which the secrets are gone.
		if row, err = decode(e.Data); err != nil {
			return err
		}
		row.ID, row.State, row.CreatedMS = id, Queued, tx.NowMS()
		pool, err := budget.Open(tx, row.Stream(), budget.Fields{"bound": "run"})
		if err != nil {
			return err
		}
		for _, tag := range s.Bounds.Tags() {
			if err := pool.Grant(budget.Grant{Tag: tag, Amount: s.Bounds[tag]}, nil); err != nil {
				return err
			}
		}
		if err := pool.Save(); err != nil {
			return err
		}
		if attached {
			row, err = l.owned(op, tx, row, own)
			return err
		}
		return row.write(tx)
	})
	return row, err
}

// owned makes this process the owner of a run, within a transaction.
func (l *Ledger) owned(op string, tx store.Tx, row Row, m move) (Row, error) {
	to, err := next(op, row.ID, l.seen(row).State, m, Running)
	if err != nil {
		return row, err
	}
	row.State, row.Owner, row.PID, row.Approval = to, l.store.Owner(), int64(l.pid), ""
	if m != goOn {
		row.Attempt++
	}
	_, err = tx.Append(row.Stream(), event.Draft{Kind: event.RunOwned,
		Data: map[string]any{"attempt": row.Attempt, "pid": row.PID}})
	if err != nil {
		return row, err
	}
	return row, row.write(tx)
}

// Own begins a queued run. Kinds: not_found, closed for one that is not queued.
func (l *Ledger) Own(ctx context.Context, id string) (*Handle, error) {
	return l.obtain(ctx, "run.own", id, own)
}

// Take takes up a waiting or lost run as its next attempt. Kinds: not_found,
// closed for a run that lives or has ended.
func (l *Ledger) Take(ctx context.Context, id string) (*Handle, error) {
	return l.obtain(ctx, "run.resume", id, take)
}

func (l *Ledger) obtain(ctx context.Context, op, id string, m move) (*Handle, error) {
	var row Row
	err := l.store.Write(ctx, func(tx store.Tx) (err error) {
		if row, err = read(op, tx, id); err != nil {
			return err
		}
		row, err = l.owned(op, tx, row, m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l.handle(row), nil
}

// Cancel ends a run that no process runs: queued, waiting or lost. A run that
// has an owner is cancelled through it.
func (l *Ledger) Cancel(ctx context.Context, id string, o Outcome) error {
	const op = "run.cancel"
	return l.store.Write(ctx, func(tx store.Tx) error {
		row, err := read(op, tx, id)
		if err != nil {
			return err
		}
		m := cancel
		if l.seen(row).State == Lost {
			m = bury
		}
		return l.settle(op, tx, row, m, o)
	})
}

// settle writes an ending.
func (l *Ledger) settle(op string, tx store.Tx, row Row, m move, o Outcome) error {
	to, err := next(op, row.ID, l.seen(row).State, m, o.State)
	if err != nil {
		return err
	}
	data := map[string]any{"state": string(to)}
	if o.StoppedBy != "" {
		data["stopped_by"] = o.StoppedBy
	}
	if o.Error != nil {
		data["error"] = o.Error
	}
	if o.Result != nil || to == Completed {
		data["result"] = o.Result
	}
	e, err := tx.Append(row.Stream(), event.Draft{Kind: event.RunSettled, Data: data})
	if err != nil {
		return err
	}
	stored, err := logjson.Object(e.Data) // from which the secrets are gone
	if err != nil {
		return err
	}
	row.Error, _ = stored["error"].(map[string]any)
	row.State, row.StoppedBy, row.EndedMS, row.Settled = to, o.StoppedBy, tx.NowMS(), e.Seq
	return row.write(tx)
}

// seen is the row as it is: a running run whose owner is gone is lost.
func (l *Ledger) seen(r Row) Row {
	if r.State == Running && !l.store.Alive(r.Owner) {
		r.State = Lost
	}
	return r
}

// Look reads a run without its result and its sessions: the row alone. Kind
// not_found when there is none.
func (l *Ledger) Look(ctx context.Context, id string) (Row, error) {
	value, ok, err := l.store.Row(ctx, store.Runs, id)
	row, err := load("run.look", id, value, ok, err)
	if err != nil {
		return row, err
	}
	return l.seen(row), nil
}

// Get reads a run with its result; not_found when there is none.
func (l *Ledger) Get(ctx context.Context, id string) (Row, error) {
	value, ok, err := l.store.Row(ctx, store.Runs, id)
	row, err := load("run.get", id, value, ok, err)
	if err != nil {
		return row, err
	}
	row.Sessions, err = joined(id, func(table store.Table, after string, limit int) ([]store.Row, error) {
		return l.store.Rows(ctx, table, after, limit)
	})
	if err != nil || row.Settled == 0 {
		return l.seen(row), err
	}
	events, _, err := l.store.Events(ctx, row.Stream(), store.Query{From: row.Settled, Limit: 1})
	if err != nil {
		return row, err
	}
	if len(events) == 1 {
		data, err := logjson.Object(events[0].Data)
		if err != nil {
			return row, kernel.Errorf("run.get", kernel.Corruption, "the ending of run %s does not decode: %w", id, err)
		}
		row.Result = data["result"]
	}
	return row, nil
}

// List reads runs in the order of their ids, which is that of their beginning,
// strictly after an id; without results.
func (l *Ledger) List(ctx context.Context, after string, limit int) ([]Row, error) {
	rows, err := l.store.Rows(ctx, store.Runs, after, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Row, len(rows))
	for i, r := range rows {
		if out[i], err = decode(r.Value); err != nil {
			return nil, err
		}
		out[i] = l.seen(out[i])
	}
	return out, nil
}
