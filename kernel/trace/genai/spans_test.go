package genai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	own "ashlar/kernel/trace"
	"ashlar/kernel/trace/otlp"
)

// sink is a collector that keeps name and error of each span.
type sink struct {
	mu    sync.Mutex
	spans []string
	block chan struct{} // nil: it answers at once
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.block != nil {
		<-s.block
		return
	}
	var m struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					Name       string
					Attributes []struct {
						Key   string
						Value struct{ StringValue, IntValue string }
					}
				}
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, span := range m.ResourceSpans[0].ScopeSpans[0].Spans {
		text := span.Name
		for _, a := range span.Attributes {
			if a.Key == errorType || a.Key == inputTokens {
				text += " " + a.Value.StringValue + a.Value.IntValue
			}
		}
		s.spans = append(s.spans, text)
	}
}

func start(t *testing.T, s *sink) *Spans {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		if s.block != nil {
			close(s.block)
		}
		server.Close()
	})
	return Start(otlp.Config{URL: server.URL, Timeout: 10 * time.Second}, Options{Identity: own.Identity{TraceID: "t"}, Run: "r"})
}

func fact(typ, beat string, kv ...any) Fact {
	f := Fact{At: time.Unix(1700000000, 0), Type: typ, Session: "s", Beat: beat, Fields: map[string]any{}}
	for i := 0; i < len(kv); i += 2 {
		f.Fields[kv[i].(string)] = kv[i+1]
	}
	return f
}

func TestEveryCallIsOneSpanWhateverTheOrderOfFacts(t *testing.T) {
	for _, c := range []struct {
		name  string
		facts []Fact
		want  string
	}{
		{"a beat of two calls", []Fact{fact("run_started", "", "block", "b.lua"), fact("beat_started", "1", "model", "m"), fact("usage", "1", "input", int64(1)),
			fact("usage", "1", "input", int64(2)), fact("beat_finished", "1"), fact("run_finished", "", "status", "completed")},
			"chat m 1|chat m 2|invoke_agent b.lua"},
		{"a call of no beat", []Fact{fact("run_started", "", "block", "b.lua"), fact("usage", "", "input", int64(1), "cache_read", int64(2)), fact("run_finished", "")},
			"chat 3|invoke_agent b.lua"},
		{"a call that failed", []Fact{fact("run_started", "", "block", "b.lua"), fact("beat_started", "1", "model", "m"), fact("beat_finished", "1"), fact("run_finished", "")},
			"chat m _OTHER|invoke_agent b.lua"},
		{"two calls of one tool at once", []Fact{fact("run_started", "", "block", "b.lua"), fact("tool_call", "", "tool", "x"), fact("tool_call", "", "tool", "x"),
			fact("tool_result", "", "tool", "x", "ok", true), fact("tool_result", "", "tool", "x", "ok", false, "kind", "timeout"), fact("run_finished", "")},
			"execute_tool x|execute_tool x timeout|invoke_agent b.lua"},
		{"a run that was cut", []Fact{fact("run_started", "", "block", "b.lua"), fact("beat_started", "1", "model", "m"), fact("tool_call", "1", "tool", "x"),
			fact("run_finished", "", "status", "failed", "error", map[string]any{"kind": "timeout"})},
			"chat m unfinished|execute_tool x unfinished|invoke_agent b.lua timeout"},
		{"a run without an end", []Fact{fact("run_started", "", "block", "b.lua")}, "invoke_agent b.lua unfinished"},
		{"results of nothing", []Fact{fact("tool_result", "", "tool", "x", "ok", true), fact("beat_finished", "1"), fact("run_finished", "")}, ""},
		{"fields of other types", []Fact{fact("run_started", "", "block", int64(1)), fact("tool_call", "", "tool", []any{}), fact("usage", "", "input", "x"), fact("run_finished", "", "error", "x")},
			"chat 0|execute_tool unfinished|invoke_agent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sink := &sink{}
			s := start(t, sink)
			for _, f := range c.facts {
				s.Fact(f)
			}
			if lost, reason := s.Close(10 * time.Second); lost != 0 || reason != "" {
				t.Errorf("%d lost: %s", lost, reason)
			}
			if got := strings.Join(sink.spans, "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			s.Fact(fact("run_started", "")) // after the end: nothing
		})
	}
}

// TestACollectorThatHangsHoldsNothing fills the queue and more, and wants every span
// accounted for and no goroutine left.
func TestACollectorThatHangsHoldsNothing(t *testing.T) {
	sink := &sink{block: make(chan struct{})}
	s := start(t, sink)
	const calls = 3 * MaxQueued
	begun := time.Now()
	s.Fact(fact("run_started", ""))
	for i := range calls {
		s.Fact(fact("tool_call", "", "tool", "x", "call_id", fmt.Sprint(i)))
		s.Fact(fact("tool_result", "", "tool", "x", "call_id", fmt.Sprint(i), "ok", true))
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("facts waited: %s", took)
	}
	s.Fact(fact("run_finished", ""))
	if lost, reason := s.Close(50 * time.Millisecond); lost != calls+1 || reason == "" {
		t.Errorf("%d lost of %d: %q", lost, calls+1, reason)
	}
	if again, _ := s.Close(time.Second); again != calls+1 {
		t.Errorf("closed twice: %d", again)
	}
	var left string
	for range 100 {
		stacks := make([]byte, 1<<20)
		left = string(stacks[:runtime.Stack(stacks, true)])
		if !strings.Contains(left, "sdk/trace") && !strings.Contains(left, "net/http.(*persistConn)") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("goroutines are left:\n%s", left)
}
