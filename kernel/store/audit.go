package store

import (
	"context"

	"ashlar/kernel/event"
)

// Auditor is a store that can be read whole, every byte held against its hash.
type Auditor interface {
	// Audit reads the whole store as it was at one moment, and calls the functions of a
	// in this order: Fault for damage of the file, of content and of messages; Event for
	// each event in order of position, and Fault before it for one that is not what was
	// hashed; Row for each row of a projection. What it cannot read is a fault and no
	// error; an error is that of a, of ctx, or that nothing can be read at all.
	Audit(ctx context.Context, a Audit) (Audited, error)
}

// Audit is what is done with what is read. Events are upcast; only those that a
// projection follows from have their Data: session_*, budget_* and run_*.
type Audit struct {
	Event func(event.Event) error
	Row   func(Table, Row) error
	Fault func(Fault)
}

// Fault is one thing that is not as it was written. Stream is "" for what belongs to no
// stream, Seq is 0 for what is no event.
type Fault struct {
	Stream string
	Seq    int64
	What   string
}

// Audited counts what was read. Whole is false when something could not be.
type Audited struct {
	Events, Streams, Contents, Messages, Rows int64
	Whole                                     bool
}
