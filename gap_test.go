package ashlar_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar"
)

// instant is a streaming model that answers at once: so many tool calls, then text.
// It notes when it ended a reply and when the next request arrived.
type instant struct {
	beats int

	mu   sync.Mutex
	n    int
	end  time.Time
	gaps []time.Duration
}

func (m *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	m.mu.Lock()
	if !m.end.IsZero() {
		m.gaps = append(m.gaps, arrived.Sub(m.end))
	}
	n := m.n
	m.n++
	m.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	delta := fmt.Sprintf(`{"content":"looking at file %d"},"finish_reason":null}]}`, n)
	last := "tool_calls"
	if n < m.beats {
		delta = fmt.Sprintf(`{"content":"looking at file %d","tool_calls":[{"index":0,"id":"call_%d","type":"function","function":{"name":"peek","arguments":"{\"n\":%d}"}}]},"finish_reason":null}]}`, n, n, n)
	} else {
		last = "stop"
	}
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s\n\n", delta)
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", last)
	fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20}}\n\ndata: [DONE]\n\n")
	_ = http.NewResponseController(w).Flush()
	m.mu.Lock()
	m.end = time.Now()
	m.mu.Unlock()
}

const beatsOfGap = 200

// agentScript runs the agent over a tool that answers at once, with 2 KiB.
const agentScript = `
local agent = require("agent")
local page = ("0123456789abcdef"):rep(128)
local r = agent.run({ prompt = "go", max_iterations = false, extra_tools = {
  { name = "peek", description = "looks", input_schema = { type = "object", properties = { n = { type = "integer" } } },
    handler = function(input) return input.n .. page end } } })
assert(r.ok, r.error)
return r.num_turns`

// wrappedScript is the same with a model call that somebody wrapped, as policies do.
const wrappedScript = `
local page, port = ("0123456789abcdef"):rep(128), llm_of()
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local d = knl.device({ llm = function(request, ctx) return port(request, ctx) end, tools = { peek = { description = "looks", handler = function(input) return input.n .. page end } } })
local n, o = 0, nil
repeat
  o = knl.beat(s, d)
  n = n + 1
until o.status ~= "ok" or #o.out.tools == 0
assert(o.status == "ok")
return n`

// gaps runs a script for so many tool beats.
func gaps(t testing.TB, script string, change ...func(*ashlar.Task)) []time.Duration {
	t.Helper()
	m := &instant{beats: beatsOfGap}
	srv := httptest.NewServer(m)
	defer srv.Close()
	r := newRig(t)
	res := r.ok(script, append(change, func(task *ashlar.Task) { task.BaseURL = srv.URL })...)
	if res.Value != int64(beatsOfGap+1) {
		t.Fatalf("turns: %v", res.Value)
	}
	return m.gaps
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkBeatGap is the time from the end of a reply to the next request: what a
// beat costs beside the model. It must stay flat as the history grows.
func BenchmarkBeatGap(b *testing.B) {
	for _, c := range []struct {
		name   string
		script string
		change []func(*ashlar.Task)
	}{
		{"plain", agentScript, nil},
		{"wrapped", wrappedScript, nil},
		{"pool", agentScript, []func(*ashlar.Task){bounds(ashlar.Bounds{Beats: 1000, Tokens: 100_000_000, ToolCalls: 1000})}},
		{"nojournal", agentScript, []func(*ashlar.Task){func(t *ashlar.Task) { t.NoJournal = true }}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var all, first, last []time.Duration
			for b.Loop() {
				g := gaps(b, c.script, c.change...)
				all = append(all, g...)
				first = append(first, g[:len(g)/4]...)
				last = append(last, g[len(g)-len(g)/4:]...)
			}
			b.ReportMetric(float64(median(all).Microseconds())/1000, "p50_ms")
			b.ReportMetric(float64(median(last))/float64(median(first)), "last_over_first")
			b.ReportMetric(0, "ns/op")
		})
	}
}
