package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// agentReplies are so many calls of t, the last reply a text.
func agentReplies(n int) []llmtest.Reply {
	var list []llmtest.Reply
	for i := range n - 1 {
		list = append(list, llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", i), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, i)}))
	}
	return append(list, llmtest.Text("done"))
}

// Scenario 95: a tool is dispatched, the second turn answers.
func TestTheAgentRunsAToolAndAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Calls(llmtest.Call{ID: "c1", Name: "add", Args: `{"a":2,"b":3}`}).WithUsage(llmtest.Usage{Prompt: 20, Completion: 4, Cached: 5, Reasoning: 1}),
		llmtest.Text("it is 5").WithUsage(llmtest.Usage{Prompt: 30, Completion: 6}))
	res := r.ok(`
tool.register("add", { description = "adds", input_schema = { type = "object", properties = { a = { type = "integer" }, b = { type = "integer" } }, required = { "a", "b" } } },
  function(input) return input.a + input.b end)
local r = require("agent").run({ prompt = "2+3?", system = "be exact", max_tokens = 99, temperature = 0 })
eq(r.ok, true, r.error) eq(r.error, nil) eq(r.error_kind, nil) eq(r.stopped_by, nil)
eq(r.content, "it is 5") eq(r.num_turns, 2)
local u = r.usage
eq(u.input_tokens, 50) eq(u.output_tokens, 10) eq(u.total_tokens, 60) eq(u.thinking_tokens, 1)
eq(#r.messages, 4) eq(r.messages[3].content[1].content, "5")
return r.session`, func(task *ashlar.Task) { task.Labels = map[string]any{"team": "x"} })
	if res.Value != r.only(res) {
		t.Errorf("session %v", res.Value)
	}
	q := r.model.Requests()
	if len(q) != 2 {
		t.Fatalf("%d requests", len(q))
	}
	if q[0].Body["max_tokens"] != 99.0 || q[0].Body["temperature"] != 0.0 || q[0].Header.Get("Authorization") == "" {
		t.Errorf("%s", q[0].Raw)
	}
	pairs(t, 1, q[1].Body)
	e := r.events(r.only(res))
	if got := string(e[0].Data); !strings.Contains(got, `"owner":"agent"`) {
		t.Errorf("%s", got)
	}
	if got := string(e[1].Data); !strings.Contains(got, `"amount":20`) || !strings.Contains(got, `"tag":"beats"`) {
		t.Errorf("%s", got)
	}
	if e[2].Kind != "msg_user" || !strings.Contains(string(e[2].Meta), `"label":"prompt"`) {
		t.Errorf("%s %s", e[2].Kind, e[2].Meta)
	}
}

