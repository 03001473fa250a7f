package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// Version is the form's version, the "v" of the first line.
const Version = 1

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

// Begin takes note of a request that is about to be sent.
func (r *Recorder) Begin(x Exchange) *Tape {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	// What the recording says is what a replay asks for.
	return &Tape{rec: r, n: r.n, request: request{x.Provider, x.Path, r.redact(x.Body)}}
}

// fail remembers a fault of the file.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = errors.Join(r.err, err)
}

func (r *Recorder) line(v map[string]any) error {
	b, err := logjson.Marshal(v)
	if err != nil {
		return kernel.Errorf("record", kernel.Internal, "%w", err)
	}
	b = append(bytes.Clone(r.redact(b)), '\n')
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(b); err != nil {
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
