package run

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Remove takes a run out of the log: its row, its stream with the journal, and what
// lists its sessions. It leaves a tombstone in the stream event.Audit. Kinds: not_found;
// busy for a run that a process has; refused for one that has not ended, unless force is
// set, and while a session of it is in the log, which goes first.
func (l *Ledger) Remove(ctx context.Context, id, why string, force bool) error {
	const op = "run.remove"
	return l.store.Write(ctx, func(tx store.Tx) error {
		row, err := read(op, tx, id)
		if err != nil {
			return err
		}
		if row.Settled == 0 && row.Owner != "" && l.store.Alive(row.Owner) {
			return kernel.Errorf(op, kernel.Busy, "run %s is %s, owned by pid %d", id, row.State, row.PID)
		}
		if row.Settled == 0 && !force {
			return kernel.Errorf(op, kernel.Refused, "run %s has not ended; remove it with --force", id)
		}
		sessions, err := joined(id, tx.Rows)
		if err != nil {
			return err
		}
		for _, s := range sessions {
			if head, err := tx.Head(s); err != nil {
				return err
			} else if head.Seq > 0 {
				return kernel.Errorf(op, kernel.Refused, "session %s of run %s is in the log; remove it first", s, id)
			}
		}
		head, err := tx.Head(row.Stream())
		if err != nil {
			return err
		}
		data := map[string]any{"run": id, "block": row.Block, "digest": row.Digest, "project": row.Project, "state": string(row.State),
			"events": head.Seq, "head": head.Hash.String(), "why": why}
		if _, err := tx.Append(event.Audit, event.Draft{Kind: event.RunRemoved, Data: data}); err != nil {
			return err
		}
		if _, err := tx.Remove(row.Stream()); err != nil {
			return err
		}
		for _, s := range sessions {
			for _, table := range []store.Table{store.Joined, store.Open} {
				if err := tx.DeleteRow(table, id+"/"+s); err != nil {
					return err
				}
			}
		}
		for table, key := range map[store.Table]string{store.Runs: id, store.Balances: row.Stream()} {
			if err := tx.DeleteRow(table, key); err != nil {
				return err
			}
		}
		return nil
	})
}
