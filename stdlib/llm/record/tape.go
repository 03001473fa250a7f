package record

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"sync"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// Tape is one exchange on its way into a recording. It is for one goroutine; its
// methods do nothing on nil.
type Tape struct {
	rec     *Recorder
	n       int64
	request request
	status  int
	headers map[string]any
	chunks  [][]byte
	held    []byte // the beginning of a character that the next chunk completes
	fault   map[string]any
	once    sync.Once
}

// Reply makes the body of a reply be written down as it is read; the line is written
// when it is closed.
func (t *Tape) Reply(res *http.Response) {
	if t == nil {
		return
	}
	t.status, t.headers = res.StatusCode, Headers(res.Header)
	res.Body = &tap{res.Body, t}
}

// Fail notes what the request ended with, in the words that the run was told. Where
// there was no reply the line is written now. sent reports whether the request may
// have reached the server.
func (t *Tape) Fail(err error, sent bool) {
	if t == nil {
		return
	}
	t.failed(kernel.KindOf(err), kernel.Message(err), sent)
	if t.headers == nil {
		t.finish()
	}
}

func (t *Tape) failed(kind kernel.Kind, message string, sent bool) {
	t.fault = map[string]any{"kind": string(kind), "message": message, "sent": sent}
}

// take keeps a chunk, never cut inside a character.
func (t *Tape) take(p []byte) {
	b := append(t.held, p...)
	cut := len(b)
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	t.held = bytes.Clone(b[cut:])
	if cut > 0 {
		t.chunks = append(t.chunks, bytes.Clone(b[:cut]))
	}
}

func (t *Tape) finish() {
	t.once.Do(func() {
		if len(t.held) > 0 {
			t.chunks = append(t.chunks, t.held)
		}
		if err := t.rec.line(t.line()); err != nil {
			t.rec.fail(err)
		}
	})
}

// line is the exchange as it is written.
func (t *Tape) line() map[string]any {
	line := map[string]any{
		"n": t.n, "key": t.request.keyOf(),
		"request": map[string]any{"provider": t.request.provider, "path": t.request.path, "body": logjson.Raw(t.request.body)},
	}
	if t.headers != nil {
		line["response"] = map[string]any{"status": int64(t.status), "headers": t.headers, "chunks": t.texts()}
	}
	if t.fault != nil {
		line["error"] = t.fault
	}
	return line
}

// texts gives the chunks for the line. A secret may lie across two of them: a reply
// that holds one is kept redacted, as one chunk.
func (t *Tape) texts() []any {
	whole := bytes.ToValidUTF8(bytes.Join(t.chunks, nil), []byte("\uFFFD"))
	if clean := t.rec.redact(whole); !bytes.Equal(clean, whole) {
		return []any{string(clean)}
	}
	chunks := []any{}
	for _, c := range t.chunks {
		if utf8.Valid(c) {
			chunks = append(chunks, string(c))
		} else {
			chunks = append(chunks, map[string]any{"base64": base64.StdEncoding.EncodeToString(c)})
		}
	}
	return chunks
}

// tap is a reply's body that a tape listens to.
type tap struct {
	io.ReadCloser
	tape *Tape
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.tape.take(p[:n])
	}
	if err != nil && err != io.EOF && t.tape.fault == nil {
		// Whoever reads may take this for an end; a replay must meet it too.
		t.tape.failed(kernel.Network, err.Error(), true)
	}
	return n, err
}

// Close implements io.Closer; a reply that was not read to its end is kept as far
// as it was read.
func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	t.tape.finish()
	return err
}
