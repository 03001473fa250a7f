package session

import (
	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// lease says who may write a session. owner is the opening of the store that
// holds it (the operating system tells whether it lives), "" when it was given
// up; epoch counts the takings, so that a handle from before a takeover is known.
type lease struct {
	owner string
	pid   int64
	run   string
	epoch int64
}

func readLease(tx store.Tx, id string) (lease, bool, error) {
	m, err := object(tx.Row(store.Leases, id))
	if err != nil || m == nil {
		return lease{}, false, err
	}
	l := lease{owner: str(m, "owner"), run: str(m, "run")}
	l.pid, _ = m["pid"].(int64)
	l.epoch, _ = m["epoch"].(int64)
	return l, true, nil
}

func (l lease) write(tx store.Tx, id string) error {
	b, err := logjson.Marshal(map[string]any{"owner": l.owner, "pid": l.pid, "run": l.run, "epoch": l.epoch})
	if err != nil {
		return err
	}
	return tx.PutRow(store.Leases, id, b)
}

func (l lease) busy(op, id string) error {
	run := l.run
	if run == "" {
		run = "none"
	}
	return kernel.Errorf(op, kernel.Busy, "session %s is written by pid %d, run %s", id, l.pid, run)
}

// take gives this run the right to write a session. fresh is false when its process
// had that already, so that what looks unfinished in the session may still be under
// way. What another run of the process holds open is busy until that run has ended;
// handles of one run interleave.
func (b *Book) take(tx store.Tx, id string) (epoch int64, fresh bool, err error) {
	l, ok, err := readLease(tx, id)
	if err != nil {
		return 0, false, err
	}
	own := b.store.Owner()
	if ok && l.owner == own {
		if l.run == b.runID() {
			return l.epoch, false, nil
		}
		if l.run != "" {
			live, err := unsettled(tx, l.run)
			if err != nil {
				return 0, false, err
			}
			if live {
				return 0, false, l.busy("session.resume", id)
			}
			l.epoch++ // its handles are of a run that is over
		}
		l.run = b.runID()
		return l.epoch, false, l.write(tx, id)
	}
	if ok && l.owner != "" && b.store.Alive(l.owner) {
		return 0, false, l.busy("session.resume", id)
	}
	l = lease{owner: own, pid: int64(b.pid), run: b.runID(), epoch: l.epoch + 1}
	return l.epoch, true, l.write(tx, id)
}

// unsettled reports whether a run of this process still lives. One whose row is in
// another store counts as living: it takes its leases with it when it ends.
func unsettled(tx store.Tx, run string) (bool, error) {
	m, err := object(tx.Row(store.Runs, run))
	return m["settled"] == nil, err
}

// check refuses a write by a handle that has lost its session. A session that
// has ended has no lease any more, and then its other handles' last words are
// still recorded.
func (s *Session) check(tx store.Tx, op string) error {
	l, ok, err := readLease(tx, s.id)
	switch {
	case err != nil:
		return err
	case !ok:
		return nil
	case l.owner == "":
		return kernel.Errorf(op, kernel.Closed, "session %s was given up", s.id)
	case l.owner != s.book.store.Owner() || l.epoch != s.epoch:
		return l.busy(op, s.id)
	}
	return nil
}