// Scenario 100 and every other option that is wrong: ok=false before any network,
// and never a raise.
func TestTheAgentNeverRaises(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local agent = require("agent")
local function bad(opts, part, kind)
  local r = agent.run(opts)
  eq(r.ok, false, part) eq(r.error_kind, kind or "validation", part)
  assert(r.error:find(part, 1, true), r.error)
  eq(r.num_turns, 0) eq(#r.messages, 0) eq(r.usage.total_tokens, 0) eq(r.content, "")
end
bad(nil, "table of options") bad("text", "table of options")
bad({}, "prompt is required") bad({ prompt = "" }, "prompt is required") bad({ prompt = 4 }, "prompt is required")
bad({ prompt = "x", history = "text" }, "history must be a table (messages array)")
for _, n in ipairs({ 0, 1.5, "3", true }) do bad({ prompt = "x", max_iterations = n }, "max_iterations") end
bad({ prompt = "x", max_tokens_budget = 0 }, "max_tokens_budget")
bad({ prompt = "x", provider = "nobody" }, "unknown provider 'nobody'")
bad({ prompt = "x", mcp_servers = {} }, "mcp_servers")
bad({ prompt = "x", compact = true }, "compact needs context_window")
bad({ prompt = "x", compact = { often = 1 }, context_window = 9, max_tokens = 3 }, "compact: unknown option 'often'")
bad({ prompt = "x", context_window = 1.5 }, "context_window")
bad({ prompt = "x", max_repeats = 1 }, "max_repeats")
bad({ prompt = "x", store = "disk" }, "store")
bad({ prompt = "x", budget = { beats = -1 } }, "-1")
bad({ prompt = "x", budget = 5 }, "budget")
bad({ prompt = "x", system = 5 }, "system")
bad({ prompt = "x", on_turn = 5 }, "on_turn")
bad({ prompt = "x", on_delta = 5 }, "on_delta")
bad({ prompt = "x", extra_tools = 5 }, "extra_tools")
bad({ prompt = "x", tool_groups = "core" }, "tool_groups")
bad({ prompt = "x", timeout = "soon" }, "timeout")
bad({ prompt = "x", history = { "text" } }, "history[1]")
bad({ prompt = "x", history = { { role = "robot", content = "x" } } }, "history[1]")
bad({ prompt = "x", extra_tools = { { name = "t" } } }, "handler")
bad({ prompt = "x", extra_tools = { { handler = print } } }, "extra_tools[1] has no name")`)
	if len(r.model.Requests()) != 0 || len(res.Sessions) != 0 {
		t.Errorf("%d requests, sessions %v", len(r.model.Requests()), res.Sessions)
	}
}

// Scenario 98, as far as there is no MCP.
func TestTheToolSetIsBuiltFromRegistryAndExtraTools(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("1"), llmtest.Text("2"), llmtest.Text("3"), llmtest.Text("4"),
		llmtest.Calls(llmtest.Call{ID: "a", Name: "nested", Args: `{"q":"x"}`}, llmtest.Call{ID: "b", Name: "reg", Args: `{}`}), llmtest.Text("5"))
	r.ok(`
local agent = require("agent")
tool.register("reg", { description = "r" }, function() return "from the registry" end)
tool.register("grouped", { description = "g" }, function() return "g" end, { group = "extra" })
local extra = {
  { name = "flat", description = "f", input_schema = { type = "object" }, handler = function() return "f" end, group = "extra" },
  { name = "nested", schema = { description = "n", input_schema = { type = "object", properties = { q = { type = "string" } } } }, handler = function(i) return "n" .. i.q end },
}
local before = std.json.encode(extra[1].input_schema)
for _, groups in ipairs({ false, {}, { "extra" }, { "default" } }) do
  local r = agent.run({ prompt = "x", extra_tools = extra, tool_groups = groups or nil })
  eq(r.ok, true, r.error)
end
eq(extra[1].group, "extra") eq(extra[2].schema.description, "n") eq(std.json.encode(extra[1].input_schema), before)
local r = agent.run({ prompt = "x", extra_tools = extra })
eq(r.ok, true, r.error)
eq(r.messages[3].content[1].content, "nx") eq(r.messages[3].content[2].content, "from the registry")
for _, clash in ipairs({ { extra[1], extra[1] }, { { name = "reg", handler = print } } }) do
  r = agent.run({ prompt = "x", extra_tools = clash })
  eq(r.ok, false) eq(r.error_kind, "validation") assert(r.error:find("duplicate tool name", 1, true), r.error)
end`)
	want := []string{"flat grouped nested reg", "flat grouped nested reg", "flat grouped", "nested reg"}
	for i, q := range r.model.Requests()[:4] {
		var names []string
		list, _ := q.Body["tools"].([]any)
		for _, x := range list {
			f := sub(x.(map[string]any), "function")
			names = append(names, str(f, "name"))
			if len(f) != 3 {
				t.Errorf("on the wire: %v", f)
			}
		}
		if got := strings.Join(names, " "); got != want[i] {
			t.Errorf("%d: %s, want %s", i, got, want[i])
		}
	}
}

func TestTheAgentsWaysToStop(t *testing.T) {
	t.Parallel()
	call := llmtest.Calls(llmtest.Call{Name: "t", Args: `{}`}).WithUsage(llmtest.Usage{Prompt: 100, Completion: 10})
	for _, c := range []struct {
		name, opts, want string
		replies          []llmtest.Reply
		bound            ashlar.Bounds
		code             int
	}{
		{"the cap", `max_iterations = 2`, "false limit max_iterations 2 max_iterations (2) reached", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{}, 0},
		{"the default cap", ``, "false limit max_iterations 20 max_iterations (20) reached", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{}, 0},
		{"the run's beats", `max_iterations = false`, "false limit beats 3 the budget of beats is used up", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{Beats: 3}, 3},
		{"the run's beats first", `max_iterations = 5`, "false limit beats 3 the budget of beats is used up", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{Beats: 3}, 3},
		{"its own cap first", `max_iterations = 2`, "false limit max_iterations 2 max_iterations (2) reached", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{Beats: 3}, 0},
		{"tokens of its own", `max_tokens_budget = 150`, "false limit tokens 2 token budget exceeded (220/150)", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{}, 0},
		{"on_turn", `on_turn = function(i) return i.turn_number < 2 end`, "true nil nil 2 nil", []llmtest.Reply{call.Times(-1)}, ashlar.Bounds{}, 0},
		{"on_turn raises", `on_turn = function() error("oh") end`, "true nil nil 1 nil", []llmtest.Reply{llmtest.Text("x")}, ashlar.Bounds{}, 0},
		{"truncated", ``, "false truncated nil 1 the reply was cut", []llmtest.Reply{llmtest.Finish("length", "half a")}, ashlar.Bounds{}, 0},
		{"a cut call goes on", ``, "true nil nil 2 nil", []llmtest.Reply{llmtest.Calls(llmtest.Call{Name: "t", Args: `{"path":"a`}).WithFinish("length"), llmtest.Text("x")}, ashlar.Bounds{}, 0},
		{"always cut", `max_iterations = 50`, "false truncated nil 3 ", []llmtest.Reply{llmtest.Calls(llmtest.Call{Name: "t", Args: `{"path":"a`}).WithFinish("length").Times(-1)}, ashlar.Bounds{}, 0},
		{"a call cut before its arguments", ``, "true nil nil 2 nil", []llmtest.Reply{llmtest.Calls(llmtest.Call{Name: "t", Args: ``}).WithFinish("length"), llmtest.Text("x")}, ashlar.Bounds{}, 0},
		{"never valid", `max_iterations = 50`, "false limit repeated 3 3 replies in a row", []llmtest.Reply{llmtest.Calls(llmtest.Call{Name: "t", Args: `nonsense`}).Times(-1)}, ashlar.Bounds{}, 0},
		{"refused", ``, "false unknown nil 1 the model refused (model)", []llmtest.Reply{llmtest.Refusal("no")}, ashlar.Bounds{}, 0},
		{"quota", ``, "false quota nil 0 API error 429 (quota)", []llmtest.Reply{llmtest.QuotaExceeded()}, ashlar.Bounds{}, 0},
		{"cut", ``, "false transport nil 0 the reply ended", []llmtest.Reply{llmtest.NoDone("half")}, ashlar.Bounds{}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.replies...)
			res := r.ok(`
local ran = 0
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", repeatable = true, handler = function() ran = ran + 1 return "ok" end } }, `+c.opts+` })
assert(r.session and r.messages[1].content == "go")
return { text = table.concat({ tostring(r.ok), tostring(r.error_kind), tostring(r.stopped_by), r.num_turns, tostring(r.error) }, " "), ran = ran, total = r.usage.total_tokens }`, bounds(c.bound))
			m := res.Value.(map[string]any)
			if !strings.HasPrefix(str(m, "text"), c.want) {
				t.Errorf("%s\nwant %s", str(m, "text"), c.want)
			}
			if res.Code() != c.code {
				t.Errorf("code %d, want %d", res.Code(), c.code)
			}
			if strings.Contains(c.name, "cut") && num(m, "ran") != 0 {
				t.Error("a call that was cut has run")
			}
			if d := dataOf(t, lastOf(r.events(r.only(res)))); str(d, "reason") != "scope_exit" {
				t.Errorf("%v", d)
			}
		})
	}
}

