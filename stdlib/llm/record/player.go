package record

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// maxLine bounds one line of a recording, in bytes.
const maxLine = 128 << 20

// Player answers requests from a recording: equal ones in the order in which they
// were recorded. It is safe for concurrent use.
type Player struct {
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
	for n := 1; lines.Scan(); n++ {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		m, err := logjson.Object(lines.Bytes())
		if err != nil {
			return nil, bad(n, "no JSON object: %s", kernel.Message(err))
		}
		if n == 1 {
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
	e.request.provider, _ = req["provider"].(string)
	e.request.path, _ = req["path"].(string)
	e.request.body = canonical
	e.fault, _ = m["error"].(string)
	if res, ok := m["response"].(map[string]any); ok {
		status, _ := res["status"].(int64)
		e.status = int(status)
		if h, ok := res["headers"].(map[string]any); ok {
			e.headers = h
		}
		chunks, _ := res["chunks"].([]any)
		for _, c := range chunks {
			text, ok := c.(string)
			if !ok {
				return kernel.Errorf("replay", kernel.Validation, "a chunk is no text")
			}
			e.chunks = append(e.chunks, text)
		}
	} else if e.fault == "" {
		return kernel.Errorf("replay", kernel.Validation, "neither response nor error")
	}
	// The key is taken from the request itself, so that an edited line still answers.
	e.key = e.request.keyOf()
	if p.model == "" {
		p.provider = e.request.provider
		p.model, _ = body["model"].(string)
	}
	p.byKey[e.key] = append(p.byKey[e.key], e)
	p.left++
	return nil
}

// First gives provider and model of the first recorded request.
func (p *Player) First() (provider, model string) { return p.provider, p.model }

// Left counts the recorded answers that nothing has asked for.
func (p *Player) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// Answer gives the next recorded reply to a request. Kinds: not_found where there
// is none, network where the recorded request got none.
func (p *Player) Answer(x Exchange) (*http.Response, error) {
	key := request{x.Provider, x.Path, x.Body}.keyOf()
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := p.byKey[key]
	if len(queue) == 0 {
		return nil, kernel.Errorf("replay", kernel.NotFound,
			"%s has no answer for this request to %s (%s): the block, its tools' results or the model changed since it was recorded; record it again with --record",
			p.path, x.Provider, key[:12])
	}
	e := queue[0]
	p.byKey[key] = queue[1:]
	p.left--
	if e.status == 0 {
		return nil, kernel.Errorf("replay", kernel.Network, "%s", e.fault)
	}
	res := &http.Response{StatusCode: e.status, Header: http.Header{}, ProtoMajor: 1, ProtoMinor: 1}
	for name, value := range e.headers {
		if s, ok := value.(string); ok {
			res.Header.Set(name, s)
		}
	}
	res.Body = &chunked{chunks: e.chunks, fault: e.fault}
	return res, nil
}

// chunked gives recorded chunks one read each.
type chunked struct {
	chunks []string
	fault  string
}

func (c *chunked) Read(b []byte) (int, error) {
	if len(c.chunks) == 0 {
		if c.fault != "" {
			return 0, errors.New(c.fault)
		}
		return 0, io.EOF
	}
	n := copy(b, c.chunks[0])
	if c.chunks[0] = c.chunks[0][n:]; c.chunks[0] == "" {
		c.chunks = c.chunks[1:]
	}
	return n, nil
}

func (c *chunked) Close() error { return nil }
