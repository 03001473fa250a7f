package verify

import (
	"slices"
	"strings"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Put is a row of a projection, and the stream that it is of.
type Put struct {
	Stream string
	Table  store.Table
	store.Row
}

// Rows gives the rows of projections that follow from whole streams, in the order in
// which their events are given; leases follow from none. Kind corruption for an event
// that does not decode.
func Rows(events []event.Event) ([]Put, error) {
	m := newModel()
	for _, e := range events {
		if err := m.event(e); err != nil {
			return nil, err
		}
	}
	want, err := m.expected()
	if err != nil {
		return nil, err
	}
	var rows []Put
	for _, t := range store.Tables() {
		from := len(rows)
		for key, value := range want[t] {
			rows = append(rows, Put{streamOf(t, key), t, store.Row{Key: key, Value: value}})
		}
		slices.SortFunc(rows[from:], func(a, b Put) int { return strings.Compare(a.Key, b.Key) })
	}
	return rows, nil
}

// streamOf is the stream that a row is of: the run's where it is of a run, else that of
// the session.
func streamOf(t store.Table, key string) string {
	first, second, _ := strings.Cut(key, "/")
	switch t {
	case store.Runs, store.Joined:
		return runPrefix + first
	case store.Children, store.Open:
		return second
	}
	return key
}
