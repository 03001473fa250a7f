package ashlar_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// onWires runs a test once on each wire, each time with a rig of its own whose model
// speaks it.
func onWires(t *testing.T, replies []llmtest.Reply, test func(t *testing.T, r *rig, wire string)) {
	t.Helper()
	for _, wire := range []string{"openai", "anthropic"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			test(t, wired(t, wire, replies...), wire)
		})
	}
}

// wired is newRig for a wire.
func wired(t testing.TB, wire string, replies ...llmtest.Reply) *rig {
	t.Helper()
	r := &rig{t: t, model: llmtest.New(t, replies...), dir: t.TempDir(), stderr: &buffer{}, facts: &facts{}}
	project := filepath.Join(r.dir, "project")
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	r.ws, err = ashlar.Open(context.Background(), ashlar.Options{
		Project: project, Stderr: r.stderr, Stdout: r.stderr,
		Environ: []string{
			"ASHLAR_HOME=" + filepath.Join(r.dir, "home"), "PATH=" + os.Getenv("PATH"), "ASHLAR_MODEL=" + wire + "/scripted-1",
			"ASHLAR_BASE_URL=" + r.model.URL(), "OPENAI_API_KEY=sk-rig-0123456789abcdef", "ANTHROPIC_API_KEY=sk-ant-rig-0123456789abcdef",
		},
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

// port opens the wire's port in a script.
const port = `local function port(conf) conf = conf or {} return adapter.port(conf):open(conf) end; `

// Scenarios 95 and 96: a tool is dispatched, the second turn answers; usage adds up, and
// the key goes where the wire has it.
func TestTheAgentWorksOnBothWires(t *testing.T) {
	t.Parallel()
	replies := []llmtest.Reply{
		llmtest.Calls(llmtest.Call{ID: "c1", Name: "add", Args: `{"a":2,"b":3}`}).WithUsage(llmtest.Usage{Prompt: 20, Completion: 4, Cached: 5, Reasoning: 1}),
		llmtest.Text("it is 5").WithUsage(llmtest.Usage{Prompt: 30, Completion: 6}),
	}
	onWires(t, replies, func(t *testing.T, r *rig, wire string) {
		r.ok(`
tool.register("add", { description = "adds", input_schema = { type = "object", properties = { a = { type = "integer" }, b = { type = "integer" } }, required = { "a", "b" } } },
  function(input) return input.a + input.b end)
local told = ""
local r = require("agent").run({ prompt = "2+3?", system = "be exact", on_delta = function(text) told = told .. text end })
eq(r.ok, true, r.error) eq(r.content, "it is 5") eq(r.num_turns, 2) eq(told, "it is 5")
local u = r.usage
eq(u.input_tokens, 50) eq(u.output_tokens, 10) eq(u.total_tokens, 60) eq(u.thinking_tokens, 1)
eq(#r.messages, 4) eq(r.messages[3].content[1].content, "5")`)
		q := r.model.Requests()
		if len(q) != 2 {
			t.Fatalf("%d requests", len(q))
		}
		path, key := "/v1/chat/completions", q[0].Header.Get("Authorization")
		if wire == "anthropic" {
			path, key = "/v1/messages", q[0].Header.Get("X-Api-Key")
			if q[0].Body["max_tokens"] != 8192.0 || q[0].Header.Get("Anthropic-Beta") != "context-management-2025-06-27" {
				t.Errorf("%v %s", q[0].Header, q[0].Raw)
			}
		}
		if q[0].Path != path || !strings.Contains(key, "rig-0123456789abcdef") {
			t.Errorf("%s %v", q[0].Path, q[0].Header)
		}
	})
}

// Scenario 97 on both wires: arguments that are no JSON run nothing, the model is told,
// and what is sent back is valid.
func TestBrokenArgumentsAreToldOnBothWires(t *testing.T) {
	t.Parallel()
	replies := []llmtest.Reply{
		llmtest.Calls(llmtest.Call{ID: "c1", Name: "t", Args: `{"n": `}, llmtest.Call{ID: "c2", Name: "t", Args: `[1]`}, llmtest.Call{ID: "c3", Name: "t", Args: `{"n":1}`}),
		llmtest.Calls(llmtest.Call{ID: "c4", Name: "t", Args: ``}).WithFinish("length"), llmtest.Text("done"),
	}
	onWires(t, replies, func(t *testing.T, r *rig, _ string) {
		r.ok(port + `
local ran = 0
local d = knl.device({ llm = port(), tools = { t = { description = "d", handler = function() ran = ran + 1 return "ran" end } } })
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local o = knl.beat(s, d)
eq(o.status, "ok", o.detail and o.detail.message) eq(ran, 1)
eq(o.out.tools[1].ok, false) eq(o.out.tools[2].ok, false) eq(o.out.tools[3].ok, true)
o = knl.beat(s, d)
eq(o.status, "ok", o.detail and o.detail.message) eq(ran, 1) eq(o.out.stop_reason, "max_tokens") eq(o.out.tools[1].ok, false)
eq(knl.beat(s, d).status, "ok")`)
		for _, q := range r.model.Requests() {
			if strings.Contains(string(q.Raw), "input_raw") || strings.Contains(string(q.Raw), "input_error") {
				t.Errorf("what is ours went out: %s", q.Raw)
			}
		}
	})
}

// Whatever ends a call badly is the same documented outcome on both wires.
func TestCallsFailAlikeOnBothWires(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply     llmtest.Reply
		kind      string
		retryable bool
	}{
		"closed early":       {llmtest.CloseEarly("some words and more"), "transport", true},
		"no end":             {llmtest.NoDone("some words and more"), "transport", true},
		"an error inside":    {llmtest.ErrorInStream("some words and more"), "server", true},
		"overloaded":         {llmtest.Error(529, "overloaded_error", "", "Overloaded"), "overloaded", true},
		"rate limited":       {llmtest.RateLimited(""), "rate_limited", true},
		"quota":              {llmtest.QuotaExceeded(), "quota", false},
		"no payment":         {llmtest.Error(402, "", "", "Insufficient credits"), "quota", false},
		"a bad key":          {llmtest.Error(401, "authentication_error", "", "invalid key sk-abcdef0123456789"), "auth", false},
		"not allowed":        {llmtest.Error(403, "permission_error", "", "no"), "auth", false},
		"not found":          {llmtest.Error(404, "not_found_error", "", "no such model"), "invalid_request", false},
		"too large":          {llmtest.Error(413, "request_too_large", "", "32 MB"), "invalid_request", false},
		"too long":           {llmtest.Error(400, "invalid_request_error", "context_length_exceeded", "too long"), "context_length", false},
		"a page":             {llmtest.HTML(502), "server", true},
		"a page that is 200": {llmtest.HTML(200), "server", false},
	} {
		onWires(t, []llmtest.Reply{c.reply}, func(t *testing.T, r *rig, _ string) {
			got := r.result(port + `
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local o = knl.beat(s, knl.device({ llm = port({ max_retries = 0 }) }))
eq(o.status, "error") eq(o.kind, "call")
return { kind = o.detail.kind, retryable = o.detail.retryable, message = o.detail.message }`)
			if got["kind"] != c.kind || got["retryable"] != c.retryable {
				t.Errorf("%s: %v, want %s %v", name, got, c.kind, c.retryable)
			}
			if strings.Contains(fmt.Sprint(got["message"]), "0123456789") {
				t.Errorf("%s: a part of the key: %v", name, got["message"])
			}
		})
	}
}

// What providers refuse, and why: the neutral outcome of both wires.
func TestRefusalsOnBothWires(t *testing.T) {
	t.Parallel()
	onWires(t, []llmtest.Reply{llmtest.Refusal("I will not.")}, func(t *testing.T, r *rig, _ string) {
		r.ok(port + `
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local o = knl.beat(s, knl.device({ llm = port() }))
eq(o.status, "refused") eq(o.reason, "model") eq(o.detail.refusal.detail, "I will not.")`)
	})
}

// Scenario 103: retries are in the log before they leave, and nothing else is retried.
func TestRetriesOnBothWires(t *testing.T) {
	t.Parallel()
	replies := []llmtest.Reply{llmtest.Error(529, "overloaded_error", "", "Overloaded"), llmtest.Error(500, "api_error", "", "oops"), llmtest.Text("at last")}
	onWires(t, replies, func(t *testing.T, r *rig, _ string) {
		res := r.ok(`local r = require("agent").run({ prompt = "x" }) eq(r.ok, true, r.error) eq(r.content, "at last") return r.session`)
		got := ""
		for _, e := range r.events(res.Value.(string)) {
			if e.Kind == "llm_retry" {
				got += string(e.Data)
			}
		}
		for _, part := range []string{`"kind":"overloaded"`, `"status":529`, `"kind":"server"`, `"status":500`} {
			contains(t, got, part)
		}
	})
}

// What is kept of a conversation goes out byte for byte as if it were built anew, on
// both wires: the beginning of a request stays what the provider cached.
func TestKeptMessagesGoOutAsIfBuiltAnewOnBothWires(t *testing.T) {
	t.Parallel()
	onWires(t, nil, func(t *testing.T, r *rig, _ string) {
		run := func(wrap string) []string {
			before := len(r.model.Requests())
			r.model.Add(agentReplies(6)...)
			r.ok(port + `
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "grüße \"x\"\n" } })
local p = port({ max_tokens = 100 })
local d = knl.device({ system = "sys", llm = ` + wrap + `, tools = { t = { description = "d", handler = function(i) return { n = i.n, text = "é\n" } end } } })
for i = 1, 6 do local o = knl.beat(s, d) eq(o.status, "ok", tostring(o.detail and o.detail.message)) end`)
			var raw []string
			for _, q := range r.model.Requests()[before:] {
				raw = append(raw, string(q.Raw))
			}
			return raw
		}
		kept, anew := run("p"), run("function(request, ctx) return p(request, ctx) end")
		for i := range kept {
			if kept[i] != anew[i] {
				t.Fatalf("request %d:\n%s\n%s", i, kept[i], anew[i])
			}
		}
	})
}
