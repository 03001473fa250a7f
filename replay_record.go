package ashlar

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
)

// recording is what the log holds of one run.
type recording struct {
	id      string
	row     run.Row
	input   map[string]any
	began   event.Event              // run_queued
	own     []event.Event            // the run's stream, whole
	streams map[string][]event.Event // what the run wrote: its own stream without the journal, and its sessions
	before  map[string][]event.Event // of sessions that it took up: what was there, with bodies
	journal *run.Journal
	settled map[string]any // nil where the run was killed
	cut     string         // what cut the run, "" where its block came to an end
	url     string         // of the store, as it was then
	abroad  []string       // sessions in other stores
}

// readRecording reads a run from a store. Kinds: not_found, validation for one that
// still runs, unsupported for one that cannot be replayed.
func readRecording(ctx context.Context, s store.Store, ledger *run.Ledger, id string) (*recording, error) {
	const op = "replay"
	row, err := ledger.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if !row.State.Terminal() && row.State != run.Lost {
		return nil, kernel.Errorf(op, kernel.Validation, "run %s is %s: what has not ended cannot be compared", id, row.State)
	}
	own, err := eventsOf(ctx, s, row.Stream(), true)
	if err != nil {
		return nil, err
	}
	rec := &recording{id: id, own: own, row: row, streams: map[string][]event.Event{}, before: map[string][]event.Event{}, url: s.URL()}
	if rec.journal, err = run.JournalOf(own); err != nil {
		return nil, err
	}
	end := int64(0)
	for _, e := range own {
		if e.Kind == event.Syscall || e.Kind == event.Handover {
			continue
		}
		rec.streams[row.Stream()] = append(rec.streams[row.Stream()], e)
		data, err := logjson.Object(e.Data)
		if err != nil {
			return nil, kernel.Errorf(op, kernel.Corruption, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
		}
		switch e.Kind {
		case event.RunQueued:
			rec.began = e
			rec.input, _ = data["input"].(map[string]any)
		case event.RunSettled:
			rec.settled, end = data, e.Position
			rec.cut = cutBy(data)
		}
	}
	for _, e := range own {
		if e.Kind == event.RunSession {
			if err := rec.addSession(ctx, s, e, end); err != nil {
				return nil, err
			}
		}
	}
	rec.dropClosing()
	if rec.input == nil {
		return nil, kernel.Errorf(op, kernel.Unsupported, "run %s was recorded by a version that did not keep what a replay needs", id)
	}
	if on, _ := rec.input["journal"].(bool); !on {
		return nil, kernel.Errorf(op, kernel.Unsupported, "run %s was made with --no-journal: its script's reads and writes are not in the log", id)
	}
	return rec, nil
}

// cutBy says what cut a run before its block came to an end.
func cutBy(settled map[string]any) string {
	by, _ := settled["stopped_by"].(string)
	fail, _ := settled["error"].(map[string]any)
	kind, _ := fail["kind"].(string)
	switch by {
	case "deadline", "memory", "signal", "cancel":
		if fail != nil && (kind == string(kernel.Timeout) || kind == string(kernel.Limit) || kind == string(kernel.Cancelled)) {
			return by
		}
	}
	return ""
}

// addSession adds what the run wrote to a session; end is the position of the run's own
// end, 0 where it has none.
func (rec *recording) addSession(ctx context.Context, s store.Store, joined event.Event, end int64) error {
	data, err := logjson.Object(joined.Data)
	if err != nil {
		return err
	}
	id, _ := data["session"].(string)
	head, err := s.Head(ctx, id)
	if err != nil {
		return err
	}
	if head.Seq == 0 {
		rec.abroad = append(rec.abroad, id)
		return nil
	}
	rec.url, _ = data["store"].(string) // what the store was called then
	if rec.streams[id] != nil {
		return nil // taken up twice
	}
	events, err := eventsOf(ctx, s, id, false)
	if err != nil {
		return err
	}
	if end > 0 {
		events = slices.DeleteFunc(events, func(e event.Event) bool { return e.Position > end })
	}
	if taken := rec.takenUpAt(id); taken > 0 && rec.openedBefore(events) {
		rec.before[id] = events[:min(int(taken), len(events))]
		events = events[len(rec.before[id]):]
	}
	rec.streams[id] = events
	return nil
}

// dropClosing takes out what the kernel wrote when the run was cut: the script had no
// part in it.
func (rec *recording) dropClosing() {
	if rec.cut == "" {
		return
	}
	for stream, events := range rec.streams {
		last := events[max(0, len(events)-1):]
		if len(last) == 0 {
			continue
		}
		data, _ := logjson.Object(last[0].Data)
		if kind := last[0].Kind; kind == event.RunSettled || kind == event.SessionClosed && data["detail"] == any(rec.cut) {
			rec.streams[stream] = events[:len(events)-1]
		}
	}
}

// openedBefore reports whether a session is older than the run.
func (rec *recording) openedBefore(events []event.Event) bool {
	return len(events) > 0 && events[0].Position < rec.began.Position
}

// takenUpAt is how long a session was when the run resumed it first.
func (rec *recording) takenUpAt(id string) int64 {
	for _, c := range rec.journal.Syscalls {
		if resumed(c) == id {
			n, _ := c.Result[0].([]any)[1].(int64)
			return n
		}
	}
	return 0
}

// resumed gives the session that a note of knl.resume is about; "" for any other call.
func resumed(c run.Syscall) string {
	if c.Name != "knl.resume" || c.Error != nil || len(c.Result) != 1 {
		return ""
	}
	list, _ := c.Result[0].([]any)
	if len(list) != 2 {
		return ""
	}
	id, _ := list[0].(string)
	return id
}

// eventsOf reads a stream whole; bodies of requests only where they are asked for.
func eventsOf(ctx context.Context, s store.Reader, stream string, bodies bool) (all []event.Event, err error) {
	q := store.Query{From: 1, Bodies: bodies}
	for more := true; more; {
		var page []event.Event
		if page, more, err = s.Events(ctx, stream, q); err != nil {
			return nil, err
		}
		for _, e := range page {
			q.From = e.Seq + 1
		}
		all = append(all, page...)
	}
	return all, nil
}

// order gives every event that the run wrote, as they came.
func (rec *recording) order() (all []event.Event) {
	for _, events := range rec.streams {
		all = append(all, events...)
	}
	slices.SortFunc(all, func(a, b event.Event) int { return cmp.Compare(a.Position, b.Position) })
	return all
}

// holes are the calls that the record has no outcome of.
func (rec *recording) holes() (list []string) {
	for _, c := range rec.journal.Syscalls {
		if !c.Mark {
			continue
		}
		what := "its outcome is larger than the journal keeps, or has no JSON"
		if where, ok := strings.CutPrefix(c.Name, "cut "); ok {
			list = append(list, fmt.Sprintf("%s:%d: the function at %s was cut by a bound while it ran", rec.row.Stream(), c.Seq, where))
			continue
		}
		if rec.ended(c) {
			continue
		}
		list = append(list, fmt.Sprintf("%s:%d: call %d, %s: %s", rec.row.Stream(), c.Seq, c.N, c.Name, what))
	}
	if n := rec.journal.Missing(); n > 0 && rec.settled != nil && rec.cut == "" {
		list = append(list, fmt.Sprintf("%s: call %d is missing", rec.row.Stream(), n))
	}
	return list
}

// blocked says why no replay of the run can be made at all; nil where one can.
func (rec *recording) blocked() *Difference {
	for _, c := range rec.journal.Syscalls {
		why := ""
		if where, ok := strings.CutPrefix(c.Name, "cut "); ok && c.Mark {
			why = "the function at " + where + " was cut by a bound of its own while it ran, at an instruction that nobody knows"
		}
		if id := resumed(c); slices.Contains(rec.abroad, id) {
			why = "the run took up session " + id + ", which is in another store"
		}
		if why != "" {
			return &Difference{Kind: DiffersHole, Stream: rec.row.Stream(), Seq: c.Seq, Task: c.Task, Why: why}
		}
	}
	return nil
}

// ended reports whether a marked call is the one that ended the run.
func (rec *recording) ended(c run.Syscall) bool {
	return c.N == int64(len(rec.journal.Syscalls)) && rec.settled != nil && rec.settled["error"] != nil
}
