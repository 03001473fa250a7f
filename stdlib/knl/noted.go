package knl

import (
	"context"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session"
	"ashlar/vm"
)

// What follows makes a replay, which carries out the calls of this namespace over a
// store of its own, see what the run saw: the ids that were made, and how far the log
// was when it was read, where another task was writing to it.

// newBeat names a beat.
func (k *Kernel) newBeat(c *vm.Call) (string, error) {
	id, err := k.IDs.Ordered()
	if err != nil {
		return "", err
	}
	noted, err := c.Note(id)
	if err != nil {
		return "", err
	}
	id, _ = noted.(string)
	return id, nil
}

// openingIDs names a session and its scope.
func openingIDs(c *vm.Call, b *session.Book) (*session.OpeningIDs, error) {
	ids, err := b.NewIDs()
	if err != nil {
		return nil, err
	}
	v, err := c.Note([]any{ids.Session, ids.Scope})
	if err != nil {
		return nil, err
	}
	list, _ := v.([]any)
	if len(list) != 2 {
		return nil, vm.Errorf(string(kernel.Corruption), "the record of the opening names no session and scope")
	}
	ids.Session, _ = list[0].(string)
	ids.Scope, _ = list[1].(string)
	return ids, nil
}

// sameBound notes what a request was held to: it was made of a balance that other tasks
// may have been changing.
func (p *pending) sameBound(c *vm.Call, capped int64) (int64, error) {
	v, err := c.Note([]any{p.tokens, p.cost, capped})
	if err != nil {
		return 0, err
	}
	list, _ := v.([]any)
	if len(list) != 3 {
		return 0, vm.Errorf(string(kernel.Corruption), "the record of the beat does not say what it was held to")
	}
	p.tokens, _ = list[0].(int64)
	p.cost, _ = list[1].(int64)
	capped, _ = list[2].(int64)
	return capped, nil
}

// pollEvery is how often a replay looks whether the log is as long as it was.
const pollEvery = time.Millisecond

// end is where a read of a session ended: the last seq that it gave, 0 for none, and
// whether there was more.
type end struct {
	seq  int64
	more bool
}

func endOf(events []event.Event, more bool) end {
	if n := len(events); n > 0 {
		return end{events[n-1].Seq, more}
	}
	return end{0, more}
}

func (e end) value() vm.Value { return []any{e.seq, e.more} }

// noted gives where the read ended that a replay makes again; ok is false on a live run.
func noted(c *vm.Call) (e end, ok bool, err error) {
	v, ok, err := c.Noted()
	list, _ := v.([]any)
	if err != nil || !ok || len(list) != 2 {
		return end{}, false, err
	}
	e.seq, _ = list[0].(int64)
	e.more, _ = list[1].(bool)
	return e, true, nil
}

// sameEnd reads a page and notes where it ended. On a replay it waits until the log is
// as long as it was, and leaves out what came later.
func sameEnd(ctx context.Context, c *vm.Call, read func() ([]event.Event, bool, error)) ([]event.Event, bool, error) {
	want, replayed, err := noted(c)
	if err != nil {
		return nil, false, err
	}
	for {
		events, more, err := read()
		if err != nil {
			return nil, false, err
		}
		got := endOf(events, more)
		if replayed && got.seq < want.seq {
			if err := pause(ctx); err != nil {
				return nil, false, err
			}
			continue
		}
		if replayed {
			got, events = want, upTo(events, want.seq)
		}
		_, err = c.Note(got.value())
		return events, got.more, err
	}
}

// tail is sameEnd for the last n events.
func tail(ctx context.Context, c *vm.Call, s *session.Session, n int) ([]event.Event, error) {
	want, replayed, err := noted(c)
	if err != nil {
		return nil, err
	}
	ask := n
	for {
		events, err := s.Tail(ctx, ask)
		if err != nil {
			return nil, err
		}
		got := endOf(events, false)
		if replayed && got.seq < want.seq {
			if err := pause(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if ahead := int(got.seq - want.seq); replayed && ahead > 0 {
			if ask == n {
				ask = n + ahead
				continue
			}
			events = upTo(events, want.seq)
			events = events[max(0, len(events)-n):]
		}
		_, err = c.Note(endOf(events, false).value())
		return events, err
	}
}

func upTo(events []event.Event, seq int64) []event.Event {
	for len(events) > 0 && events[len(events)-1].Seq > seq {
		events = events[:len(events)-1]
	}
	return events
}

func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
