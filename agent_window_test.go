package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// Row 15 of faults: the same call again and again is stopped by name; a tool that polls
// is exempt by declaration.
func TestADoomLoopIsStoppedByName(t *testing.T) {
	t.Parallel()
	same := llmtest.Calls(llmtest.Call{Name: "t", Args: `{"a":1,"b":2}`})
	other := llmtest.Calls(llmtest.Call{Name: "t", Args: `{"b":2,"a":1}`})
	for _, c := range []struct {
		name, opts, handler, want string
		replies                   []llmtest.Reply
	}{
		{"the same call and result", ``, `return "ok"`, "false limit repeated 5 the model made the same call 5 times in a row: t", []llmtest.Reply{same, other, same.Times(-1)}},
		{"a limit of one's own", `max_repeats = 3`, `return "ok"`, "false limit repeated 3 ", []llmtest.Reply{same.Times(-1)}},
		{"other results", ``, `return n`, "false limit repeated 10 ", []llmtest.Reply{same.Times(-1)}},
		{"no limit", `max_repeats = false`, `return "ok"`, "false limit max_iterations 20 ", []llmtest.Reply{same.Times(-1)}},
		{"something between", ``, `return "ok"`, "true nil nil 9 nil", []llmtest.Reply{same.Times(4), llmtest.Calls(llmtest.Call{Name: "t", Args: `{"a":2}`}), same.Times(3), llmtest.Text("done")}},
		{"polling", `poll`, `return "ok"`, "true nil nil 9 nil", []llmtest.Reply{same.Times(8), llmtest.Text("done")}},
		{"failing calls", ``, `error("no")`, "false limit repeated 5 ", []llmtest.Reply{same.Times(-1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.replies...)
			repeatable, opts := "nil", c.opts
			if opts == "poll" {
				repeatable, opts = "true", ""
			}
			res := r.ok(fmt.Sprintf(`
local n = 0
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", repeatable = %s, handler = function() n = n + 1 %s end } }, %s })
return table.concat({ tostring(r.ok), tostring(r.error_kind), tostring(r.stopped_by), r.num_turns, tostring(r.error) }, " ")`, repeatable, c.handler, opts))
			if got := res.Value.(string); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
			if res.Code() != ashlar.ExitOK {
				t.Errorf("code %d", res.Code())
			}
		})
	}
}

