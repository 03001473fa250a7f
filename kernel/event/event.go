package event

import "time"

// SchemaVersion is the version that new events are stored with. Version 1 is the
// older shape of agent-block's log; it is only ever read, through Upcast.
const SchemaVersion = 2

// Hash is a SHA-256 digest: of an event's link in its stream's chain, or of a
// piece of content.
type Hash [32]byte

// Draft is what an author hands in: the store adds stream, seq, time and hash.
// Meta and Data hold neutral values: nil, bool, int64, float64, string,
// json.Number (an integer beyond int64), []any, map[string]any.
type Draft struct {
	Kind string
	Meta map[string]any // scalars only
	Data map[string]any

	// Prepared is what the Prepare of a store left here: the draft's bytes,
	// encoded and hashed outside the write transaction. Nobody else sets it.
	Prepared any
}

// Event is one stored event. Meta and Data are the exact log JSON that was
// appended; they are never changed in place.
type Event struct {
	Position      int64
	Stream        string
	Seq           int64
	EpochMS       int64
	Kind          string
	SchemaVersion int
	Meta          []byte
	Data          []byte
	Hash          Hash
}

// Time is the moment at which the store wrote the event.
func (e Event) Time() time.Time { return time.UnixMilli(e.EpochMS) }

// Head is the end of a stream: what a later cut would have to forge.
type Head struct {
	Stream string
	Seq    int64
	Hash   Hash
}
