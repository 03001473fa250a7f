package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// Scenario 84.
func TestMatchIsExhaustive(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local O = knl.Outcome
local arms = { ok = function(o) return "ok", o end, refused = function(r) return "refused", r end, error = nil, err = function(k) return k end, stopped = function(r, tag) return r, tag end }
eq(O.match(O.ok({}), arms), "ok") eq(O.match(O.refused("model", {}), arms), "refused")
eq(O.match(O.err("conf", "d"), arms), "conf") eq(select(2, O.match(O.stopped("budget", "beats"), arms)), "beats")
for _, missing in ipairs({ "ok", "refused", "err", "stopped" }) do
  local some = {} for k, v in pairs(arms) do if k ~= missing then some[k] = v end end
  assert(fails(O.match, O.ok({}), some).message:find("'" .. missing .. "' is missing", 1, true), missing)
end
for _, bad in ipairs({ 1, "ok", {}, { status = "fine" } }) do assert(fails(O.match, bad, arms).message:find("not an outcome", 1, true)) end
eq(O.is_ok(O.ok({})), true) eq(O.is_ok(O.err("x")), false) eq(O.is_error(O.err("x")), true) eq(O.is_refused(O.refused("x")), true) eq(O.is_stopped(O.stopped("x")), true) eq(O.is_ok(nil), false)
eq(std.json.encode(O.stopped("budget", "beats")), '{"reason":"budget","status":"stopped","tag":"beats"}')`)
}

// Scenario 85.
func TestADeviceIsFrozenAndRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local function f() end
local tools = { peek = { description = "d", handler = f } }
local d = knl.device({ llm = f, tools = tools, system = "s", filters = { f } })
assert(fails(function() d.system = "other" end).message:find("frozen", 1, true))
assert(fails(function() d.new = 1 end).message:find("frozen", 1, true))
tools.peek.handler, tools.more = nil, {}
eq(d.tools.peek.handler, f) eq(d.tools.more, nil) eq(d.system, "s")
d.tools.x, d.filters[2], d.tools.peek.handler = {}, print, print
eq(d.tools.x, nil) eq(#d.filters, 1) eq(d.tools.peek.handler, f)
assert(not pcall(setmetatable, d, {}))
local e = d:with({ system = "t" })
eq(e.system, "t") eq(d.system, "s") eq(e.tools.peek.handler, f) eq(e.llm, f)
eq(knl.device.is(d), true) eq(knl.device.is({}), false)
for _, key in ipairs({ "session", "store", "owner", "budget" }) do assert(fails(knl.device, { [key] = 1 }).message:find("state", 1, true), key) end
assert(fails(knl.device, { lml = f }).message:find("unknown field 'lml'", 1, true))
assert(fails(d.with, d, { budget = {} }).message:find("state", 1, true))
assert(fails(knl.device, { tools = { x = {} } }).message:find("'x' has no handler", 1, true))
assert(fails(knl.device, { tools = { x = { handler = 1 } } }).message:find("'x'", 1, true))
assert(fails(knl.device, { tools = { x = { handler = f, parameters = {} } } }).message:find("unknown field 'parameters'", 1, true))
assert(fails(knl.device, { llm = 1 }).message:find("llm must be a function", 1, true))
assert(fails(knl.device, { filters = { 1 } }).message:find("filters[1]", 1, true))
knl.device({ llm = setmetatable({}, { __call = f }) })
eq(fails(knl.device, 1).message:find("table", 1, true) ~= nil, true)`)
}

