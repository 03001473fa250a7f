package ashlar

import (
	"context"
	"strings"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
)

// Removal says what was taken out of the log.
type Removal struct {
	Sessions, Runs []string
	Freed          int64 // rows of content and messages that nobody refers to any more
}

// Remove takes sessions and runs out of the log, each whole, with a tombstone in the
// stream "audit"; a run takes its sessions with it. What they shared with others stays.
// force removes what was interrupted and could be taken up again. It stops at the first
// that cannot go; Removal says what went before.
func (w *Workspace) Remove(ctx context.Context, ids []string, force bool) (r Removal, err error) {
	s, ledger, err := w.retained(ctx)
	if err != nil {
		return r, err
	}
	for _, id := range ids {
		id = strings.TrimPrefix(id, "run:")
		row, err := ledger.Get(ctx, id)
		switch {
		case err == nil:
			err = r.run(ctx, s, ledger, row, "removed", force)
		case kernel.KindOf(err) == kernel.NotFound:
			err = r.session(ctx, s, id, "removed", force)
		}
		if err != nil {
			return r, err
		}
	}
	return r.collected(ctx, s)
}

// Prune takes out every session that has ended and whose last event is older than age,
// then every run that ended before that and has no session left. With dry it says what
// would go.
func (w *Workspace) Prune(ctx context.Context, age time.Duration, dry bool) (r Removal, err error) {
	before := w.opts.Clock.Now().Add(-age)
	s, ledger, err := w.retained(ctx)
	if err != nil {
		return r, err
	}
	const why = "pruned"
	gone := map[string]bool{}
	var old []string
	for after := ""; ; {
		heads, err := s.Streams(ctx, after, store.MaxPage)
		if err != nil {
			return r, err
		}
		for _, h := range heads {
			ms, ended, ok, err := session.Ended(ctx, s, h.Stream)
			if err != nil {
				return r, err
			}
			if ok && ended && ms < before.UnixMilli() {
				old = append(old, h.Stream)
			}
		}
		if len(heads) < store.MaxPage {
			break
		}
		after = heads[len(heads)-1].Stream
	}
	for _, id := range old {
		gone[id] = true
		if dry {
			r.Sessions = append(r.Sessions, id)
		} else if err := r.session(ctx, s, id, why, false); err != nil {
			return r, err
		}
	}
	for after := ""; ; {
		rows, err := ledger.List(ctx, after, store.MaxPage)
		if err != nil {
			return r, err
		}
		for _, row := range rows {
			after = row.ID
			if row.Settled == 0 || row.EndedMS >= before.UnixMilli() {
				continue
			}
			if row, err = ledger.Get(ctx, row.ID); err != nil {
				return r, err
			}
			left, err := lives(ctx, s, row.Sessions, gone)
			if err != nil {
				return r, err
			}
			switch {
			case left:
			case dry:
				r.Runs = append(r.Runs, row.ID)
			default:
				if err := r.run(ctx, s, ledger, row, why, false); err != nil {
					return r, err
				}
			}
		}
		if len(rows) < store.MaxPage {
			break
		}
	}
	if dry {
		return r, nil
	}
	return r.collected(ctx, s)
}

// lives reports whether one of the sessions is in the log.
func lives(ctx context.Context, s store.Reader, ids []string, gone map[string]bool) (bool, error) {
	for _, id := range ids {
		h, err := s.Head(ctx, id)
		if err != nil {
			return false, err
		}
		if h.Seq > 0 && !gone[id] {
			return true, nil
		}
	}
	return false, nil
}

func (w *Workspace) retained(ctx context.Context) (store.Store, *run.Ledger, error) {
	s, err := w.Store(ctx)
	if err != nil {
		return nil, nil, err
	}
	ledger, err := w.Runs(ctx)
	return s, ledger, err
}

func (r *Removal) session(ctx context.Context, s store.Store, id, why string, force bool) error {
	err := session.Remove(ctx, s, id, why, force)
	if err == nil {
		r.Sessions = append(r.Sessions, id)
	}
	return err
}

// run takes a run out with its sessions.
func (r *Removal) run(ctx context.Context, s store.Store, ledger *run.Ledger, row run.Row, why string, force bool) error {
	for _, id := range row.Sessions {
		if h, err := s.Head(ctx, id); err != nil {
			return err
		} else if h.Seq == 0 {
			continue // it went before, or lives in another store
		}
		if err := r.session(ctx, s, id, why, force); err != nil {
			return err
		}
	}
	err := ledger.Remove(ctx, row.ID, why, force)
	if err == nil {
		r.Runs = append(r.Runs, row.ID)
	}
	return err
}

func (r *Removal) collected(ctx context.Context, s store.Store) (_ Removal, err error) {
	if len(r.Sessions)+len(r.Runs) > 0 {
		r.Freed, err = s.Collect(ctx)
	}
	return *r, err
}
