package llm_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"ashlar/kernel/redact"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/llmtest"
)

const canary = "sk-canary-0123456789"

// sender is one over a server, with the canary as its key. It does not sleep.
func sender(tb testing.TB, base string) (*llm.Sender, *naps) {
	tb.Helper()
	n := &naps{}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	tb.Cleanup(transport.CloseIdleConnections)
	return &llm.Sender{
		Directory: &llm.Directory{
			Providers: llm.Presets(), Run: llm.Ask{BaseURL: base, Model: "m"},
			Env: func(name string) (string, bool) { return canary, name == "ASHLAR_API_KEY" },
		},
		Seam: llm.Seam{Client: &http.Client{Transport: transport}},
		Now:  time.Now, Sleep: n.sleep,
	}, n
}

// naps are the pauses that a sender asked for.
type naps struct {
	mu  sync.Mutex
	all []time.Duration
}

func (n *naps) sleep(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, d)
	return context.Cause(ctx)
}

// ask is a call with one user message; streamed as well where stream is set.
func ask(stream bool) llm.Call {
	body := map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": "hello"}}}
	if stream {
		body["stream"], body["stream_options"] = true, map[string]any{"include_usage": true}
	}
	return llm.Call{
		Path: "chat/completions", Body: body, Timeout: 10 * time.Second, Progress: 5 * time.Second, Retries: llm.DefaultRetries,
	}
}

// choice gives the message and the finish reason of a reply's body.
func choice(tb testing.TB, r llm.Reply) (message map[string]any, finish any) {
	tb.Helper()
	body, _ := r.Body.(map[string]any)
	choices, _ := body["choices"].([]any)
	if len(choices) != 1 {
		tb.Fatalf("body %v", r.Body)
	}
	c := choices[0].(map[string]any)
	return c["message"].(map[string]any), c["finish_reason"]
}

// errorText gives the message of an error body.
func errorText(r llm.Reply) string {
	body, _ := r.Body.(map[string]any)
	e, _ := body["error"].(map[string]any)
	text, _ := e["message"].(string)
	return text
}

func redactor() *redact.Redactor {
	r := redact.New()
	r.Add("KEY", canary)
	return r
}

// serve is llmtest.New; a reply too many fails the test at its end.
func serve(t *testing.T, replies ...llmtest.Reply) *llmtest.Server {
	t.Helper()
	srv := llmtest.New(t, replies...)
	t.Cleanup(func() {
		if n := srv.Left(); n > 0 && !t.Failed() {
			t.Errorf("%d replies were not asked for", n)
		}
	})
	return srv
}