// D1: a log of over 1,000 events beats on, and the conversation stays inside the window.
func TestTheAgentStaysInsideItsWindow(t *testing.T) {
	t.Parallel()
	var replies []llmtest.Reply
	for i := range 12 {
		replies = append(replies, llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", i), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, i)}))
	}
	r := newRig(t, append(replies, llmtest.Text("done"))...)
	got := r.result(`
local history = {}
for i = 1, 600 do history[2 * i - 1] = { role = "user", content = "question " .. i } history[2 * i] = { role = "assistant", content = "answer " .. i } end
local r = require("agent").run({ prompt = "the real task", history = history, context_window = 6000, max_tokens = 1000,
  extra_tools = { { name = "t", description = "d", handler = function() return ("result "):rep(800) end } } })
eq(r.ok, true, r.error) eq(r.content, "done") eq(r.num_turns, 13)
return { n = #r.messages }`)
	if num(got, "n") != 1200+1+25 {
		t.Errorf("the conversation has %d messages", num(got, "n"))
	}
	for i, q := range r.model.Requests() {
		pairs(t, i+1, q.Body)
		if len(q.Raw) > 5000*5 {
			t.Errorf("request %d has %d bytes", i+1, len(q.Raw))
		}
		contains(t, string(q.Raw), "the real task")
	}
}

// A window that config.toml names for the model holds without a word in the script.
func TestTheAgentKnowsAConfiguredWindow(t *testing.T) {
	t.Parallel()
	var replies []llmtest.Reply
	for i := range 8 {
		replies = append(replies, llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", i), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, i)}))
	}
	config := ""
	for _, provider := range []string{"openai", "ashlar", "custom"} {
		config += fmt.Sprintf("[model.\"%s/scripted-1\"]\ncontext_window = 6000\nmax_output = 1000\n", provider)
	}
	r := newConfiguredRig(t, config, append(replies, llmtest.Text("done"))...)
	res := r.ok(`
local r = require("agent").run({ prompt = "the task", extra_tools = { { name = "t", description = "d", handler = function() return ("result "):rep(800) end } } })
eq(r.ok, true, r.error) eq(r.content, "done")`)
	for i, q := range r.model.Requests() {
		pairs(t, i+1, q.Body)
		if len(q.Raw) > 5000*5 {
			t.Errorf("request %d has %d bytes", i+1, len(q.Raw))
		}
	}
	for _, e := range r.events(r.only(res)) {
		if e.Kind == "llm_request" && num(sub(dataOf(t, e), "window"), "limit") != 5000 {
			t.Fatalf("%.300s", e.Data)
		}
	}
}

func TestTheAgentSaysWhenNothingFits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local r = require("agent").run({ prompt = "go", system = ("rule "):rep(2000), context_window = 900, max_tokens = 300 })
eq(r.ok, false) eq(r.error_kind, "limit") eq(r.stopped_by, "context") eq(r.num_turns, 0) assert(r.error:find("context window", 1, true))`)
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// A server that finds a request too long gets a shorter one, as long as there is
// something to leave out; a first prompt is not cut behind the caller's back.
func TestTheAgentGoesOnAfterATooLongRequest(t *testing.T) {
	t.Parallel()
	tooLong := llmtest.Error(400, "invalid_request_error", "context_length_exceeded", "maximum context length is 10 tokens")
	r := newRig(t, tooLong)
	r.ok(`
local r = require("agent").run({ prompt = "go" })
eq(r.ok, false) eq(r.error_kind, "context_length") eq(r.num_turns, 0)`)
	call := func(i int) llmtest.Reply {
		return llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", i), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, i)})
	}
	r = newRig(t, call(1), call(2), call(3), tooLong, tooLong, llmtest.Text("done"))
	r.ok(`
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", handler = function() return ("word "):rep(300) end } } })
eq(r.ok, true, r.error) eq(r.content, "done") eq(r.num_turns, 4)`)
	q := r.model.Requests()
	for i := 4; i < 6; i++ {
		pairs(t, i, q[i].Body)
		if len(q[i].Raw) >= len(q[i-1].Raw) {
			t.Errorf("request %d is not shorter: %d, %d bytes", i+1, len(q[i-1].Raw), len(q[i].Raw))
		}
	}
	r = newRig(t, call(1), tooLong.Times(-1))
	r.ok(`
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", handler = function() return ("word "):rep(300) end } } })
eq(r.ok, false) eq(r.error_kind, "context_length") eq(r.num_turns, 1)`)
	if n := len(r.model.Requests()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

// Scenario 147 through the agent.
func TestTheAgentCompacts(t *testing.T) {
	t.Parallel()
	n := 0
	r := newRig(t, llmtest.Func(func(body map[string]any) llmtest.Reply {
		messages := body["messages"].([]any)
		last := str(messages[len(messages)-1].(map[string]any), "content")
		if strings.HasPrefix(last, "Write a summary") {
			return llmtest.Text("I read some of it").WithUsage(llmtest.Usage{Prompt: 7, Completion: 3})
		}
		if n++; n > 12 {
			return llmtest.Text("done").WithUsage(llmtest.Usage{Prompt: 7, Completion: 3})
		}
		return llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", n), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, n)}).WithUsage(llmtest.Usage{Prompt: 7, Completion: 3})
	}))
	res := r.ok(`
local r = require("agent").run({ prompt = "read it", compact = { at = 0.7 }, context_window = 5000, max_tokens = 500, max_iterations = 40,
  extra_tools = { { name = "t", description = "d", handler = function(i) return ("word "):rep(600) .. i.n end } } })
eq(r.ok, true, r.error) eq(r.content, "done") eq(r.num_turns, 13) assert(r.compactions >= 1, r.compactions)
eq(#r.messages, 26) eq(std.json.encode(r.messages):find("I read some", 1, true), nil)
eq(r.usage.total_tokens, 10 * (13 + r.compactions))
return r.compactions`)
	e := r.events(r.only(res))
	if int64(count(e, "summary")) != res.Value.(int64) || count(e, "compact_started") != count(e, "summary") {
		t.Errorf("%v compactions: %s", res.Value, kinds(e))
	}
	after := 0
	for i, q := range r.model.Requests() {
		pairs(t, i+1, q.Body)
		if strings.Contains(string(q.Raw), "I read some of it") {
			after++
			if first := q.Body["messages"].([]any)[0].(map[string]any); str(first, "content") != "read it" {
				t.Errorf("request %d begins with %v", i+1, first)
			}
		}
	}
	if after == 0 {
		t.Error("no request starts from the summary")
	}
}

// Replies without a word or a call do not go on for ever.
func TestTurnsThatBringNothingStop(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local loop = require("agent.loop")
local session = knl.open()
session:append({ kind = "msg_user", data = { content = "go" } })
local device = knl.device({ llm = function() return { status = "ok", content = { { type = "thinking", thinking = "hm" } }, usage = { input_tokens = 1, output_tokens = 1 }, stop_reason = "pause_turn" } end })
local r = loop.run(session, device, {}, { usage = loop.zero(), turns = 0, session = session:id() })
eq(r.ok, false) eq(r.error_kind, "limit") eq(r.stopped_by, "no_progress") eq(r.num_turns, 2)`)
}