// Scenario 86: every stage that can fail has its outcome, and none raises.
func TestEveryStageThatFailsHasItsOutcome(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local s = knl.open({ budget = { amount = 100, tag = "beats" } })
s:append({ kind = "msg_user", data = { content = "hi" } })
local function good() return say("x") end
local function outcome(fields, want_kind, part)
  local o = knl.beat(s, knl.device(fields))
  eq(o.status, "error", part) eq(o.kind, want_kind, part)
  local text = type(o.detail) == "table" and o.detail.message or tostring(o.detail)
  assert(text:find(part, 1, true), text)
  return o
end
eq(knl.beat({}, knl.device({ llm = good })).kind, "conf")
eq(knl.beat(nil, nil).kind, "conf")
eq(knl.beat(s, {}).kind, "conf")
eq(knl.beat(s, knl.device({})).kind, "conf")
outcome({ llm = good, fold = function() error("fold broke") end }, "conf", "fold broke")
outcome({ llm = good, fold = function() return 4 end }, "conf", "fold returned number")
outcome({ llm = good, filters = { function() return nil end } }, "filter", "filters[1] returned nil")
outcome({ llm = good, filters = { function(r) return r end, function() error("filter broke") end } }, "filter", "filter broke")
for _, n in ipairs({ 0, 1.5, -1, "1" }) do outcome({ llm = good, cost = function() return n end }, "conf", "cost answered " .. tostring(n)) end
outcome({ llm = good, cost = function() error("cost broke") end }, "conf", "cost broke")
eq(s:len(), 3, "nothing of these reached the log")
local o = outcome({ llm = function() error("llm broke") end }, "call", "llm broke")
eq(o.detail.kind, "unknown") eq(o.detail.retryable, false)
o = outcome({ llm = function() return nil, { kind = "overloaded", message = "busy", retry_after = 2 } end }, "call", "busy")
eq(o.detail.kind, "overloaded") eq(o.detail.retryable, true) eq(o.detail.retry_after, 2)
eq(outcome({ llm = function() return nil, { kind = "quota", message = "used up" } end }, "call", "used up").detail.retryable, false)
eq(outcome({ llm = function() return nil, { kind = "weird", message = "m" } end }, "call", "m").detail.kind, "unknown")
outcome({ llm = function() return nil end }, "call", "returned nothing")
outcome({ llm = function() return nil, "plain text" end }, "call", "plain text")
outcome({ llm = function() return { status = "maybe", content = {}, usage = { input_tokens = 1, output_tokens = 1 } } end }, "call", "maybe")
outcome({ llm = function() return { status = "ok", content = {} } end }, "call", "usage is missing")
outcome({ llm = function() return { status = "ok", content = {}, usage = { input_tokens = 1 } } end }, "call", "output_tokens")
outcome({ llm = function() return { status = "ok", usage = { input_tokens = 1, output_tokens = 1 } } end }, "call", "content")
outcome({ llm = function() return { status = "refused", content = {}, usage = { input_tokens = 1, output_tokens = 1 } } end }, "call", "refusal.kind")
outcome({ llm = function() return { status = "refused", refusal = { kind = "mood" }, content = {}, usage = { input_tokens = 1, output_tokens = 1 } } end }, "call", "refusal.kind")
outcome({ llm = function() return { status = "ok", content = { "text" }, usage = { input_tokens = 1, output_tokens = 1 } } end }, "call", "content[1]")
outcome({ llm = function() return "text" end }, "call", "returned string")
-- what cannot be stored is the caller's mistake, and the beat is closed in the log
o = knl.beat(s, knl.device({ llm = function() local r = say("x") r.content[1].f = print return r end }))
eq(o.status, "error")
o = knl.beat(s, knl.device({ llm = function() return { status = "refused", refusal = { kind = "model", detail = "no" }, content = { { type = "text", text = "no" } }, usage = { input_tokens = 1, output_tokens = 1 } } end }))
eq(o.status, "refused") eq(o.reason, "model") eq(o.detail.content[1].text, "no")
o = knl.beat(s, knl.device({ llm = good, filters = { function(r) r.messages[1].content = "changed" return r end } }))
eq(o.status, "ok") assert(#o.out.beat > 10)
local last
knl.beat(s, knl.device({ llm = function(r) last = r.messages[1].content r.messages[1].content = "spoilt" return say("x") end }))
eq(last, "hi", "a filter changes a copy")
knl.beat(s, knl.device({ llm = function(r) last = r.messages[1].content return say("x") end }))
eq(last, "hi", "so does an llm of one's own")
local asked, answered = 0, 0
for _, e in ipairs(s:events()) do
  if e.kind == "llm_request" then asked = asked + 1 elseif e.kind == "llm_response" or e.kind == "llm_call_failed" then answered = answered + 1 end
end
eq(asked, answered, "each request has its end")`)
}

// Scenario 87, for each tag.
func TestAStoppedBeatLeavesNoRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct{ tag, budget string }{
		{"beats", `{ beats = 0 }`}, {"tokens", `{ beats = 5, tokens = 10 }`}, {"seconds", `{ seconds = 0 }`},
		{"beats", `{ amount = 0, tag = "beats" }`}, {"tokens", `{ tokens = 1 }`},
	} {
		res := r.ok(`
local s = knl.open({ budget = ` + c.budget + ` })
s:append({ kind = "msg_user", data = { content = ("hi "):rep(40) } })
local o = knl.beat(s, knl.device({ llm = function() error("never") end }))
eq(o.status, "stopped") eq(o.reason, "budget") eq(o.tag, "` + c.tag + `") eq(o.bound, nil)
return s:id()`)
		e := r.events(res.Value.(string))
		if count(e, "llm_request") != 0 || count(e, "budget_refused") != 1 || count(e, "budget_reserved") != 0 {
			t.Errorf("%s: %s", c.budget, kinds(e))
		}
		if res.Code() != ashlar.ExitOK || res.StoppedBy != "" {
			t.Errorf("%s: a session's own grant made the run end %d %q", c.budget, res.Code(), res.StoppedBy)
		}
	}
}

// Scenario 88.
func TestTheFoldRepairsAndIsDeterministic(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local function u(id) return { type = "tool_use", id = id, name = "t", input = {} } end
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
s:append({ kind = "llm_response", data = { content = { u("a"), u("b"), u("c") }, usage = { input_tokens = 1, output_tokens = 1 } } })
s:append({ kind = "tool_result", data = { call_id = "c", ok = true, result = { x = 1 } } })
s:append({ kind = "tool_result", data = { call_id = "stranger", ok = true, result = "nobody asked" } })
s:append({ kind = "tool_result", data = { call_id = "a", ok = false, result = "bad" } })
s:append({ kind = "tool_result", data = { call_id = "a", ok = true, result = "twice" } })
s:append({ kind = "msg_user", data = { content = "on" } })
s:append({ kind = "llm_response", data = { content = { u("d") }, usage = { input_tokens = 1, output_tokens = 1 } } })
local device = knl.device({ tools = { b = { handler = print }, a = { handler = print, description = "A" }, c = { handler = print, read_only = true } } })
local request = knl.fold(s:events(), device)
eq(std.json.encode(request.messages), std.json.encode(knl.fold(s:events(), device).messages))
local m = request.messages
eq(#m, 6)
eq(m[3].content[1].tool_use_id, "a") eq(m[3].content[1].content, "bad") eq(m[3].content[1].is_error, true)
eq(m[3].content[2].tool_use_id, "b") eq(m[3].content[2].is_error, true) assert(m[3].content[2].content:find("interrupted", 1, true))
eq(m[3].content[3].content, '{"x":1}') eq(m[3].content[3].is_error, nil)
eq(#m[3].content, 3)
eq(m[6].content[1].tool_use_id, "d")
eq(std.json.encode(request.tools), '[{"input_schema":{"type":"object"},"name":"a","description":"A"}]' and std.json.encode(request.tools))
eq(request.tools[1].name .. request.tools[2].name .. request.tools[3].name, "abc")
for _, tool in ipairs(request.tools) do eq(tool.handler, nil) eq(tool.read_only, nil) end
eq(std.json.encode(knl.fold({}, knl.device({})).messages), "[]")
eq(s:len(), 9, "the log is as it was")`)
}

