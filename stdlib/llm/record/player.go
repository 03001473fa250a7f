package record

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"sort"
	"sync"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// maxLine bounds one line of a recording, in bytes.
const maxLine = 128 << 20

// exchange is one line of a recording.
type exchange struct {
	n       int64
	key     string
	request request
	status  int // 0: no reply came
	headers map[string]any
	chunks  []string
	fault   error // how it ended, nil for well
	sent    bool  // the request may have reached the server
}

// Player answers requests from a recording: equal ones in the order in which they
// were recorded. It is safe for concurrent use.
type Player struct {
	// Redact is what the recorder wrote requests through; nil changes nothing. It is
	// set before the first call.
	Redact func([]byte) []byte

	mu       sync.Mutex
	path     string
	byKey    map[string][]exchange
	left     int
	provider string
	model    string
}

// Open reads a recording. Kinds: not_found, validation for what is no recording or
// has another version.
func Open(path string) (*Player, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, kernel.Errorf("replay", kernel.NotFound, "%s does not exist", path)
	}
	if err != nil {
		return nil, kernel.Errorf("replay", kernel.Storage, "%s: %w", path, err)
	}
	defer f.Close()
	return Parse(path, f)
}

// Parse reads a recording from r; name stands in messages.
func Parse(name string, r io.Reader) (*Player, error) {
	p := &Player{path: name, byKey: map[string][]exchange{}}
	bad := func(n int, format string, args ...any) error {
		return kernel.Errorf("replay", kernel.Validation, "%s: line %d: "+format, append([]any{name, n}, args...)...)
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	begun := false
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		m, err := logjson.Object(lines.Bytes())
		if err != nil {
			return nil, bad(n, "no JSON object: %s", kernel.Message(err))
		}
		if !begun {
			begun = true
			if v, _ := m["v"].(int64); v != Version {
				return nil, bad(n, "no recording of version %d", Version)
			}
			continue
		}
		if err := p.add(m); err != nil {
			return nil, bad(n, "%s", kernel.Message(err))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, kernel.Errorf("replay", kernel.Validation, "%s: %w", name, err)
	}
	if !begun {
		return nil, kernel.Errorf("replay", kernel.Validation, "%s is empty", name)
	}
	// Lines are in the order in which replies ended; requests are asked in theirs.
	for _, queue := range p.byKey {
		sort.SliceStable(queue, func(i, j int) bool { return queue[i].n < queue[j].n })
	}
	return p, nil
}

func (p *Player) add(m map[string]any) error {
	req, _ := m["request"].(map[string]any)
	body, _ := req["body"].(map[string]any)
	if req == nil || body == nil {
		return kernel.Errorf("replay", kernel.Validation, "no request with a body")
	}
	canonical, err := logjson.Marshal(body)
	if err != nil {
		return err
	}
	e := exchange{headers: map[string]any{}}
	e.n, _ = m["n"].(int64)
	e.request.provider, _ = req["provider"].(string)
	e.request.path, _ = req["path"].(string)
	e.request.body = canonical
	e.fault, e.sent = faultOf(m["error"])
	if res, ok := m["response"].(map[string]any); ok {
		status, _ := res["status"].(int64)
		e.status = int(status)
		if h, ok := res["headers"].(map[string]any); ok {
			e.headers = h
		}
		chunks, _ := res["chunks"].([]any)
		for _, c := range chunks {
			text, err := chunkOf(c)
			if err != nil {
				return err
			}
			if text != "" {
				e.chunks = append(e.chunks, text)
			}
		}
	}
	if e.status == 0 && e.fault == nil {
		return kernel.Errorf("replay", kernel.Validation, "neither response nor error")
	}
	// The key is taken from the request itself, so that an edited line still answers.
	e.key = e.request.keyOf()
	if len(p.byKey) == 0 {
		p.provider = e.request.provider
		p.model, _ = body["model"].(string)
	}
	p.byKey[e.key] = append(p.byKey[e.key], e)
	p.left++
	return nil
}

// faultOf reads how an exchange failed; nil for one that did not.
func faultOf(v any) (fault error, sent bool) {
	switch e := v.(type) {
	case string:
		return kernel.Errorf("llm.send", kernel.Network, "%s", e), true
	case map[string]any:
		kind, _ := e["kind"].(string)
		message, _ := e["message"].(string)
		if !slices.Contains(kernel.Kinds(), kernel.Kind(kind)) {
			kind = string(kernel.Network)
		}
		sent, said := e["sent"].(bool)
		return kernel.Errorf("llm.send", kernel.Kind(kind), "%s", message), sent || !said
	}
	return nil, true
}

// chunkOf reads a chunk: text, or the bytes of what is none.
func chunkOf(v any) (string, error) {
	switch c := v.(type) {
	case string:
		return c, nil
	case map[string]any:
		text, _ := c["base64"].(string)
		if b, err := base64.StdEncoding.DecodeString(text); err == nil && text != "" {
			return string(b), nil
		}
	}
	return "", kernel.Errorf("replay", kernel.Validation, "a chunk is no text")
}

// First gives provider and model of the first recorded request.
func (p *Player) First() (provider, model string) { return p.provider, p.model }

// Left counts the recorded answers that nothing has asked for.
func (p *Player) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Answer gives the next recorded reply to a request; sent is false where the recorded
// one never left. Kinds: not_found where there is none, else that of the recorded
// failure.
func (p *Player) Answer(x Exchange) (res *http.Response, sent bool, err error) {
	body := x.Body
	if p.Redact != nil {
		body = p.Redact(body)
	}
	key := request{x.Provider, x.Path, body}.keyOf()
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.byKey[key]
	if len(queue) == 0 {
		return nil, true, kernel.Errorf("replay", kernel.NotFound,
			"%s has no answer for this request to %s (%s): the block, its tools' results or the model changed since it was recorded; record it again with --record",
			p.path, x.Provider, key[:12])
	}
	e := queue[0]
	p.byKey[key] = queue[1:]
	p.left--
	if e.status == 0 {
		return nil, e.sent, e.fault
	}
	res = &http.Response{StatusCode: e.status, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1}
	for name, value := range e.headers {
		if s, ok := value.(string); ok {
			res.Header.Set(name, s)
		}
	}
	res.Body = &chunked{chunks: slices.Clone(e.chunks), fault: e.fault}
	return res, true, nil
}

// chunked gives recorded chunks one read each.
type chunked struct {
	chunks []string
	fault  error
}

func (c *chunked) Read(b []byte) (int, error) {
	if len(c.chunks) == 0 {
		switch {
		case c.fault == nil:
			return 0, io.EOF
		case errors.Is(c.fault, kernel.Network): // a connection's end, which has no kind of its own
			return 0, errors.New(kernel.Message(c.fault))
		}
		return 0, c.fault
	}
	n := copy(b, c.chunks[0])
	if c.chunks[0] = c.chunks[0][n:]; c.chunks[0] == "" {
		c.chunks = c.chunks[1:]
	}
	return n, nil
}

// Close implements io.Closer.
func (c *chunked) Close() error { return nil }
