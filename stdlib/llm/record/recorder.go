package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// Version is the form's version, the "v" of the first line.
const Version = 1

// exchange is one line of a recording.
type exchange struct {
	n       int64
	key     string
	request request
	status  int
	headers map[string]any
	chunks  []string
	fault   string
}

type request struct {
	provider, path string
	body           []byte // canonical
}

// keyOf is SHA-256 over provider, path and canonical body.
func (r request) keyOf() string {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.provider), []byte(r.path), r.body} {
		h.Write(part)
		h.Write([]byte{'\n'})
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Exchange names what a request of this run is, for key and record. The body is
// log JSON.
type Exchange struct {
	Provider, Path string
	Body           []byte
}

// Recorder writes exchanges to a file. It is safe for concurrent use.
type Recorder struct {
	mu     sync.Mutex
	file   *os.File
	redact func([]byte) []byte
	n      int64
	err    error
}

// Create makes the file, which must not exist, and writes its first line. Kinds:
// validation where it exists, storage.
func Create(path, version, blockDigest string, redact func([]byte) []byte) (*Recorder, error) {
	const op = "record"
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, kernel.Errorf(op, kernel.Validation, "%s exists: a recording is never overwritten; name another file or remove it", path)
	}
	if err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%s: %w", path, err)
	}
	r := &Recorder{file: f, redact: redact}
	if err := r.line(map[string]any{"v": int64(Version), "ashlar": version, "block": blockDigest}); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// Wrap gives the body of a reply back, written down as it is read.
func (r *Recorder) Wrap(x Exchange, res *http.Response) io.ReadCloser {
	return &tap{ReadCloser: res.Body, rec: r, ex: r.begin(x, res.StatusCode, Headers(res.Header))}
}

// Failed writes down a request that got no reply.
func (r *Recorder) Failed(x Exchange, err error) {
	e := r.begin(x, 0, nil)
	e.fault = kernel.Message(err)
	r.end(e)
}

func (r *Recorder) begin(x Exchange, status int, headers map[string]any) *exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	e := &exchange{n: r.n, request: request{x.Provider, x.Path, x.Body}, status: status, headers: headers}
	e.key = e.request.keyOf()
	return e
}

func (r *Recorder) end(e *exchange) {
	whole := []byte(strings.Join(e.chunks, ""))
	chunks := []any{}
	if clean := r.redact(whole); !bytes.Equal(clean, whole) {
		// A secret may lie across two chunks: what is redacted is kept as one.
		chunks = append(chunks, string(clean))
	} else {
		for _, c := range e.chunks {
			chunks = append(chunks, c)
		}
	}
	line := map[string]any{
		"n": e.n, "key": e.key,
		"request": map[string]any{
			"provider": e.request.provider, "path": e.request.path, "body": logjson.Raw(r.redact(e.request.body)),
		},
		"response": map[string]any{"status": int64(e.status), "headers": e.headers, "chunks": chunks},
	}
	if e.headers == nil {
		delete(line, "response")
	}
	if e.fault != "" {
		line["error"] = string(r.redact([]byte(e.fault)))
	}
	if err := r.line(line); err != nil {
		r.mu.Lock()
		r.err = errors.Join(r.err, err)
		r.mu.Unlock()
	}
}

func (r *Recorder) line(v map[string]any) error {
	b, err := logjson.Marshal(v)
	if err != nil {
		return kernel.Errorf("record", kernel.Internal, "%w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(b, '\n')); err != nil {
		return kernel.Errorf("record", kernel.Storage, "%s: %w", r.file.Name(), err)
	}
	return nil
}

// Close ends the file and reports the first line that could not be written.
func (r *Recorder) Close() error {
	err := r.file.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, err)
}

// tap is a reply's body that is written down when it ends.
type tap struct {
	io.ReadCloser
	rec  *Recorder
	ex   *exchange
	held []byte // the beginning of a character that the next chunk completes
	once sync.Once
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.take(p[:n])
	}
	if err != nil {
		if err != io.EOF {
			t.ex.fault = err.Error()
		}
		t.finish()
	}
	return n, err
}

// take keeps a chunk as text, never cut inside a character.
func (t *tap) take(p []byte) {
	b := append(t.held, p...)
	cut := len(b)
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				cut = len(b) - i
			}
			break
		}
	}
	t.held = append([]byte(nil), b[cut:]...)
	if cut > 0 {
		t.ex.chunks = append(t.ex.chunks, strings.ToValidUTF8(string(b[:cut]), "\uFFFD"))
	}
}

func (t *tap) finish() {
	t.once.Do(func() {
		if len(t.held) > 0 {
			t.ex.chunks = append(t.ex.chunks, "\uFFFD")
		}
		t.rec.end(t.ex)
	})
}

// Close implements io.Closer; a reply that was not read to its end is kept as far
// as it was read.
func (t *tap) Close() error {
	err := t.ReadCloser.Close()
	t.finish()
	return err
}

// Headers keeps those of a reply that a port may need, with lower-case names.
func Headers(h http.Header) map[string]any {
	out := map[string]any{}
	for name, values := range h {
		name = strings.ToLower(name)
		switch {
		case name == "content-type", name == "retry-after", name == "x-request-id", name == "request-id",
			strings.HasPrefix(name, "x-ratelimit-"), strings.HasPrefix(name, "anthropic-ratelimit-"):
			out[name] = values[len(values)-1]
		}
	}
	return out
}
