package sqlite

import (
	"strconv"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store/encode"
)

// append writes one encoded event at the end of a stream.
func (t *tx) append(stream string, enc *encode.Encoded) (event.Event, error) {
	return t.place(stream, enc, t.nowMS, nil)
}

// place writes one encoded event of a time at the end of a stream; as is the place and
// the hash that it must come to have, nil for any.
func (t *tx) place(stream string, enc *encode.Encoded, ms int64, as *event.Event) (event.Event, error) {
	if stream == "" || !utf8.ValidString(stream) {
		return event.Event{}, kernel.Errorf(opWrite, kernel.Validation, "stream %q must be a non-empty name", stream)
	}
	end, err := t.endOf(stream)
	if err != nil {
		return event.Event{}, err
	}
	id, head := end.id, end.Head
	prev := head.Hash
	if head.Seq == 0 {
		prev = event.Origin(stream)
	}
	e := event.Event{
		Stream: stream, Seq: head.Seq + 1, EpochMS: ms, Kind: enc.Kind, SchemaVersion: event.SchemaVersion,
		Meta: enc.Meta.Bytes, Data: enc.Data.Bytes,
	}
	e.Hash = event.Link(prev, &e, enc.Meta.Hash, enc.Data.Hash)
	if as != nil && (e.Seq != as.Seq || e.Hash != as.Hash) {
		return event.Event{}, kernel.Errorf(opWrite, kernel.Validation, "%s:%d is not what follows the end of the stream, %d", stream, as.Seq, head.Seq)
	}
	meta, err := t.column(enc.Meta)
	if err != nil {
		return event.Event{}, err
	}
	var data string
	if enc.Request != nil {
		data, err = t.request(enc.Request)
	} else {
		data, err = t.column(enc.Data)
	}
	if err != nil {
		return event.Event{}, err
	}
	res, err := t.exec("INSERT INTO event (stream, seq, epoch_ms, kind, schema_version, meta, data, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		id, e.Seq, e.EpochMS, e.Kind, e.SchemaVersion, meta, data, e.Hash[:])
	if err != nil {
		return event.Event{}, err
	}
	if e.Position, err = res.LastInsertId(); err != nil {
		return event.Event{}, t.failed(err)
	}
	end.Head = event.Head{Stream: stream, Seq: e.Seq, Hash: e.Hash}
	t.remember(end)
	t.fresh = append(t.fresh, e)
	return e, nil
}

// restBytes is the largest body, without its long strings, that stays in its event's
// row. What is left of a body then hardly ever repeats: a row of its own, with a hash
// and an index entry, would cost more than it saves.
const restBytes = 2048

// column gives what a column holds of a body: itself, or its row in content.
func (t *tx) column(b encode.Body) (string, error) {
	if len(b.Bytes) <= encode.InlineBytes {
		return string(b.Bytes), nil
	}
	if id, ok := t.known.contents[b.Hash]; ok {
		return contentColumn(id), nil
	}
	text, err := t.marked(b)
	if err != nil || len(text) <= restBytes {
		return text, err
	}
	id, err := t.keep(b.Hash, text)
	return contentColumn(id), err
}

// marked keeps the long strings of a body and gives the body without them.
func (t *tx) marked(b encode.Body) (string, error) {
	long := b.Long
	if long == nil {
		long = encode.Cut(b.Bytes)
	}
	if len(long) == 0 {
		return string(b.Bytes), nil
	}
	text, at := make([]byte, 0, len(b.Bytes)), 0
	for _, l := range long {
		id, err := t.keep(l.Hash, string(b.Bytes[l.Start:l.End]))
		if err != nil {
			return "", err
		}
		text = append(text, b.Bytes[at:l.Start]...)
		text = append(text, stringHere)
		text = strconv.AppendInt(text, id, 10)
		text = append(text, stringHere)
		at = l.End
	}
	return string(append(text, b.Bytes[at:]...)), nil
}

// keep puts a body into content, once. JSON is kept as text, so that SQL can
// work on it; what only has a hash is kept as a blob.
func (t *tx) keep(h event.Hash, body any) (id int64, err error) {
	if id, ok := t.known.contents[h]; ok {
		return id, nil
	}
	ok, err := t.row("SELECT id FROM content WHERE hash = ?", []any{h[:]}, &id)
	if err != nil {
		return 0, err
	}
	if !ok {
		res, err := t.exec("INSERT INTO content (hash, body) VALUES (?, ?)", h[:], body)
		if err != nil {
			return 0, err
		}
		if id, err = res.LastInsertId(); err != nil {
			return 0, t.failed(err)
		}
	}
	if len(t.known.contents) >= maxKnown {
		clear(t.known.contents)
	}
	t.known.contents[h] = id
	return id, nil
}

// request stores what is new of a request and gives its column.
func (t *tx) request(r *encode.Request) (string, error) {
	last, err := t.messages(r)
	if err != nil {
		return "", err
	}
	frame, ok := t.known.contents[r.Frame.Hash]
	if !ok {
		text, err := t.marked(r.Frame)
		if err != nil {
			return "", err
		}
		if frame, err = t.keep(r.Frame.Hash, text); err != nil {
			return "", err
		}
	}
	envelope, err := t.column(r.Envelope)
	if err != nil {
		return "", err
	}
	return reference{last: last, frame: frame, envelope: envelope}.String(), nil
}

// messages appends to the persistent list what it lacks, and names its end. A
// list that is known has all its predecessors, so the search goes backwards: it
// mostly ends at the list of the beat before.
func (t *tx) messages(r *encode.Request) (last int64, err error) {
	n := len(r.Nodes)
	for ; n > 0; n-- {
		id, ok, err := t.node(r.Nodes[n-1])
		if err != nil {
			return 0, err
		}
		if ok {
			last = id
			break
		}
	}
	for ; n < len(r.Nodes); n++ {
		body, err := t.column(r.Messages[n])
		if err != nil {
			return 0, err
		}
		res, err := t.exec("INSERT INTO message (node, prev, body) VALUES (?, ?, ?)", r.Nodes[n][:], last, body)
		if err != nil {
			return 0, err
		}
		if last, err = res.LastInsertId(); err != nil {
			return 0, t.failed(err)
		}
		t.rememberNode(r.Nodes[n], last)
	}
	return last, nil
}

func (t *tx) node(h event.Hash) (id int64, ok bool, err error) {
	if id, ok := t.known.nodes[h]; ok {
		return id, true, nil
	}
	ok, err = t.row("SELECT id FROM message WHERE node = ?", []any{h[:]}, &id)
	if ok {
		t.rememberNode(h, id)
	}
	return id, ok, err
}

func (t *tx) rememberNode(h event.Hash, id int64) {
	if len(t.known.nodes) >= maxKnown {
		clear(t.known.nodes)
	}
	t.known.nodes[h] = id
}
