package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// model is an instant server of Chat Completions, streamed. It knows when each
// request came and when each reply was sent.
type model struct {
	url    string
	server *http.Server
	reply  func(n int) (text, tool, args string) // a text, or a call
	wait   time.Duration                         // before each answer; set before the first request

	mu   sync.Mutex
	n    int
	came []time.Time
	sent []time.Time
}

func startModel(reply func(n int) (text, tool, args string)) (*model, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{url: "http://" + l.Addr().String() + "/v1", reply: reply}
	m.server = &http.Server{Handler: http.HandlerFunc(m.chat), ReadHeaderTimeout: time.Minute}
	go m.server.Serve(l) //nolint:errcheck // it ends with close
	return m, nil
}

func (m *model) close() { _ = m.server.Close() }

func (m *model) chat(w http.ResponseWriter, r *http.Request) {
	came := time.Now()
	_, _ = io.Copy(io.Discard, r.Body)
	m.mu.Lock()
	n := m.n
	m.n++
	m.came = append(m.came, came)
	m.mu.Unlock()
	text, tool, args := m.reply(n)
	time.Sleep(m.wait)
	delta, finish := fmt.Sprintf(`{"role":"assistant","content":%q}`, text), "stop"
	if tool != "" {
		delta = fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, n, tool, args)
		finish = "tool_calls"
	}
	const head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"scripted-1","choices":[`
	var b strings.Builder
	b.WriteString(head + `{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n")
	b.WriteString(head + `{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\n")
	b.WriteString(head + `],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}` + "\n\ndata: [DONE]\n\n")
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, b.String())
	_ = http.NewResponseController(w).Flush()
	m.mu.Lock()
	m.sent = append(m.sent, time.Now())
	m.mu.Unlock()
}
