package session

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Events reads a page of a session of the Book's run by its id, one that has ended
// too: what a supervisor reads of its children. Kind validation for a session of
// another run, whose log is none of this one's business.
func (b *Book) Events(ctx context.Context, id string, from int64) (events []event.Event, more bool, err error) {
	const op = "session.page"
	m, err := object(b.store.Row(ctx, store.Sessions, id))
	if err != nil {
		return nil, false, as(op, err)
	}
	if m == nil || str(m, "run") != b.runID() {
		return nil, false, kernel.Errorf(op, kernel.Validation, "%q is no session of this run", id)
	}
	events, more, err = b.store.Events(ctx, id, store.Query{From: from, Bodies: true})
	return events, more, as(op, err)
}
