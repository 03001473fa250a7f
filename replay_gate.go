package ashlar

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// gate is a scratch store that takes nothing but what the record holds: each event must
// be the next one of its stream, the same to the hash, which covers its time too. A
// transaction that comes before its turn, because another task was quicker then, is
// undone and made again when something else was written; one whose turn never comes is
// the first difference.
type gate struct {
	store.Store // in memory
	again       *replaying
	url         string

	mu      sync.Mutex // held during a transaction: they are made one at a time
	open    bool       // nothing is compared yet
	want    map[string][]event.Event
	done    map[string]int // events of each stream that came
	times   []event.Event  // what is to come, by position, for the time of the next
	next    int
	now     time.Time
	moved   chan struct{} // closed and made anew when something was written
	pending *Difference   // of the transaction that failed last
}

// errNotYet undoes a transaction.
var errNotYet = errors.New("an event that the record does not hold here")

func newGate(s store.Store, again *replaying, url string) *gate {
	return &gate{Store: s, again: again, url: url, open: true, moved: make(chan struct{}), done: map[string]int{}}
}

// start begins to compare: what was written so far is not the script's.
func (g *gate) start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	rec := g.again.rec
	g.want, g.times, g.open = rec.streams, rec.order(), false
	g.done[rec.row.Stream()] = rec.begun()
	g.stamp()
}

// URL implements store.Store: the name that the store had then.
func (g *gate) URL() string { return g.url }

// clock is the time that the store stamps its events with.
func (g *gate) clock() time.Time {
	if g.now.IsZero() {
		return g.again.clock.Now()
	}
	return g.now
}

// stamp sets the time of the next transaction; mu is held.
func (g *gate) stamp() {
	for ; g.next < len(g.times); g.next++ {
		if e := g.times[g.next]; g.index(e) >= g.done[e.Stream] {
			g.now = e.Time()
			return
		}
	}
}

// index is an event's place among those of its stream that the run wrote.
func (g *gate) index(e event.Event) int {
	list := g.want[e.Stream]
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; list[mid].Position < e.Position {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Write implements store.Store.
func (g *gate) Write(ctx context.Context, fn func(store.Tx) error) error {
	for {
		moved, err := g.try(ctx, fn)
		if moved == nil {
			return err
		}
		if err := g.again.wait(ctx, moved); err != nil {
			return err
		}
	}
}

// try makes the transaction once; moved is set where its turn has not come.
func (g *gate) try(ctx context.Context, fn func(store.Tx) error) (moved <-chan struct{}, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for tries := 0; ; tries++ {
		t := &gateTx{gate: g, came: map[string]int{}}
		// What the record holds was written, whatever has been cancelled by now.
		err = g.Store.Write(context.WithoutCancel(ctx), func(tx store.Tx) error {
			t.Tx, t.came, t.differs, t.late = tx, map[string]int{}, nil, time.Time{}
			if err := fn(t); err != nil {
				return err
			}
			if t.differs != nil {
				return errNotYet
			}
			return nil
		})
		if t.differs == nil {
			if err == nil && len(t.came) > 0 {
				for stream, n := range t.came {
					g.done[stream] += n
				}
				g.stamp()
				g.pending = nil
				close(g.moved)
				g.moved = make(chan struct{})
				g.again.moved()
			}
			return nil, err
		}
		if !t.late.IsZero() && tries < 2 {
			g.now = t.late // the same event of another time
			continue
		}
		g.stamp()
		if g.again.differs(t.differs) {
			return nil, g.again.fault()
		}
		g.pending = t.differs
		return g.moved, nil
	}
}

// gateTx is one transaction, compared as it is made.
type gateTx struct {
	store.Tx
	gate    *gate
	came    map[string]int
	differs *Difference
	late    time.Time // set where nothing but the time differs
}

// Append implements store.Tx.
func (t *gateTx) Append(stream string, d event.Draft) (event.Event, error) {
	e, err := t.Tx.Append(stream, d)
	if err != nil || t.gate.open || t.gate.again.halted() {
		return e, err
	}
	if t.differs != nil {
		return e, errNotYet
	}
	list, at := t.gate.want[stream], t.gate.done[stream]+t.came[stream]
	var want event.Event
	if at < len(list) {
		want = list[at]
	}
	if same(e, want, stream == t.gate.again.rec.row.Stream()) {
		t.came[stream]++
		return e, nil
	}
	t.differs = &Difference{Kind: DiffersEvent, Stream: stream, Seq: e.Seq, Replayed: eventText(e)}
	if at < len(list) {
		t.differs.Recorded = t.gate.again.text(want)
		if own := stream == t.gate.again.rec.row.Stream(); own || want.Seq == e.Seq {
			t.differs.Seq = want.Seq
		}
		if e.Kind == want.Kind && e.EpochMS != want.EpochMS && bytes.Equal(e.Meta, want.Meta) {
			t.late = want.Time()
		}
	}
	return e, errNotYet
}

// same compares an event with the recorded one. In the run's own stream, where the
// journal stood between them, number and hash are others.
func same(e, want event.Event, own bool) bool {
	if own {
		return e.Kind == want.Kind && e.SchemaVersion == want.SchemaVersion && e.EpochMS == want.EpochMS &&
			bytes.Equal(e.Meta, want.Meta) && bytes.Equal(e.Data, want.Data)
	}
	return e.Seq == want.Seq && e.Hash == want.Hash
}

// eventText shows an event on one line.
func eventText(e event.Event) string {
	return e.Kind + " " + string(e.Meta) + " " + string(e.Data)
}

// left gives the first recorded event that did not come, nil when all did.
func (g *gate) left() *Difference {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.times {
		if g.index(e) >= g.done[e.Stream] {
			return &Difference{Kind: DiffersEvent, Stream: e.Stream, Seq: e.Seq, Recorded: g.again.text(e)}
		}
	}
	return nil
}

// count gives how many events came.
func (g *gate) count() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.done {
		n += c
	}
	return n
}
