package ashlar_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
	"ashlar/stdlib/llm/llmtest"
)

// rig is a workspace in a directory of its own, with a scripted model behind it.
// Scripts run through Prepare and Execute, as a user's do.
type rig struct {
	t      testing.TB
	model  *llmtest.Server
	ws     *ashlar.Workspace
	dir    string
	stderr *buffer
	facts  *facts
}

// buffer is safe for the goroutines of a run.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// facts keeps the event stream of the rig's runs.
type facts struct {
	mu  sync.Mutex
	all []ashlar.Fact
}

func (f *facts) Fact(x ashlar.Fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, x)
}

func newRig(t testing.TB, replies ...llmtest.Reply) *rig {
	t.Helper()
	return newConfiguredRig(t, "", replies...)
}

// newConfiguredRig is newRig with a user's config.toml.
func newConfiguredRig(t testing.TB, config string, replies ...llmtest.Reply) *rig {
	t.Helper()
	r := &rig{t: t, model: llmtest.New(t, replies...), dir: t.TempDir(), stderr: &buffer{}, facts: &facts{}}
	project := filepath.Join(r.dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	if config != "" {
		if err := os.Mkdir(filepath.Join(r.dir, "home"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(r.dir, "home", "config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.ws, err = ashlar.Open(context.Background(), ashlar.Options{
		Project: project, Stderr: r.stderr, Stdout: r.stderr,
		Environ: []string{"ASHLAR_HOME=" + filepath.Join(r.dir, "home"), "PATH=" + os.Getenv("PATH"), "ASHLAR_MODEL=scripted-1", "ASHLAR_BASE_URL=" + r.model.URL(),
			"ASHLAR_API_KEY=sk-rig-0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.ws.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// prelude is in front of every script of these tests, on its first line.
const prelude = `local knl = require("knl"); local adapter = require("knl_adapter"); ` +
	`local function eq(got, want, what) if got ~= want then error((what or "value") .. ": got " .. tostring(got) .. ", want " .. tostring(want), 2) end end; ` +
	`local function llm_of(conf) return adapter.openai:open(conf or {}) end; ` +
	`local function say(text) return { status = "ok", content = { { type = "text", text = text } }, usage = { input_tokens = 3, output_tokens = 2 }, stop_reason = "end_turn" } end; ` +
	`local function call(...) local c = {} for i, b in ipairs({...}) do c[i] = { type = "tool_use", id = b[1], name = b[2], input = b[3] or {} } end ` +
	`return { status = "ok", content = c, usage = { input_tokens = 3, output_tokens = 2 }, stop_reason = "tool_use" } end; ` +
	`local function replies(list) local n = 0 return function(request, ctx) n = n + 1 local r = list[n] or error("no reply " .. n) if type(r) == "function" then return r(request, ctx) end return r end end; ` +
	`local function fails(f, ...) local ok, e = pcall(f, ...) if ok then error("it did not raise", 2) end return knl.error(e) end; `

// script runs Lua source and gives how it ended.
func (r *rig) script(source string, change ...func(*ashlar.Task)) ashlar.Result {
	r.t.Helper()
	f, err := os.CreateTemp(r.ws.Project(), "block-*.lua")
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := f.WriteString(prelude + source); err != nil {
		r.t.Fatal(err)
	}
	f.Close()
	task := ashlar.Task{Script: f.Name(), Sinks: []ashlar.Sink{r.facts}}
	for _, c := range change {
		c(&task)
	}
	return r.execute(task)
}

func (r *rig) execute(task ashlar.Task) ashlar.Result {
	r.t.Helper()
	run, err := r.ws.Prepare(task)
	if err != nil {
		r.t.Fatal(err)
	}
	return run.Execute(context.Background())
}

// ok runs a script that must end well.
func (r *rig) ok(source string, change ...func(*ashlar.Task)) ashlar.Result {
	r.t.Helper()
	res := r.script(source, change...)
	if res.Err != nil {
		r.t.Fatalf("%s\n%s", ashlar.Explain(res.Err, true), r.stderr)
	}
	return res
}

// result is ok's value as an object.
func (r *rig) result(source string, change ...func(*ashlar.Task)) map[string]any {
	r.t.Helper()
	m, ok := r.ok(source, change...).Value.(map[string]any)
	if !ok {
		r.t.Fatal("the script returned no object")
	}
	return m
}

// events reads a stream whole.
func (r *rig) events(stream string) []event.Event {
	r.t.Helper()
	s, err := r.ws.Store(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return readAll(r.t, s, stream)
}

func readAll(t testing.TB, s store.Store, stream string) (all []event.Event) {
	t.Helper()
	for from, more := int64(1), true; more; {
		var page []event.Event
		var err error
		if page, more, err = s.Events(context.Background(), stream, store.Query{From: from, Bodies: true}); err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			from = e.Seq + 1
			all = append(all, e)
		}
	}
	return all
}

// only is the one session of a result.
func (r *rig) only(res ashlar.Result) string {
	r.t.Helper()
	if len(res.Sessions) != 1 {
		r.t.Fatalf("sessions: %v", res.Sessions)
	}
	return res.Sessions[0]
}

func dataOf(t testing.TB, e event.Event) map[string]any {
	t.Helper()
	m, err := logjson.Object(e.Data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func kinds(events []event.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return strings.Join(all, " ")
}

func lastOf(events []event.Event) event.Event { return events[len(events)-1] }

func count(events []event.Event, kind string) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// lines gives events as text, ids numbered in the order of their first mention.
func lines(events []event.Event) string {
	names := map[string]string{}
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %s %s\n", e.Seq, e.Kind, e.Meta, e.Data)
	}
	return uuids.ReplaceAllStringFunc(b.String(), func(id string) string {
		if names[id] == "" {
			names[id] = fmt.Sprintf("<%d>", len(names)+1)
		}
		return names[id]
	})
}

func str(m map[string]any, key string) string { s, _ := m[key].(string); return s }

func num(m map[string]any, key string) int64 { n, _ := m[key].(int64); return n }

func sub(m map[string]any, key string) map[string]any { s, _ := m[key].(map[string]any); return s }

func contains(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q is not in:\n%s", part, text)
	}
}

// bounds sets the bounds of a run.
func bounds(b ashlar.Bounds) func(*ashlar.Task) { return func(t *ashlar.Task) { t.Bounds = b } }
