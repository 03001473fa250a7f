package llm

import (
	"context"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"ashlar/kernel/logjson"
	"ashlar/stdlib/llm/assemble"
	"ashlar/stdlib/llm/record"
)

// Bounds of asking a server about itself.
const (
	askTimeout   = 5 * time.Second
	probeTimeout = 15 * time.Second
	askBytes     = 16 << 20
	maxCounts    = 32 // answers about the length of a request that are kept
)

// Window is what a model takes and gives at most, in tokens; 0 is not known.
type Window struct {
	Context   int64
	MaxOutput int64
}

// known keeps what servers said of themselves during a run. The zero value is ready.
type known struct {
	mu      sync.Mutex
	windows map[string]Window
	counts  []counted // the newest last
}

type counted struct {
	key    [sha256.Size]byte
	tokens int64
}

// query sends a request beside a call: it takes nothing of a budget. body nil is a GET.
func (s *Sender) query(ctx context.Context, t Target, base, path string, body map[string]any, timeout time.Duration) (int, map[string]any, error) {
	var raw []byte
	shape := []byte("{}") // of a GET, in a recording
	if body != nil {
		var err error
		if raw, err = logjson.Marshal(body); err != nil {
			return 0, nil, err
		}
		shape = raw
	}
	ctx, w := s.watch(ctx, Call{Timeout: timeout, Progress: timeout})
	defer w.stop()
	x := record.Exchange{Provider: t.Provider, Path: path, Body: shape}
	var res *http.Response
	var tape *record.Tape
	var err error
	if s.Seam.Player != nil {
		res, _, err = s.Seam.Player.Answer(x)
	} else {
		if s.Seam.Record != nil {
			tape = s.Seam.Record.Begin(x)
		}
		res, err = t.wire().do(ctx, s.Seam.Client, request{base: base, path: path, key: t.key, body: raw})
		if err == nil {
			tape.Reply(res)
		}
	}
	if err != nil {
		err = w.explain(ctx, err, t)
		tape.Fail(err, true)
		return 0, nil, err
	}
	defer res.Body.Close()
	b, err := readAll(http.MaxBytesReader(nil, res.Body, askBytes), w)
	if err != nil {
		return res.StatusCode, nil, w.explain(ctx, err, t)
	}
	answer, _ := assemble.Object(b)
	return res.StatusCode, answer, nil
}

// root is a server's address without the /v1 of its OpenAI form.
func (t Target) root() string {
	return strings.TrimSuffix(strings.TrimSuffix(t.BaseURL, "/"), "/v1")
}

// Window tells what a model takes: what was configured, else what its server says. It
// is asked once in a run. asked reports that the server knew. No answer is no error.
func (s *Sender) Window(ctx context.Context, ask Ask) (w Window, asked bool, err error) {
	t, err := s.Directory.Resolve(ask)
	if err != nil {
		return Window{}, false, err
	}
	if s.Directory.Facts != nil {
		w = s.Directory.Facts(t.Provider, t.Model)
	}
	if w.Context > 0 {
		return w, false, nil
	}
	key := place(t, map[string]any{"model": t.Model})
	s.known.mu.Lock()
	said, have := s.known.windows[key]
	s.known.mu.Unlock()
	if !have {
		if said, err = s.ask(ctx, t); err != nil {
			return w, false, err
		}
		s.known.mu.Lock()
		if s.known.windows == nil {
			s.known.windows = map[string]Window{}
		}
		s.known.windows[key] = said
		s.known.mu.Unlock()
	}
	if w.MaxOutput == 0 {
		w.MaxOutput = said.MaxOutput
	}
	w.Context = said.Context
	return w, said.Context > 0, nil
}

// ask asks a server, in the way of its dialect. What it does not say is 0; its error is
// a run's that is being cut.
func (s *Sender) ask(ctx context.Context, t Target) (Window, error) {
	get := func(base, path string, body map[string]any) (map[string]any, error) {
		status, answer, err := s.query(ctx, t, base, path, body, askTimeout)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil || status >= 300 {
			return nil, nil
		}
		return answer, nil
	}
	switch t.Dialect {
	case "anthropic":
		m, err := get(t.BaseURL, "v1/models/"+url.PathEscape(t.Model), nil)
		if err != nil || most(m["max_input_tokens"]) > 0 {
			return Window{Context: most(m["max_input_tokens"]), MaxOutput: most(m["max_tokens"])}, err
		}
		// A server that imitates the API may have the list alone.
		m, err = get(t.BaseURL, "v1/models", nil)
		return listed(m, t.Model), err
	case "ollama":
		m, err := get(t.root(), "api/show", map[string]any{"model": t.Model})
		return shown(m), err
	}
	if u, err := url.Parse(t.BaseURL); err == nil && u.Hostname() == "api.openai.com" {
		return Window{}, nil // it lists names and nothing else
	}
	m, err := get(t.BaseURL, "models", nil)
	if err != nil {
		return Window{}, err
	}
	w := listed(m, t.Model)
	if w.Context == 0 && t.Dialect == "llamacpp" {
		m, err = get(t.root(), "props", nil)
		w.Context = most(object(m["default_generation_settings"])["n_ctx"])
	}
	return w, err
}

// listed reads a model's entry of a list of models; the only entry is every model's,
// since servers of one model answer to any name.
func listed(list map[string]any, model string) Window {
	data, _ := list["data"].([]any)
	var entry map[string]any
	for _, v := range data {
		m := object(v)
		if len(data) == 1 || m["id"] == model || m["id"] == "models/"+model {
			entry = m
			break
		}
	}
	top := object(entry["top_provider"])
	w := Window{MaxOutput: most(top["max_completion_tokens"], entry["max_completion_tokens"], entry["max_output_tokens"])}
	// What is loaded decides, not what the model could take.
	for _, v := range []any{
		object(entry["meta"])["n_ctx"], entry["loaded_context_length"], top["context_length"], entry["context_length"],
		entry["max_model_len"], entry["context_window"], entry["max_context_length"],
	} {
		if w.Context = figure(v); w.Context > 0 {
			return w
		}
	}
	w.Context = 0
	return w
}

// shown reads what Ollama says of a model: the length that it is run with, else the one
// that it was made for.
func shown(m map[string]any) Window {
	parameters, _ := m["parameters"].(string)
	for line := range strings.Lines(parameters) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				return Window{Context: n}
			}
		}
	}
	for key, v := range object(m["model_info"]) {
		if strings.HasSuffix(key, ".context_length") {
			return Window{Context: most(v)}
		}
	}
	return Window{}
}
