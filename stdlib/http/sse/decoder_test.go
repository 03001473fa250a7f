package sse

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"ashlar/kernel"
)

// all decodes a stream to its end.
func all(source io.Reader) (events []Event, comments []string, err error) {
	d := NewDecoder(source)
	d.OnComment = func(text string) { comments = append(comments, text) }
	for {
		e, err := d.Next()
		if err == io.EOF {
			return events, comments, nil
		}
		if err != nil {
			return events, comments, err
		}
		events = append(events, e)
	}
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stream string
		want   []Event
	}{
		"line feed":             {"data: a\n\ndata: b\n\n", []Event{{Data: "a"}, {Data: "b"}}},
		"carriage return":       {"data: a\r\rdata: b\r\r", []Event{{Data: "a"}, {Data: "b"}}},
		"both":                  {"data: a\r\n\r\ndata: b\r\n\r\n", []Event{{Data: "a"}, {Data: "b"}}},
		"mixed":                 {"data: a\r\n\ndata: b\r\r\n", []Event{{Data: "a"}, {Data: "b"}}},
		"byte order mark":       {"\ufeffdata: a\n\n", []Event{{Data: "a"}}},
		"mark inside is data":   {"data: \ufeffa\n\n", []Event{{Data: "\ufeffa"}}},
		"no final blank line":   {"data: a\n\ndata: b\n", []Event{{Data: "a"}, {Data: "b"}}},
		"no final line end":     {"data: a\n\ndata: [DONE]", []Event{{Data: "a"}, {Data: "[DONE]"}}},
		"several data lines":    {"data: a\ndata:\ndata: b\n\n", []Event{{Data: "a\n\nb"}}},
		"one space is taken":    {"data:  a\n\n", []Event{{Data: " a"}}},
		"no space":              {"data:a\n\n", []Event{{Data: "a"}}},
		"colons stay":           {"data: a: b\n\n", []Event{{Data: "a: b"}}},
		"empty data":            {"data\n\ndata:\n\n", []Event{{}, {}}},
		"no data, no event":     {"event: x\n\ndata: a\n\n", []Event{{Data: "a"}}},
		"names":                 {"event: x\ndata: a\n\ndata: b\n\n", []Event{{Name: "x", Data: "a"}, {Data: "b"}}},
		"ids last":              {"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n", []Event{{Data: "a", ID: "1"}, {Data: "b", ID: "1"}, {Data: "c"}}},
		"id with NUL":           {"id: 1\x00\ndata: a\n\n", []Event{{Data: "a"}}},
		"unknown fields":        {"foo: bar\ndata: a\n\n", []Event{{Data: "a"}}},
		"comments":              {": hi\ndata: a\n:\n\n", []Event{{Data: "a"}}},
		"characters are whole":  {"data: €😀\n\n", []Event{{Data: "€😀"}}},
		"other bytes are kept":  {"data: \xe2\x82\n\n", []Event{{Data: "\xe2\x82"}}},
		"nothing":               {"", nil},
		"only blank lines":      {"\n\r\n\r", nil},
		"space before the name": {" data: a\n\n", nil},
	} {
		for way, source := range map[string]io.Reader{
			"at once":      strings.NewReader(c.stream),
			"byte by byte": iotest.OneByteReader(strings.NewReader(c.stream)),
			"with EOF":     iotest.DataErrReader(strings.NewReader(c.stream)),
		} {
			got, _, err := all(source)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s, %s: %q %v, want %q", name, way, got, err, c.want)
			}
		}
	}
}

func TestCommentsAreNoProgressButAreReported(t *testing.T) {
	t.Parallel()
	events, comments, err := all(strings.NewReader(": ping\n\n:\n\n: OPENROUTER PROCESSING\r\n\r\n"))
	if len(events) != 0 || err != nil || !slices.Equal(comments, []string{"ping", "", "OPENROUTER PROCESSING"}) {
		t.Errorf("%q %q %v", events, comments, err)
	}
}

func TestALineCountsAsSoonAsItsCarriageReturnIsThere(t *testing.T) {
	t.Parallel()
	r, w := io.Pipe()
	defer r.Close()
	go func() { _, _ = w.Write([]byte("data: a\r\n\r")) }() // no LF follows, for ever
	got := make(chan Event, 1)
	go func() {
		e, _ := NewDecoder(r).Next()
		got <- e
	}()
	select {
	case e := <-got:
		if e.Data != "a" {
			t.Errorf("%q", e)
		}
	case <-time.After(5 * time.Second):
		t.Error("the decoder waits for a line feed that need not come")
	}
}

func TestAnEventThatAReadErrorCutIsNotGiven(t *testing.T) {
	t.Parallel()
	cause := errors.New("connection reset")
	events, _, err := all(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(cause)))
	if len(events) != 1 || !errors.Is(err, cause) {
		t.Errorf("%q %v", events, err)
	}
}

// endless gives one byte for ever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestLengthIsBounded(t *testing.T) {
	t.Parallel()
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 17))
	for name, source := range map[string]io.Reader{
		"line":  io.MultiReader(strings.NewReader("data: "), endless('x')),
		"event": lines,
	} {
		events, _, err := all(source)
		if len(events) != 0 || kernel.KindOf(err) != kernel.Limit {
			t.Errorf("%s: %d events, %v", name, len(events), err)
		}
	}
	long := strings.Repeat("x", MaxBytes-len("data: ")-1)
	if events, _, err := all(strings.NewReader("data: " + long + "\n\n")); err != nil || len(events) != 1 || events[0].Data != long {
		t.Errorf("a line within the limit: %d events, %v", len(events), err)
	}
}

func TestRetryIsDigitsOnly(t *testing.T) {
	t.Parallel()
	d := NewDecoder(strings.NewReader("retry: 1500\nretry: -1\nretry: x\nretry: 99999999999\ndata: a\n\n"))
	if _, err := d.Next(); err != nil || d.Retry() != 1500*time.Millisecond {
		t.Errorf("%v %v", d.Retry(), err)
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte("\ufeffdata: a\r\n\r\n: c\nid: 1\nevent: x\rdata\n\n"), 3)
	f.Fuzz(func(t *testing.T, stream []byte, cut int) {
		whole, comments, err := all(bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		// However the stream is cut into chunks, it says the same.
		at := 0
		if len(stream) > 0 {
			at = ((cut % len(stream)) + len(stream)) % len(stream)
		}
		parts := io.MultiReader(bytes.NewReader(stream[:at]), iotest.OneByteReader(bytes.NewReader(stream[at:])))
		again, commentsAgain, err := all(parts)
		if err != nil || !slices.Equal(whole, again) || !slices.Equal(comments, commentsAgain) {
			t.Errorf("%q and %q %v", whole, again, err)
		}
	})
}
