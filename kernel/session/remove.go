package session

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Remove takes a session out of the log, whole, and leaves a tombstone in the stream
// event.Audit: which session it was, whose, how long, where its chain ended, and why it
// went. Its children and its run stay. A session that a process writes is busy; one that
// was interrupted, and could be taken up again, is refused unless force is set. Other
// kinds: not_found.
func Remove(ctx context.Context, st store.Store, id, why string, force bool) error {
	const op = "session.remove"
	err := st.Write(ctx, func(tx store.Tx) error {
		r, ok, err := readRow(tx, id)
		if err != nil {
			return err
		}
		if !ok {
			return kernel.Errorf(op, kernel.NotFound, "%q is no session of this store", id)
		}
		l, leased, err := readLease(tx, id)
		if err != nil {
			return err
		}
		if leased && l.owner != "" && st.Alive(l.owner) {
			return l.busy(op, id)
		}
		if !r.ended && !force {
			return kernel.Errorf(op, kernel.Refused, "session %s was interrupted and can be resumed; remove it with --force", id)
		}
		head, err := tx.Head(id)
		if err != nil {
			return err
		}
		data := map[string]any{"session": id, "owner": r.owner, "events": head.Seq, "head": head.Hash.String(), "why": why, "ended": r.ended}
		for key, v := range map[string]string{"parent": r.parent, "run": r.run} {
			if v != "" {
				data[key] = v
			}
		}
		if _, err := tx.Append(event.Audit, event.Draft{Kind: event.SessionRemoved, Data: data}); err != nil {
			return err
		}
		if _, err := tx.Remove(id); err != nil {
			return err
		}
		rows := map[store.Table][]string{store.Sessions: {id}, store.Leases: {id}, store.Balances: {id}}
		if r.parent != "" {
			rows[store.Children] = []string{r.parent + "/" + id}
		}
		if r.run != "" {
			rows[store.Open] = []string{openKey(r.run, id)}
		}
		for table, keys := range rows {
			for _, key := range keys {
				if err := tx.DeleteRow(table, key); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return as(op, err)
}

// Ended tells of a stream whether it is a session that has ended, and when its last
// event came; ok is false for what is no session.
func Ended(ctx context.Context, st store.Reader, id string) (ms int64, ended, ok bool, err error) {
	m, err := object(st.Row(ctx, store.Sessions, id))
	if err != nil || m == nil {
		return 0, false, false, err
	}
	ended, _ = m["ended"].(bool)
	events, _, err := st.Events(ctx, id, store.Query{Last: 1})
	if err != nil || len(events) == 0 {
		return 0, ended, true, err
	}
	return events[0].EpochMS, ended, true, nil
}