// A history is seeded as events, and what comes back can be handed in again.
func TestAHistoryIsSeededAndComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, append(agentReplies(2), llmtest.Text("again"), llmtest.Text("odd"))...)
	res := r.ok(`
local agent = require("agent")
local tools = { { name = "t", description = "d", handler = function(i) return "n is " .. i.n end } }
local a = agent.run({ prompt = "first", extra_tools = tools })
local before = std.json.encode(a.messages)
local b = agent.run({ prompt = "second", history = a.messages, extra_tools = tools })
eq(b.ok, true, b.error) eq(std.json.encode(a.messages), before)
eq(#b.messages, #a.messages + 2)
for i, m in ipairs(a.messages) do eq(std.json.encode(b.messages[i]), std.json.encode(m), "message " .. i) end
eq(b.usage.total_tokens > 0, true) eq(b.num_turns, 1)
-- a history that stops in the middle, in plain forms
local c = agent.run({ prompt = "third", history = {
  { role = "user", content = "u" }, { role = "assistant", content = "a" }, { role = "user", content = { { type = "text", text = "t" } } },
  { role = "assistant", content = { { type = "tool_use", id = "x", name = "t", input = {} }, { type = "tool_use", id = "y", name = "t", input = {} } } },
  { role = "user", content = { { type = "tool_result", tool_use_id = "y", content = "bad", is_error = true }, { type = "text", text = "beside" } } } } })
eq(c.ok, true, c.error)
local m = c.messages
eq(m[2].content[1].text, "a") eq(m[5].content[1].tool_use_id, "x") eq(m[5].content[1].is_error, true) eq(m[5].content[2].is_error, true) eq(m[5].content[2].content, "bad")
eq(m[6].content[1].text, "beside") eq(m[7].content, "third") eq(m[8].content[1].text, "odd")
return { a.session, b.session, c.session }`)
	if len(res.Sessions) != 3 {
		t.Errorf("%v", res.Sessions)
	}
	q := r.model.Requests()
	pairs(t, 2, q[2].Body)
	pairs(t, 3, q[3].Body)
}

