package verify

import (
	"context"
	"errors"
	"fmt"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// MaxFaults bounds the faults that a report lists; the rest are counted.
const MaxFaults = 100

// Fault is one thing that is not as it was written. Table and Key are set for a row of a
// projection, Stream and Seq for an event.
type Fault struct {
	Stream string
	Seq    int64
	Table  store.Table
	Key    string
	What   string
}

// String says where, then what.
func (f Fault) String() string {
	switch {
	case f.Table != "":
		return fmt.Sprintf("projection %s, row %s: %s", f.Table, f.Key, f.What)
	case f.Stream != "" && f.Seq > 0:
		return fmt.Sprintf("%s:%d: %s", f.Stream, f.Seq, f.What)
	case f.Stream != "":
		return f.Stream + ": " + f.What
	}
	return f.What
}

// Report is what was looked at and what was found, in the order in which it was found.
type Report struct {
	store.Audited
	Faults []Fault
	More   int   // faults beyond MaxFaults
	Fixed  []Fix // by Repair alone
}

// OK reports that nothing was found.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

// Fix is a row of a projection that was rebuilt: put where Value is set, else removed.
type Fix struct {
	Table store.Table
	Key   string
	Value []byte // what it is now
	was   []byte // what it was when it was looked at; nil for none
}

// Check reads the whole store and compares. heads are ends of streams that were kept
// elsewhere: a stream that was cut off since does not reach its own. An error means that
// nothing could be said; a damaged store is a report.
func Check(ctx context.Context, s store.Store, heads []event.Head) (*Report, error) {
	r, _, err := check(ctx, s, heads)
	return r, err
}

// Repair rebuilds the rows of projections that Check finds wrong, in one transaction. It
// changes no event and no content, and nothing at all where an event is not what was
// written, since a projection of it would be as wrong. Rows that somebody wrote in
// between stay as they are. The report's faults are those that are left.
func Repair(ctx context.Context, s store.Store, heads []event.Head) (*Report, error) {
	r, fixes, err := check(ctx, s, heads)
	if err != nil || len(fixes) == 0 {
		return r, err
	}
	for _, f := range r.Faults {
		if f.Table == "" {
			return r, nil
		}
	}
	var done []Fix
	err = s.Write(ctx, func(tx store.Tx) error {
		done = nil
		for _, f := range fixes {
			is, ok, err := tx.Row(f.Table, f.Key)
			if err != nil {
				return err
			}
			if ok != (f.was != nil) || string(is) != string(f.was) {
				continue
			}
			if f.Value == nil {
				err = tx.DeleteRow(f.Table, f.Key)
			} else {
				err = tx.PutRow(f.Table, f.Key, f.Value)
			}
			if err != nil {
				return err
			}
			done = append(done, f)
		}
		return nil
	})
	if err != nil {
		return r, err
	}
	after, _, err := check(ctx, s, heads)
	if err != nil {
		return r, err
	}
	after.Fixed = done
	return after, nil
}

func check(ctx context.Context, s store.Store, heads []event.Head) (*Report, []Fix, error) {
	a, ok := s.(store.Auditor)
	if !ok {
		return nil, nil, kernel.Errorf("verify", kernel.Unsupported, "the store %s cannot be read whole", s.URL())
	}
	r := &Report{}
	m := newModel()
	ends := wanted(heads)
	broken := map[string]bool{}
	found := func(f Fault) {
		if len(r.Faults) < MaxFaults {
			r.Faults = append(r.Faults, f)
		} else {
			r.More++
		}
	}
	var err error
	r.Audited, err = a.Audit(ctx, store.Audit{
		Fault: func(f store.Fault) {
			broken[f.Stream] = true
			found(Fault{Stream: f.Stream, Seq: f.Seq, What: f.What})
		},
		Event: func(e event.Event) error {
			ends.saw(e, found)
			if err := m.event(e); err != nil {
				if !errors.Is(err, kernel.Corruption) {
					return err
				}
				found(Fault{Stream: e.Stream, Seq: e.Seq, What: kernel.Message(err)})
			}
			return nil
		},
		Row: func(t store.Table, row store.Row) error { m.row(t, row); return nil },
	})
	if err != nil {
		return nil, nil, err
	}
	ends.left(found)
	if !r.Whole {
		return r, nil, nil // what could not be read would be missing in every fold
	}
	fixes, err := m.compare(func(t store.Table, key, what string) {
		found(Fault{Table: t, Key: key, What: what})
	}, broken)
	return r, fixes, err
}

// ends are the heads that were kept elsewhere.
type ends map[string]map[int64]event.Hash

func wanted(heads []event.Head) ends {
	e := ends{}
	for _, h := range heads {
		if e[h.Stream] == nil {
			e[h.Stream] = map[int64]event.Hash{}
		}
		e[h.Stream][h.Seq] = h.Hash
	}
	return e
}

func (w ends) saw(e event.Event, found func(Fault)) {
	hash, ok := w[e.Stream][e.Seq]
	if !ok {
		return
	}
	if hash != e.Hash {
		found(Fault{Stream: e.Stream, Seq: e.Seq, What: "the hash is " + e.Hash.String() + ", not the one of the head: the stream was written anew"})
	}
	delete(w[e.Stream], e.Seq)
}

func (w ends) left(found func(Fault)) {
	for stream, seqs := range w {
		for seq := range seqs {
			found(Fault{Stream: stream, Seq: seq, What: "the head is not there: the end of the stream was cut off, or it is not in this store"})
		}
	}
}
