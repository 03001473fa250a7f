package llm

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// Probe is how a server answers to the question whether it is there.
type Probe struct {
	Alive   bool
	Kind    string // ok, unavailable, down, unreachable or unknown
	Status  int    // 0 without an answer
	Message string
}

// Count asks the server how many tokens a request's body is. ok is false where it has
// no tokenizer to ask, or did not answer.
func (s *Sender) Count(ctx context.Context, ask Ask, body map[string]any) (tokens int64, ok bool, err error) {
	t, err := s.Directory.Resolve(ask)
	if err != nil || t.Dialect != "anthropic" && t.Dialect != "llamacpp" {
		return 0, false, err
	}
	base, path, question := t.root(), "tokenize", map[string]any{}
	if t.Dialect == "anthropic" {
		base, path = t.BaseURL, "v1/messages/count_tokens"
		for _, key := range []string{"model", "messages", "system", "tools", "tool_choice", "thinking"} {
			if body[key] != nil {
				question[key] = body[key]
			}
		}
	} else {
		text, err := logjson.Marshal(map[string]any{"messages": body["messages"], "tools": body["tools"]})
		if err != nil {
			return 0, false, err
		}
		question["content"] = string(text)
	}
	raw, err := logjson.Marshal(map[string]any{"place": place(t, body), "question": question})
	if err != nil {
		return 0, false, err
	}
	key := sha256.Sum256(raw)
	if n, have := s.known.count(key); have {
		return n, true, nil
	}
	status, answer, err := s.query(ctx, t, base, path, question, askTimeout)
	if err != nil || status >= 300 {
		if ctx.Err() == nil {
			err = nil
		}
		return 0, false, err
	}
	n := figure(answer["input_tokens"])
	if list, is := answer["tokens"].([]any); is {
		n = int64(len(list))
	}
	if n < 0 {
		return 0, false, nil
	}
	s.known.keep(key, n)
	return n, true, nil
}

func (k *known) count(key [sha256.Size]byte) (int64, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.counts, func(c counted) bool { return c.key == key })
	if i < 0 {
		return 0, false
	}
	return k.counts[i].tokens, true
}

func (k *known) keep(key [sha256.Size]byte, tokens int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.counts) == maxCounts {
		k.counts = slices.Delete(k.counts, 0, 1)
	}
	k.counts = append(k.counts, counted{key, tokens})
}

// Probe asks a server whether it is there. Its error is that of a place that cannot be
// resolved, or of a run that is being cut.
func (s *Sender) Probe(ctx context.Context, ask Ask) (Probe, error) {
	t, err := s.Directory.Resolve(ask)
	if err != nil {
		return Probe{}, err
	}
	base, path := t.BaseURL, "models"
	switch t.Dialect {
	case "anthropic":
		path = "v1/models"
	case "llamacpp":
		base, path = t.root(), "health"
	}
	status, answer, err := s.query(ctx, t, base, path, nil, probeTimeout)
	if err != nil && ctx.Err() != nil {
		return Probe{}, err
	}
	if err != nil {
		kind := "unreachable"
		if errors.Is(err, kernel.NotFound) { // a recording that did not ask
			kind = "unknown"
		}
		return Probe{Kind: kind, Message: kernel.Message(err)}, nil
	}
	text, _ := complaint(answer)
	p := Probe{Alive: true, Kind: "unknown", Status: status, Message: text}
	switch {
	case status < 300:
		p.Kind = "ok"
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, status == 529:
		p.Kind = "unavailable"
	case status >= 500:
		p.Alive, p.Kind = false, "down"
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		p.Message = http.StatusText(status) // the provider's may repeat a part of the key
	}
	return p, nil
}