func TestTheAgentsCallbacksSeeWhatIsPromised(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Reasoning("think first", "I call").WithCalls(llmtest.Call{ID: "c", Name: "t", Args: `{"n":1}`}), llmtest.Text("the end of it"))
	m := r.result(`
local turns, text, thought = {}, "", ""
local r = require("agent").run({ prompt = "go", store = "mem",
  extra_tools = { { name = "t", description = "d", handler = function() return "ok" end } },
  on_turn = function(info)
    local keys = {} for k in pairs(info) do keys[#keys + 1] = k end table.sort(keys)
    turns[#turns + 1] = table.concat(keys, ",") .. " " .. info.turn_number .. " " .. info.content .. " " .. #info.tool_calls
  end,
  on_delta = function(piece, kind) if kind == "thinking" then thought = thought .. piece else text = text .. piece end end })
eq(r.ok, true, r.error)
return { turns = turns, text = text, thought = thought, messages = r.messages }`)
	if got := fmt.Sprint(m["turns"]); got != "[content,tool_calls,turn_number,usage 1 I call 1 content,tool_calls,turn_number,usage 2 the end of it 0]" {
		t.Error(got)
	}
	if str(m, "text") != "I callthe end of it" || str(m, "thought") != "think first" {
		t.Errorf("%q %q", m["text"], m["thought"])
	}
	if len(r.events("nothing")) != 0 {
		t.Error("the session is in the run's own store")
	}
}

// Any other key goes to the port, and what the port does not take stays out.
func TestOtherKeysGoToThePort(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("x"), llmtest.Text("x"))
	r.ok(`
local r = require("agent").run({ prompt = "go", model = "other-model", temperature = 0.3, top_p = 0.9, seed = 4, stop = { "X" }, thinking = { effort = "low" },
  response_format = { type = "json_object" }, headers = { ["X-Own"] = "yes" }, extra_body = { own = true }, api_key = "sk-given-in-the-script", stream = false,
  cache_control = true, context_management = false, timeout = 5, max_retries = 0, budget = { tokens = 100000 }, max_tokens = 7 })
eq(r.ok, true, r.error)
-- no limit was asked for, so none goes out
r = require("agent").run({ prompt = "go" })
eq(r.ok, true, r.error)`)
	q := r.model.Requests()
	want := `map[chat_template_kwargs:map[enable_thinking:true] max_tokens:7 messages:[map[content:go role:user]] model:other-model own:true reasoning_effort:low response_format:map[type:json_object] seed:4 stop:[X] temperature:0.3 top_p:0.9]`
	if got := fmt.Sprint(q[0].Body); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if q[0].Header.Get("X-Own") != "yes" || q[0].Header.Get("Authorization") != "Bearer sk-given-in-the-script" {
		t.Errorf("%v", q[0].Header)
	}
	if q[1].Body["max_tokens"] != nil || q[1].Body["stream"] != true {
		t.Errorf("%s", q[1].Raw)
	}
	s := r.stderr.String()
	if strings.Contains(s, "sk-given") {
		t.Error("the key is in a log line")
	}
	for _, f := range r.facts.all {
		if strings.Contains(fmt.Sprint(f.Fields), "sk-given") {
			t.Errorf("the key is on the stream: %v", f)
		}
	}
}

// An agent inside a tool of an agent: each has its own session, one pool.
func TestAnAgentInsideATool(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Calls(llmtest.Call{ID: "c", Name: "ask", Args: `{}`}), llmtest.Text("inner"), llmtest.Text("outer"))
	res := r.ok(`
local agent = require("agent")
local r = agent.run({ prompt = "go", extra_tools = { { name = "ask", description = "d", handler = function()
  return agent.run({ prompt = "inside" }).content
end } } })
eq(r.ok, true, r.error) eq(r.messages[3].content[1].content, "inner")
return r.content`, bounds(ashlar.Bounds{Beats: 3}))
	if res.Value != "outer" || len(res.Sessions) != 2 || res.Code() != 0 {
		t.Errorf("%v %v %d", res.Value, res.Sessions, res.Code())
	}
}