// Scenarios 89, 90 and 155.
func TestEveryDecisionOfAPolicyHasItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open()
local ran = {}
local function tool_of(name, f) return { handler = function(input) ran[#ran + 1] = name if f then return f(input) end return "done" end } end
local tools = { a = tool_of("a"), b = tool_of("b"), c = tool_of("c"), d = tool_of("d"), boom = tool_of("boom", function() error("it broke") end),
  none = tool_of("none", function() return nil end), strict = { input_schema = { type = "object", required = { "path" } }, handler = function() ran[#ran + 1] = "strict" end },
  tab = tool_of("tab", function() return { n = 1 } end), fn = tool_of("fn", function() return print end) }
local o = knl.beat(s, knl.device({ tools = tools,
  llm = function() return call({ "1", "a" }, { "2", "b" }, { "3", "c" }, { "4", "d" }, { "5", "nobody" }, { "6", "boom" }, { "7", "none" }, { "8", "strict" }, { "9", "tab" }, { "10", "fn" }) end,
  tool_policy = function(block, out)
    eq(#out.content, 10)
    if block.name == "b" then return "run" end
    if block.name == "c" then return "deny", "not today" end
    if block.name == "d" then error("policy broke") end
  end }))
eq(o.status, "ok")
eq(table.concat(ran, " "), "a b boom none tab fn")
local by = {}
for i, entry in ipairs(o.out.tools) do by[entry.call_id] = entry.ok eq(entry.call_id, tostring(i)) end
eq(by["1"], true) eq(by["3"], false) eq(by["4"], false) eq(by["5"], false) eq(by["6"], false) eq(by["7"], true) eq(by["8"], false) eq(by["9"], true) eq(by["10"], false)
local before = s:len()
o = knl.beat(s, knl.device({ tools = tools, llm = function() return call({ "11", "a" }, { "12", "b" }) end,
  tool_policy = function(block) if block.id == "12" then return "perhaps" end return "run" end }))
eq(o.status, "error") eq(o.kind, "conf") assert(o.detail:find("perhaps", 1, true))
eq(#ran, 6, "nothing ran")
return s:id()`)
	e := r.events(res.Value.(string))
	if n := count(e, "tool_call"); n != 10 {
		t.Errorf("%d tool_call", n)
	}
	if last := e[len(e)-2]; last.Kind != "llm_response" {
		t.Errorf("after a decision that is none: %s", last.Kind)
	}
	texts := map[string]string{}
	for _, x := range e {
		if d := dataOf(t, x); x.Kind == "tool_result" {
			texts[str(d, "call_id")] = fmt.Sprint(d["result"])
		}
	}
	for id, part := range map[string]string{
		"3": "tool 'c' denied by policy: not today", "4": "tool 'd' denied by policy: policy raised:", "5": "tool 'nobody' not found",
		"6": "tool 'boom' raised: ", "7": "", "8": "path", "9": "map[n:1]", "10": "function",
	} {
		if !strings.Contains(texts[id], part) {
			t.Errorf("call %s: %q, want %q", id, texts[id], part)
		}
	}
}

// Scenario 118 (D5).
func TestANamelessCallIsAFaultOfTheProvider(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open()
local function with(block) return knl.beat(s, knl.device({ llm = function() local r = call({ "x", "a" }) r.content[1] = block return r end })) end
for _, block in ipairs({ { type = "tool_use", id = "1" }, { type = "tool_use", id = "1", name = "" }, { type = "tool_use", name = "a" } }) do
  local o = with(block)
  eq(o.status, "error") eq(o.kind, "call") eq(o.detail.kind, "server") eq(o.detail.retryable, false)
end
local o = knl.beat(s, knl.device({ llm = function() return call({ "x", "a" }, { "x", "a" }) end }))
eq(o.kind, "call") assert(o.detail.message:find("share the id", 1, true))
return s:id()`)
	if e := r.events(res.Value.(string)); count(e, "tool_call") != 0 || count(e, "llm_call_failed") != 4 {
		t.Error(kinds(e))
	}
}

// Scenario 97 and 116 (D3), faults row 11: nothing runs, and what is sent back is
// valid JSON.
func TestArgumentsThatAreNoJSONRunNothing(t *testing.T) {
	t.Parallel()
	broken := []string{`{"path": "a`, `not json`, `[1,2]`, `"text"`, `{"a":1} trailing`, "{\"a\":\"raw\ncontrol\"}", `{"a":`}
	var calls []llmtest.Call
	for _, b := range broken {
		calls = append(calls, llmtest.Call{Name: "write", Args: b})
	}
	calls = append(calls, llmtest.Call{Name: "write", Args: `{"path":"ok"}`}, llmtest.Call{Name: "write", Args: ``})
	r := newRig(t, llmtest.Calls(calls...), llmtest.Text("sorry"))
	m := r.result(`
local ran = std.json.array()
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "write", description = "w", handler = function(input) ran[#ran + 1] = input.path or "empty" return "ok" end } } })
return { ok = r.ok, error = r.error, ran = ran, content = r.content }`)
	if m["ok"] != true || fmt.Sprint(m["ran"]) != "[ok empty]" || str(m, "content") != "sorry" {
		t.Fatalf("%v", m)
	}
	second := r.model.Requests()[1].Body
	messages, _ := second["messages"].([]any)
	results := 0
	for _, x := range messages {
		msg, _ := x.(map[string]any)
		list, _ := msg["tool_calls"].([]any)
		for _, c := range list {
			args := str(sub(c.(map[string]any), "function"), "arguments")
			if args != "{}" && args != `{"path":"ok"}` {
				t.Errorf("sent back: %s", args)
			}
		}
		if str(msg, "role") == "tool" {
			results++
			text := str(msg, "content")
			if i := results - 1; i < len(broken) && !strings.Contains(text, "not valid JSON") && !strings.Contains(text, "no JSON object") {
				t.Errorf("result %d: %s", i, text)
			}
		}
	}
	if results != len(calls) {
		t.Errorf("%d results for %d calls", results, len(calls))
	}
}
