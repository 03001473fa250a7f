package sqlite

import (
	"slices"
	"sync"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Bounds of what is kept of the newest events in memory.
const (
	tailEvents  = 32       // of one stream
	tailBytes   = 16 << 10 // of one stream
	tailStreams = 256
)

// tails keep the last events that this Store wrote, for the reads of those who have
// just written: a beat reads what the beat before left. What they hold is right as
// long as the stream's head in the database is the hash of the last one, which each
// reader asks SQLite first.
type tails struct {
	mu sync.Mutex
	of map[string]*tail
}

// tail is the end of one stream without a gap. The data of requests is left out.
type tail struct {
	events []event.Event
	bytes  int
}

// add takes the events of a commit, in the order in which they were appended.
func (t *tails) add(events []event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		end := t.of[e.Stream]
		if end == nil {
			if len(t.of) >= tailStreams {
				clear(t.of)
			}
			end = &tail{}
			t.of[e.Stream] = end
		}
		end.add(e)
	}
}

func (t *tail) add(e event.Event) {
	if e.Kind == event.LLMRequest {
		e.Data = nil
	}
	if n := len(t.events); n > 0 && t.events[n-1].Seq+1 != e.Seq {
		t.events, t.bytes = nil, 0 // somebody else wrote in between
	}
	t.events = append(t.events, e)
	t.bytes += len(e.Meta) + len(e.Data)
	for len(t.events) > tailEvents || t.bytes > tailBytes && len(t.events) > 0 {
		t.bytes -= len(t.events[0].Meta) + len(t.events[0].Data)
		t.events = t.events[1:]
	}
}

// since gives the events of a stream from a number on, and the hash of the last one;
// ok is false where they are not all here, or where more is asked for than is kept.
func (t *tails) since(stream string, q store.Query) (events []event.Event, head event.Hash, ok bool) {
	if q.Last > 0 || len(q.Kinds) > 0 || q.Limit > 0 {
		return nil, head, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	end := t.of[stream]
	if end == nil || len(end.events) == 0 || end.events[0].Seq > q.From {
		return nil, head, false
	}
	n := len(end.events)
	events = slices.Clone(end.events[min(int(q.From-end.events[0].Seq), n):])
	for i := range events {
		if events[i].Kind != event.LLMRequest {
			continue
		}
		if q.Bodies {
			return nil, head, false
		}
		events[i].Data = []byte("{}")
	}
	return events, end.events[n-1].Hash, true
}
