package sse

import (
	"bytes"
	"io"
	"strconv"
	"time"

	"ashlar/kernel"
)

// MaxBytes bounds one line, and the data of one event.
const MaxBytes = 16 << 20

// chunkBytes is how much is read at a time.
const chunkBytes = 32 << 10

// Event is one event. A Name of "" is the default, "message". ID is the last one
// that the stream named, on this event or before it.
type Event struct {
	Name string
	Data string
	ID   string
}

// Decoder reads events from a stream. It is for one goroutine.
type Decoder struct {
	// OnComment, when set, is called with each comment as it comes, on the
	// goroutine of Next.
	OnComment func(text string)

	source  io.Reader
	chunk   []byte
	rest    []byte // of chunk, not looked at yet
	line    []byte // the line that has begun
	ended   error  // why the source gives no more
	afterCR bool   // the last line ended with CR: an LF that follows belongs to it
	begun   bool   // a first line was taken

	name    string
	data    []byte
	hasData bool
	id      string
	retry   time.Duration
}

// NewDecoder returns a Decoder over a stream. Whoever opened the stream closes it.
func NewDecoder(source io.Reader) *Decoder {
	return &Decoder{source: source, chunk: make([]byte, chunkBytes)}
}

// Retry is the reconnection time that the server last asked for, 0 for none.
func (d *Decoder) Retry() time.Duration { return d.retry }

// Next waits for the next event. Its errors are final: io.EOF at the stream's end,
// kind limit for a line or an event over MaxBytes, and the reader's own error, as
// it is, when reading failed: only the caller knows whose stream it was.
func (d *Decoder) Next() (Event, error) {
	for {
		line, err := d.nextLine()
		if err != nil {
			if err == io.EOF && d.hasData {
				return d.take(), nil
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if d.hasData {
				return d.take(), nil
			}
			d.name = "" // an event without data is none
			continue
		}
		if err := d.field(line); err != nil {
			return Event{}, err
		}
	}
}

// take gives the event that was gathered.
func (d *Decoder) take() Event {
	e := Event{Name: d.name, Data: string(d.data), ID: d.id}
	d.name, d.data, d.hasData = "", d.data[:0], false
	return e
}

// field applies one line that is not blank.
func (d *Decoder) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "":
		if d.OnComment != nil {
			d.OnComment(string(value))
		}
	case "data":
		if d.hasData {
			d.data = append(d.data, '\n')
		}
		if len(d.data)+len(value) > MaxBytes {
			return d.tooLong("the data of an event")
		}
		d.data, d.hasData = append(d.data, value...), true
	case "event":
		d.name = string(value)
	case "id":
		if !bytes.Contains(value, []byte{0}) {
			d.id = string(value)
		}
	case "retry":
		// Digits only: ParseUint refuses signs, and 32 bits keep the product in range.
		if ms, err := strconv.ParseUint(string(value), 10, 32); err == nil {
			d.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil // other fields are to be ignored
}

// nextLine gives the next line without its end; it is valid until the next call.
func (d *Decoder) nextLine() ([]byte, error) {
	d.line = d.line[:0]
	for {
		if d.afterCR && len(d.rest) > 0 {
			d.rest = bytes.TrimPrefix(d.rest, []byte("\n"))
			d.afterCR = false
		}
		if end := bytes.IndexAny(d.rest, "\r\n"); end >= 0 {
			if err := d.extend(d.rest[:end]); err != nil {
				return nil, err
			}
			d.afterCR = d.rest[end] == '\r'
			d.rest = d.rest[end+1:]
			return d.whole(), nil
		}
		if err := d.extend(d.rest); err != nil {
			return nil, err
		}
		d.rest = nil
		if d.ended == nil {
			d.fill()
			continue
		}
		if d.ended == io.EOF && len(d.line) > 0 {
			return d.whole(), nil // the next call finds nothing more
		}
		return nil, d.ended
	}
}

// extend adds to the line that has begun.
func (d *Decoder) extend(part []byte) error {
	if len(d.line)+len(part) > MaxBytes {
		return d.tooLong("a line")
	}
	d.line = append(d.line, part...)
	return nil
}

// tooLong ends the stream: what follows would be half an event.
func (d *Decoder) tooLong(what string) error {
	d.rest, d.hasData = nil, false
	d.ended = kernel.Errorf("sse.next", kernel.Limit, "%s is longer than %d bytes", what, MaxBytes)
	return d.ended
}

// whole gives the line that is complete, the first one without a byte order mark.
func (d *Decoder) whole() []byte {
	if d.begun {
		return d.line
	}
	d.begun = true
	return bytes.TrimPrefix(d.line, []byte("\ufeff"))
}

// fill reads the next chunk. What came with an error counts before the error.
func (d *Decoder) fill() {
	n, err := d.source.Read(d.chunk)
	d.rest, d.ended = d.chunk[:n], err
}
