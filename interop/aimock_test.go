//go:build interop

package interop

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar"
)

const (
	runs     = 500
	atOnce   = 12
	deadline = 60 * time.Second // of one run
	settle   = 10 * time.Second // for goroutines that are on their way out
)

// block is what every run runs: one agent, with what its case asks for.
const block = `
local case = std.json.decode(_PROMPT)
local opts = { prompt = case.prompt, model = case.model, provider = case.provider, base_url = case.base_url, api_key = "sk-interop-0123456789",
  budget = { tokens = case.tokens, beats = case.beats }, max_tokens = 100, stream = case.stream, timeout = 20 }
if case.tools then
  opts.extra_tools = {
    { name = "add", description = "adds", input_schema = { type = "object" }, handler = function(i) return i.a + i.b end },
    { name = "fails", description = "fails", input_schema = { type = "object" }, handler = function(i) error("it fails: " .. i.why) end },
  }
end
if case.stream then opts.on_delta = function() end end
local r = require("agent").run(opts)
return { ok = r.ok, error_kind = r.error_kind, stopped_by = r.stopped_by, content = r.content, error = r.error, usage = r.usage, turns = r.num_turns }
`

// answers are what a run that ended well must say, by the first word of its prompt;
// nothing where it cannot.
var answers = map[string]string{
	"say:":   "A plain answer that is long enough to come in several pieces, né à Zürich ✓.",
	"tool:":  "The sum is five.",
	"tools:": "Four calls, one of them failed, one was of nothing.",
	"big:":   "It counts more than anybody could know.",
	"cut:":   "This answer is broken off in the middle, so that nobody may take it for a whole one.",
}

// kinds are the documented failures of a call that such a server can cause, stops the
// documented reasons of a limit.
var (
	kinds = []string{"transport", "rate_limited", "overloaded", "server", "unknown", "truncated", "limit"}
	stops = []string{"max_iterations", "tokens", "repeated", "no_progress", "context", "beats", "tool_calls"}
)

// variant is one of the cases that runs are spread over.
type variant struct {
	wire, word string
	stream     bool
	short      string // the bound that is short: "", run.tokens, run.beats, run.tool_calls, session.tokens, session.beats
}

func (v variant) String() string {
	how := "whole"
	if v.stream {
		how = "stream"
	}
	return v.wire + " " + how
}

func variantOf(i int) variant {
	words := []string{"say:", "tool:", "tools:", "cut:", "loop:", "big:"}
	shorts := []string{"", "", "run.tokens", "run.beats", "run.tool_calls", "session.tokens", "session.beats"}
	return variant{wire: []string{"chat", "messages"}[i%2], stream: i/2%2 == 0, word: words[i/4%len(words)], short: shorts[i/(4*len(words))%len(shorts)]}
}

// outcome is how one run ended and what is wrong with that.
type outcome struct {
	variant
	ending   string
	took     time.Duration
	calls    int   // that left for the server, by the log
	used     int64 // of tokens, settled with the run's pool
	over     bool  // the server counted more than could be reserved
	problems []string
}

