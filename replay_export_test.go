package ashlar

import (
	"time"

	"ashlar/kernel/event"
)

// Recording lets tests change what a replay goes by.
type Recording struct{ rec *recording }

// Own are the events of the run's own stream.
func (r Recording) Own() *[]event.Event { return &r.rec.own }

// Stream are the events that the run wrote to a session, or to its own stream without
// the journal.
func (r Recording) Stream(id string) []event.Event { return r.rec.streams[id] }

// SetStream replaces them.
func (r Recording) SetStream(id string, events []event.Event) { r.rec.streams[id] = events }

// Mutated is a replay of a record that change was made to, which gives up after stall.
func Mutated(stall time.Duration, change func(Recording)) ReplayOptions {
	o := ReplayOptions{stall: stall}
	if change != nil {
		o.mutate = func(rec *recording) { change(Recording{rec}) }
	}
	return o
}

// Killed is a replay of a run as if it had been killed when its session had so many
// events.
func Killed(events int, session string) ReplayOptions {
	return ReplayOptions{stall: time.Second, mutate: func(rec *recording) {
		list := rec.streams[session]
		at := list[events].Position
		rec.streams[session] = list[:events]
		before := func(all []event.Event) (kept []event.Event) {
			for _, e := range all {
				if e.Position < at {
					kept = append(kept, e)
				}
			}
			return kept
		}
		own := rec.row.Stream()
		rec.own, rec.streams[own] = before(rec.own), before(rec.streams[own])
		rec.settled, rec.row.State = nil, "lost"
	}}
}
