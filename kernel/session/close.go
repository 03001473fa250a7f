package session

import (
	"context"
	"strings"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// The reasons of session_closed.
const (
	ReasonClosed    = "closed"
	ReasonScopeExit = "scope_exit"
	ReasonError     = "error"
	ReasonDropped   = "dropped" // left open by a normal end; its children are not looked for
)

// MaxDetailChars is where the detail of an ending is cut.
const MaxDetailChars = 200

// Close ends the session through this handle; a second call does nothing. It
// succeeds with open children, whose ids it records. reason "" is ReasonClosed.
func (s *Session) Close(ctx context.Context, reason, detail string) error {
	const op = "session.close"
	if s.Closed() {
		return nil
	}
	err := s.book.store.Write(ctx, func(tx store.Tx) error {
		if err := s.check(tx, op); err != nil {
			return err
		}
		return s.book.end(tx, s.id, reason, detail)
	})
	if err != nil {
		return as(op, err)
	}
	s.closed.Store(true)
	s.book.forget(s.id)
	return nil
}

// Drop is the backstop for a handle that nobody holds any more: it queues the
// ending and does not wait. A session that was lost or has ended stays as it is.
func (s *Session) Drop() {
	if s.Closed() || s.closed.Swap(true) {
		return
	}
	s.book.forget(s.id)
	s.book.store.Later(func(tx store.Tx) error {
		if r, ok, err := readRow(tx, s.id); err != nil || !ok || r.ended {
			return err
		}
		if s.check(tx, "session.close") != nil {
			return nil
		}
		return s.book.end(tx, s.id, ReasonDropped, "")
	})
}

// CloseRun ends every open session of the Book's run in this store, those of
// earlier attempts included, in one transaction; without a run, those that the
// Book has open. After it every handle of the Book refuses writes.
func (b *Book) CloseRun(ctx context.Context, reason, detail string) error {
	b.over.Store(true)
	err := b.store.Write(ctx, func(tx store.Tx) error {
		open, err := b.open(tx)
		if err != nil {
			return err
		}
		for _, id := range open {
			r, ok, err := readRow(tx, id)
			if err != nil {
				return err
			}
			l, leased, err := readLease(tx, id)
			if err != nil {
				return err
			}
			taken := leased && l.owner != "" && l.owner != b.store.Owner() && b.store.Alive(l.owner)
			if !ok || r.ended || taken {
				continue
			}
			if err := b.end(tx, id, reason, detail); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.over.Store(false)
	}
	return as("session.close", err)
}

// open lists the sessions that CloseRun ends.
func (b *Book) open(tx store.Tx) (ids []string, err error) {
	if b.run != nil {
		return under(tx, store.Open, b.run.ID())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.mine {
		ids = append(ids, id)
	}
	return ids, nil
}

// under lists what follows prefix + "/" in the keys of a projection.
func under(tx store.Tx, table store.Table, prefix string) (rest []string, err error) {
	prefix += "/"
	for after := prefix; ; {
		rows, err := tx.Rows(table, after, store.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			id, ok := strings.CutPrefix(r.Key, prefix)
			if !ok {
				return rest, nil
			}
			rest = append(rest, id)
			after = r.Key
		}
		if len(rows) < store.MaxPage {
			return rest, nil
		}
	}
}

// end writes the ending and takes the session out of the projections of what is
// open.
func (b *Book) end(tx store.Tx, id, reason, detail string) error {
	if reason == "" {
		reason = ReasonClosed
	}
	data := map[string]any{"reason": reason}
	if detail != "" {
		data["detail"] = cut(detail)
	}
	if reason != ReasonDropped {
		children, err := under(tx, store.Children, id)
		if err != nil {
			return err
		}
		if len(children) > 0 {
			list := make([]any, len(children))
			for i, c := range children {
				list[i] = c
			}
			data["open_children"] = list
		}
	}
	if _, err := tx.Append(id, event.Draft{Kind: event.SessionClosed, Data: data}); err != nil {
		return err
	}
	r, _, err := readRow(tx, id)
	if err != nil {
		return err
	}
	r.ended = true
	if err := r.write(tx, id); err != nil {
		return err
	}
	if r.parent != "" {
		if err := tx.DeleteRow(store.Children, r.parent+"/"+id); err != nil {
			return err
		}
	}
	if r.run != "" {
		if err := tx.DeleteRow(store.Open, openKey(r.run, id)); err != nil {
			return err
		}
	}
	return tx.DeleteRow(store.Leases, id)
}

func (b *Book) forget(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mine, id)
}

func cut(s string) string {
	n := 0
	for i := range s {
		if n++; n > MaxDetailChars {
			return s[:i] + "..."
		}
	}
	return s
}