func TestFiveHundredAgentsOnAServerThatMisbehaves(t *testing.T) {
	c := chaos{drop: 0.06, malformed: 0.06, disconnect: 0.06, ratelimit: 0.06, latency: 15}
	s := startServer(t, c)
	http.DefaultClient.CloseIdleConnections()
	before := stacks()

	dir := t.TempDir()
	file := filepath.Join(dir, "block.lua")
	if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Client: client, Stderr: os.Stderr,
		Environ: []string{"ASHLAR_HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "ASHLAR_LOG=error"}})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	all := drive(t, ws, s, file)
	took := time.Since(begun)
	if err := ws.Close(); err != nil {
		t.Error(err)
	}
	client.CloseIdleConnections()
	report(t, all, s.requests(t), took)
	http.DefaultClient.CloseIdleConnections()
	if left := remaining(before); left != "" {
		t.Errorf("goroutines are left:\n%s", left)
	}
}

// drive runs them all, some at once.
func drive(t *testing.T, ws *ashlar.Workspace, s server, file string) []outcome {
	t.Helper()
	all := make([]outcome, runs)
	next := make(chan int)
	var wg sync.WaitGroup
	for range atOnce {
		wg.Go(func() {
			for i := range next {
				all[i] = one(ws, s, file, i)
			}
		})
	}
	for i := range runs {
		next <- i
	}
	close(next)
	wg.Wait()
	return all
}

// one runs one agent and looks at what it left.
func one(ws *ashlar.Workspace, s server, file string, i int) (o outcome) {
	o.variant = variantOf(i)
	wrong := func(format string, args ...any) { o.problems = append(o.problems, fmt.Sprintf(format, args...)) }
	limit := func(name string, ample, short int64) int64 {
		if o.short == name {
			return short
		}
		return ample
	}
	prompt := fmt.Sprintf(`{"prompt":"%s run %d","model":"m-%d","provider":%q,"base_url":%q,"stream":%v,"tools":%v,"tokens":%d,"beats":%d}`,
		o.word, i, i, map[string]string{"chat": "openai", "messages": "anthropic"}[o.wire], s.url+map[string]string{"chat": "/v1"}[o.wire],
		o.stream, o.word != "say:" && o.word != "cut:", limit("session.tokens", 20_000, 300), limit("session.beats", 12, 2))
	run, err := ws.Prepare(ashlar.Task{Script: file, Prompt: &prompt, NoJournal: i%3 == 0, Bounds: ashlar.Bounds{
		Tokens: limit("run.tokens", 40_000, 280), Beats: limit("run.beats", 40, 2), ToolCalls: limit("run.tool_calls", 40, 1), Deadline: deadline,
	}})
	if err != nil {
		wrong("prepare: %v", err)
		return o
	}
	begun := time.Now()
	res := run.Execute(context.Background())
	o.took = time.Since(begun)
	o.judge(res, wrong)
	ctx := context.Background()
	st, err := ws.Store(ctx)
	if err != nil {
		wrong("store: %v", err)
		return o
	}
	for _, stream := range append([]string{"run:" + res.Run}, res.Sessions...) {
		a, err := accountOf(ctx, st, stream)
		if err != nil {
			wrong("%v", err)
			continue
		}
		o.problems = append(o.problems, a.exact(ctx, st, stream, o.word == "big:")...)
		if strings.HasPrefix(stream, "run:") {
			o.used, o.over = a.used["tokens"], a.overdrawn["tokens"] > 0
			if res.StoppedBy != a.bound() {
				wrong("stopped by %q, but the pool refused %q", res.StoppedBy, a.bound())
			}
			if total, _ := res.Usage["input"].(int64); total+count(res.Usage, "output", "cache_read", "cache_creation") != o.used {
				wrong("its usage is %v, but %d tokens were settled with the pool", res.Usage, o.used)
			}
			continue
		}
		if a.kinds["session_closed"] != 1 {
			wrong("session %s was closed %d times", stream, a.kinds["session_closed"])
		}
		if answered := a.kinds["llm_response"] + a.kinds["llm_call_failed"]; answered != a.kinds["llm_request"] {
			wrong("%d requests, %d ends", a.kinds["llm_request"], answered)
		}
		if a.kinds["tool_call"] != a.kinds["tool_result"] {
			wrong("%d tool calls, %d results", a.kinds["tool_call"], a.kinds["tool_result"])
		}
		o.calls += a.kinds["llm_request"] + a.kinds["llm_retry"] + a.kinds["llm_fallback"]
	}
	return o
}

func count(m map[string]any, keys ...string) (sum int64) {
	for _, key := range keys {
		n, _ := m[key].(int64)
		sum += n
	}
	return sum
}

// judge holds an ending to the documented ones.
func (o *outcome) judge(res ashlar.Result, wrong func(string, ...any)) {
	r, ok := res.Value.(map[string]any)
	if res.Status != "completed" || !ok {
		wrong("the block did not return: %s %q %v", res.Status, res.StoppedBy, res.Err)
		o.ending = res.Status
		return
	}
	kind, _ := r["error_kind"].(string)
	stop, _ := r["stopped_by"].(string)
	content, _ := r["content"].(string)
	switch {
	case r["ok"] == true:
		o.ending = "ok"
		if kind != "" || stop != "" || r["error"] != nil {
			wrong("ok, with error_kind %q, stopped_by %q, error %v", kind, stop, r["error"])
		}
		if content != answers[o.word] || o.word == "loop:" {
			wrong("ok, with the answer %q", content)
		}
	case !slices.Contains(kinds, kind):
		o.ending = kind
		wrong("error_kind %q: %v", kind, r["error"])
	default:
		o.ending = kind
		if text, _ := r["error"].(string); text == "" {
			wrong("it failed and does not say why")
		}
		if (kind == "limit") != (stop != "") || stop != "" && !slices.Contains(stops, stop) {
			wrong("error_kind %q with stopped_by %q: %v", kind, stop, r["error"])
		}
		if stop != "" {
			o.ending += " " + stop
		}
	}
}

// stacks counts goroutines.
func stacks() int { return runtime.NumGoroutine() }

// remaining waits until no more goroutines are there than before, and gives their
// stacks where that does not come.
func remaining(before int) string {
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if stacks() <= before {
			return ""
		}
		if time.Since(begun) > settle {
			b := make([]byte, 1<<20)
			return fmt.Sprintf("%d before, %d after\n%s", before, stacks(), b[:runtime.Stack(b, true)])
		}
	}
}
