package ashlar_test

import (
	"fmt"
	"reflect"
	"testing"
)

// policyPrelude is in front of the scripts of these tests.
const policyPrelude = `local policy = require("policy"); ` +
	`local function port_of(window, reply) return { profile = function(_, conf) return { context_window = window, max_output = reply } end, ` +
	`count = function(_, request) local n = 0 for _, m in ipairs(request.messages) do n = n + math.ceil(#(type(m.content) == "string" and m.content or std.json.encode(m.content)) / 4) end return n end } end; ` +
	`local function room_of(window, reply, more) local o = { port = port_of(window, reply) } for k, v in pairs(more or {}) do o[k] = v end return policy.room(o) end; ` +
	`local function talk(s, text) s:append({ kind = "msg_user", data = { content = text } }) end; ` +
	`local function results(s) local list = {} for _, e in ipairs(s:events()) do if e.kind == "tool_result" then list[#list + 1] = e.data.result end end return list end; ` +
	`local function of_kind(s, kind) local list = {} for _, e in ipairs(s:events()) do if e.kind == kind then list[#list + 1] = e end end return list end; `

// Scenario 92: a policy is configuration, and says so.
func TestPoliciesRefuseStateAndTyposByName(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local factories = { "room", "window", "tokens", "result_cap", "beat_cap", "repeat_cap", "require_args", "carry", "thinking_cap", "room_note",
  "stagnation", "retry", "escalate", "verdict", "compact", "ledger" }
for _, name in ipairs(factories) do
  for _, key in ipairs({ "session", "store", "owner", "budget" }) do
    if name == "thinking_cap" and key == "budget" then key = "owner" end -- its own option
    local e = fails(policy[name], { [key] = {} })
    eq(e.kind, "validation") assert(e.message:find("'" .. key .. "' is state", 1, true), name .. ": " .. e.message)
  end
  assert(fails(policy[name], { typo = 1 }).message:find("unknown option 'typo'", 1, true), name)
  eq(fails(policy[name], "text").kind, "validation", name)
end
assert(fails(policy.window, {}).message:find("tail is needed", 1, true))
assert(fails(policy.room, { port = port_of(nil, 10) }).message:find("context window is not known", 1, true))
assert(fails(policy.room, { port = port_of(100) }).message:find("max_tokens in conf, or reserve", 1, true))
assert(fails(policy.room, { port = port_of(100, 90), reserve = 10 }).message:find("leaves none", 1, true))
assert(fails(policy.stagnation, { same = 1 }).message:find("same", 1, true))
assert(fails(policy.escalate, {}).message:find("strong", 1, true))
assert(fails(policy.thinking_cap, { room = room_of(100, 20) }).message:find("call_reserve", 1, true))
assert(fails(policy.compact, { fold = function() end }).message:find("policy.window", 1, true))
local room = room_of(2200, 200, { call_reserve = 50, reserve = 100 })
eq(room.limit, 1900) eq(room.held, 300) eq(room.result_limit, 475) eq(room.beat_budget, 950) eq(room:thinking_stop(), 150)
eq(policy.is_room(room), true) eq(policy.is_room({}), false) eq(room:split().limit, 1900) eq(room.port, nil)
assert(fails(function() room.limit = 5 end).message:find("frozen", 1, true))
eq(policy.split({ window = 100, max_output = 20 }).limit, 80)
eq(room:limits_for_tools().tokens, 475)`)
}

// Scenario 151: the wrappers' answers, under a scripted model.
func TestWrappedToolsAnswerInTheirShapes(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local room = room_of(2200, 200)
local ran = 0
local tools = {
  big = { handler = function() return ("x"):rep(4000) end },
  half = { handler = function() return ("y"):rep(1800) end },
  fine = { handler = function() ran = ran + 1 return "small" end },
  write = { handler = function() return "written" end },
  poll = { handler = function() return "waiting" end, repeatable = true },
  needs = { handler = function() error("never") end },
  fails = { handler = function() error("broken") end },
}
local s = knl.open()
talk(s, "go")
local wrapped = policy.repeat_cap({ max = 2 })(s)(policy.beat_cap({ room = room })(s)(policy.require_args({ args = { needs = { "path" } } })(policy.result_cap({ room = room })(tools))))
local device = function(list) return knl.device({ llm = replies(list), tools = wrapped }) end
eq(knl.beat(s, device({ call({ "a", "big" }) })).status, "ok")
local r = results(s)[1]
eq(r.ok, false) eq(r.reason, "result_too_large") eq(r.tokens, 1000) eq(r.limit, 500)
knl.beat(s, device({ call({ "b", "half", { n = 1 } }, { "c", "half", { n = 2 } }, { "d", "half", { n = 3 } }) }))
r = results(s)
eq(#r[2], 1800) eq(#r[3], 1800) eq(r[4].reason, "beat_budget") eq(r[4].used, 900) eq(r[4].tokens, 450) eq(r[4].limit, 1000)
knl.beat(s, device({ call({ "e", "needs", { other = 1 } }) }))
r = results(s)[5]
eq(r.reason, "argument_missing") eq(r.missing[1], "path") eq(#r.missing, 1)
knl.beat(s, device({ call({ "f", "fails" }) }))
assert(results(s)[6]:find("broken", 1, true))
for i = 1, 3 do knl.beat(s, device({ call({ "g" .. i, "fine", { a = 1, b = { 2 } } }) })) end
r = results(s)
eq(r[7], "small") eq(r[8], "small") eq(r[9].reason, "repeated") eq(r[9].times, 3) eq(r[9].max, 2) eq(ran, 2)
knl.beat(s, device({ call({ "w", "write" }) }))
knl.beat(s, device({ call({ "h", "fine", { b = { 2 }, a = 1 } }) }))
eq(results(s)[11], "small", "something changed between") eq(ran, 3)
for i = 1, 4 do knl.beat(s, device({ call({ "p" .. i, "poll" }) })) end
r = results(s)
eq(r[15], "waiting", "a tool that polls is exempt")
local check = require("lshape.check").check
for i, name in pairs({ [1] = "result_too_large", [4] = "beat_budget", [5] = "argument_missing", [9] = "repeated" }) do
  assert(check(results(s)[i], policy.shapes[name]))
  eq(check({ ok = false, reason = "other" }, policy.shapes[name]), false)
end
eq(check("context", policy.shapes.stop_reason), true) eq(check("bored", policy.shapes.stop_reason), false)
for name in pairs(policy) do if name ~= "shapes" then assert(policy.shapes.api[name], name) end end
for name in pairs(policy.shapes.api) do assert(policy[name], name) end
assert(fails(policy.result_cap({ room = room }), { x = { registered = true } }).message:find("registered", 1, true))
assert(fails(policy.repeat_cap({}), tools).message:find("bound to a session", 1, true))`)
}

// Scenario 92: what a policy answers comes from the log alone, so an exported log and a
// second session with the same events give the same.
func TestPoliciesReadTheLogAlone(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local room = room_of(300, 100)
local s = knl.open()
talk(s, "seed")
local function turn(i, text) return knl.beat(s, knl.device({ llm = replies({ call({ "c" .. i, "t", { n = i } }) }), tools = { t = { handler = function() return text end } } })) end
for i = 1, 6 do turn(i, ("r" .. i .. " "):rep(40)) end
local fold = policy.window({ room = room })
local device = knl.device({ llm = function() end })
local request, report = fold(s:events(), device)
local again = fold(s:events(), device)
eq(std.json.encode(request), std.json.encode(again))
eq(request.messages[1].content, "seed") assert(report.dropped_trips >= 3, report.dropped_trips) assert(report.after <= room.limit) eq(report.limit, 200) eq(report.reserve, 100)
eq(#report.dropped, report.dropped_trips) eq(report.dropped[1], s:events()[2].meta.beat or s:events()[4].meta.beat)
local calls, answers = 0, 0
for _, m in ipairs(request.messages) do
  for _, b in ipairs(type(m.content) == "table" and m.content or {}) do
    if b.type == "tool_use" then calls = calls + 1 elseif b.type == "tool_result" then answers = answers + 1 end
  end
end
eq(calls, answers) assert(calls > 0)
eq(fold:fits(s, device), nil)
local long = knl.open() talk(long, "a prompt of some words")
local why, tokens, limit = policy.window({ room = room_of(101, 100) }):fits(long, device)
eq(why, "context") eq(limit, 1) eq(tokens, 6)
local tail = policy.window({ tail = 2 })
request, report = tail(s:events(), device)
eq(#request.messages, 5) eq(request.messages[2].content[1].id, "c5") eq(report.dropped_trips, 4)
eq(#policy.window({ tail = 2, keep_seed = false })(s:events(), device).messages, 5, "a request begins with a user message")
eq(policy.tokens({ room = room })({ messages = {} }), 1)
-- stagnation
local stuck = policy.stagnation({ same = 3 })
eq(stuck(s), nil)
for i = 1, 3 do turn(9, "x") end
eq(stuck(s), "repeated") eq(policy.stagnation({ same = 4 })(s), nil) eq(policy.stagnation({ same = 3, exempt = { "t" } })(s), nil)
eq(policy.stagnation({ same = 3, signature = function(b) return b.id end })(s), nil)
local copy = knl.open()
for _, e in ipairs(s:events()) do
  if e.kind:sub(1, 4) ~= "budg" and e.kind:sub(1, 7) ~= "session" then copy:append({ kind = e.kind, meta = e.meta, data = e.data }) end
end
eq(stuck(copy), "repeated") eq(stuck(copy:events()), "repeated")
for _ = 1, 2 do knl.beat(copy, knl.device({ llm = replies({ { status = "ok", content = {}, usage = { input_tokens = 1, output_tokens = 0 } } }) })) end
eq(stuck(copy), "no_progress")
-- carry
local carry = policy.carry({ max_bytes = 60 })(s)
eq(#carry({ messages = {} }).messages, 0)
knl.beat(s, knl.device({ llm = replies({ call({ "z", "bad" }) }), tools = { bad = { handler = function() error(("ä"):rep(100)) end } } }))
local note = carry({ messages = { { role = "user", content = "q" } } }).messages[2].content
assert(#note <= 60 and note:find("The last step failed: bad", 1, true) and note:sub(-3) == "...", note)
assert(utf8.len(note), "cut inside a character")
eq(policy.carry({ failed = function(b) return #b.calls .. " calls" end })(s)({ messages = {} }).messages[1].content, "The last step failed: 1 calls")
-- retry
local retry = policy.retry({ max = 3 })
local function failed(kind, retryable) return knl.Outcome.err("call", { kind = kind, retryable = retryable, retry_after = 7 }) end
local yes, after = retry(failed("overloaded", true), 1)
eq(yes, true) eq(after, 7) eq(retry(failed("overloaded", true), 3), false) eq(retry(failed("auth", false), 1), false) eq(retry(knl.Outcome.ok({}), 1), false)
eq(policy.retry({ kinds = { "auth" } })(failed("auth", false), 1), true)
-- escalate
local strong = function() end
local next_of = policy.escalate({ strong = strong })
eq(next_of(device, knl.Outcome.ok({})), device) eq(next_of(device, failed("server", true)).llm, strong)
eq(policy.escalate({ strong = strong, when = function(o) return o.status == "ok" end })(device, knl.Outcome.ok({})).llm, strong)
-- filters
local q = { messages = { { role = "user", content = ("q"):rep(40) } } }
contains = policy.room_note({ room = room })(q).messages[2].content
assert(contains:find("about 10 of 200 tokens; 190 are left", 1, true), contains) eq(#q.messages, 1)
local capped = policy.thinking_cap({ room = room_of(300, 100, { call_reserve = 30 }) })
eq(capped(q).thinking.budget_tokens, 70) eq(q.thinking, nil)
eq(policy.thinking_cap({ room = room_of(300, 100, { call_reserve = 30 }), budget = 20 })(q).thinking.budget_tokens, 20)
-- what a filter puts behind the conversation is in the record of the request, each time
local noted = knl.open()
for i = 1, 3 do
  talk(noted, "say " .. i)
  eq(knl.beat(noted, knl.device({ fold = fold, filters = { policy.room_note({ room = room }) }, llm = replies({ say("x") }) })).status, "ok")
end
for i, e in ipairs(of_kind(noted, "llm_request")) do
  local m = e.data.request.messages
  eq(#m, 2 * i) eq(m[2 * i - 1].content, "say " .. i) assert(m[2 * i].content:find("of 200 tokens", 1, true))
end
-- ledger
local facts = policy.ledger({ track = { "n" } })(s)
eq(facts.tools.t.ok, 9) eq(facts.tools.bad.failed, 1)`)
}

// Scenario 92: the verdict of two processes on the same log is one.
func TestAVerdictIsTheSameInTwoProcesses(t *testing.T) {
	t.Parallel()
	var got [2]map[string]any
	for i := range got {
		got[i] = newRig(t).result(policyPrelude + `
local s = knl.open()
local asked = {}
local good = true
local check = policy.verdict({ timeout = { first = 900, factor = 3, floor = 60, measure = "last" }, changed = function(_, out) return out ~= "same" end,
  run = function(out, o) asked[#asked + 1] = o.timeout return { ok = good, stdout = "seen " .. out, exit_code = 0 } end })
s:append({ kind = "verify", data = { ok = false, ran = true, took_s = 40 } })
local a = check(s, "one")
s:append({ kind = "verify", data = { ok = true, ran = true, took_s = 10 } })
good = false
local b = check(s, "two")
local c = check(s, "same")
eq(a.ok, true) eq(a.checked, true) eq(a.ran, true) eq(a.changed, true) eq(a.result.stdout, "seen one")
eq(b.ok, false) eq(c.ok, false) eq(c.checked, false) eq(c.reason, "unchanged") eq(c.changed, false)
eq(asked[1], 120) eq(asked[2], 60)
eq(policy.verdict({ timeout = { first = 900 }, run = function(_, o) asked[3] = o.timeout return true end })(knl.open(), nil).ok, true) eq(asked[3], 900)
local none = policy.verdict({})(s, nil)
eq(none.ok, true) eq(none.checked, false)
local sh_check = policy.verdict({ run = "echo hi; exit 3", kind = "check", timeout = 30 })(s, nil)
for _, v in ipairs({ a, b, c, none, sh_check }) do assert(require("lshape.check").check(v, policy.shapes.verdict)) end
eq(sh_check.ok, false) eq(sh_check.result.exit_code, 3)
local e = of_kind(s, "check")[1].data
eq(e.stdout, "hi\n") eq(e.exit_code, 3) eq(e.timeout_s, 30) eq(e.ran, true) assert(e.took_s >= 0)
local all = std.json.array()
for i, event in ipairs(of_kind(s, "verify")) do event.data.took_s = nil all[i] = event.data end
return { verdicts = { a, b, c, none }, asked = asked, events = all }`)
	}
	if !reflect.DeepEqual(got[0], got[1]) {
		t.Errorf("%v\n%v", got[0], got[1])
	}
}

// Scenario 147, and row 14 of faults: a summary replaces what it summarises; an attempt
// that brings none is an event, and none follows at the same place.
func TestCompactionEndsInASummaryOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ reply, want, why string }{
		"summary":     {`say("did six things")`, "summary", ""},
		"empty":       {`say("  ")`, "skipped", "empty"},
		"not smaller": {`say(("long "):rep(2000))`, "skipped", "not_smaller"},
		"cut":         {`(function() local r = say("did") r.stop_reason = "max_tokens" return r end)()`, "skipped", "truncated"},
		"calls":       {`call({ "z", "t" })`, "skipped", "empty"},
		"fails":       {`function() return nil, { kind = "context_length", message = "too long" } end`, "skipped", "call"},
		"refused":     {`{ status = "refused", refusal = { kind = "model" }, content = {}, usage = { input_tokens = 1, output_tokens = 1 } }`, "skipped", "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRig(t).ok(policyPrelude + fmt.Sprintf(`
local room = room_of(1200, 200)
local fold = policy.window({ room = room })
local compact = policy.compact({ fold = fold, at = 0.5, min_beats = 2, ledger = policy.ledger({ track = { "n" } }) })
local s = knl.open()
talk(s, "the task")
local tools = { t = { handler = function() return ("word "):rep(60) end } }
local function turn(i) eq(knl.beat(s, knl.device({ fold = fold, llm = replies({ call({ "c" .. i, "t", { n = i } }) }), tools = tools })).status, "ok") end
turn(1)
eq(compact:due(s), nil, "too few beats")
talk(s, "and now this")
for i = 2, 6 do turn(i) end
eq(compact:due(s), "share")
local seen
local answer = %s
local device = knl.device({ fold = fold, tools = tools, llm = function(request, ctx) seen = request if type(answer) == "function" then return answer(request, ctx) end return answer end })
local got, why = compact:run(s, device)
eq(got, %q) eq(why or "", %q)
eq(seen.tool_choice, "none") assert(seen.messages[#seen.messages].content:find("Write a summary", 1, true)) eq(#seen.tools, 1)
assert(room:count(seen) <= room.limit)
eq(#of_kind(s, "compact_started"), 1)
eq(compact:run(s, device), nil, "not twice at one place")
eq(compact:due(s), nil)
local request, report = fold(s:events(), device)
local text = std.json.encode(request)
eq(#of_kind(s, "tool_result") >= 6, true)
if got == "summary" then
  local e = of_kind(s, "summary")[1]
  assert(require("lshape.check").check(e.data, policy.shapes.summary))
  eq(e.data.content, "did six things") eq(e.data.ledger.tools.t.ok, 6) assert(e.meta.beat)
  eq(#request.messages, 3) eq(request.messages[1].content, "the task") eq(request.messages[2].content, "and now this")
  assert(request.messages[3].content:find("did six things", 1, true)) eq(report.summary_seq, e.seq)
  turn(7)
  -- what somebody changes in a request stays in that request
  for _ = 1, 2 do
    local seen_task
    knl.beat(s, knl.device({ fold = fold, llm = function(r) seen_task = r.messages[1].content r.messages[1].content, r.messages[4].content[1].id = "spoilt", "spoilt" error("no") end }))
    eq(seen_task, "the task")
  end
  request = fold(s:events(), device)
  eq(#request.messages, 5) eq(request.messages[4].content[1].id, "c7")
  eq(#policy.window({ tail = 5, from_summary = false })(s:events(), device).messages, 11)
else
  eq(of_kind(s, "compact_skipped")[1].data.why, %q)
  eq(text:find("did", 1, true), nil) eq(text:find("denied", 1, true), nil) eq(text:find("long long", 1, true), nil)
  eq(#request.messages, 14, "the conversation is what it was")
  turn(7) turn(8)
  assert(compact:due(s), "later it may be tried again")
end
assert(report.after <= room.limit)`, c.reply, c.want, c.why, c.why))
		})
	}
}

// A prompt that would overflow is not sent: the window takes over without a model.
func TestACompactionWhosePromptOverflowsIsSkipped(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local fold = policy.window({ room = room_of(120, 60) })
local compact = policy.compact({ fold = fold, min_beats = 1, prompt = ("Summarise. "):rep(60) })
local s = knl.open()
talk(s, "the task")
for i = 1, 3 do knl.beat(s, knl.device({ fold = fold, llm = replies({ say(("word "):rep(20)) }) })) end
assert(compact:due(s))
local got, why = compact:run(s, knl.device({ fold = fold, llm = function() error("never") end }))
eq(got, "skipped") eq(why, "context")
eq(knl.beat(s, knl.device({ fold = fold, llm = function(request) assert(#request.messages >= 1) return say("on") end })).status, "ok")
-- a crash between the reply and its event leaves no summary among the messages
s:append({ kind = "compact_started", data = { why = "share" } })
knl.beat(s, knl.device({ fold = fold, llm = replies({ say("half a summary") }) }))
eq(std.json.encode((fold(s:events(), knl.device({})))):find("half a summary", 1, true), nil)`)
}

// One session has one attempt at a time, whoever asks.
func TestOneCompactionIsInFlightAtATime(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local fold = policy.window({ room = room_of(1200, 200) })
local compact = policy.compact({ fold = fold, at = 0.3, min_beats = 1 })
local s = knl.open()
talk(s, "the task")
for i = 1, 4 do knl.beat(s, knl.device({ fold = fold, llm = replies({ say(("word "):rep(90)) }) })) end
local asked = 0
local device = knl.device({ fold = fold, llm = function()
  asked = asked + 1
  std.time.sleep(0.05)
  return say("short")
end })
local got, tasks = {}, {}
for i = 1, 5 do tasks[i] = std.task.spawn(function() return tostring((compact:run(s, device))) end) end
for i = 1, 5 do got[i] = tasks[i]:join() end
table.sort(got)
eq(table.concat(got, " "), "nil nil nil nil summary") eq(asked, 1)
eq(#of_kind(s, "compact_started"), 1) eq(#of_kind(s, "summary"), 1)
-- an attempt that raises does not block the next one
local broken = policy.compact({ fold = fold, at = 0.01, min_beats = 1, ledger = function() error("ledger broke") end })
knl.beat(s, knl.device({ fold = fold, llm = replies({ say("x") }) }))
for _ = 1, 2 do assert(fails(broken.run, broken, s, device).message:find("ledger broke", 1, true)) end`)
}

// A script may keep the Lua kernel in the global that the native one had.
func TestThePackWorksUnderAnotherGlobal(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
_G.knl = knl
local policy = require("policy")
local fold = policy.window({ room = policy.room({ port = {}, conf = { context_window = 900, max_tokens = 100 } }) })
local compact = policy.compact({ fold = fold, at = 0.1, min_beats = 1 })
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local device = knl.device({ fold = fold, llm = replies({ call({ "a", "t" }), say("short") }), tools = policy.repeat_cap({})(s)({ t = { handler = function() return ("word "):rep(200) end } }) })
eq(knl.beat(s, device).status, "ok")
eq(policy.stagnation({})(s), nil) eq(compact:run(s, device), "summary")
eq(policy.verdict({ run = function() return true end })(s, nil).ok, true)
eq(#require("agent").messages(s), 3)`)
}

// A room over a real port: what the port knows of the model, and its count.
func TestARoomAsksItsPort(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local conf = { context_window = 4000, max_tokens = 500 }
local room = policy.room({ port = adapter.port(conf), conf = conf })
eq(room.limit, 3500) eq(room.max_output, 500)
local request = { messages = { { role = "user", content = ("word "):rep(400) } } }
local n = room:count(request)
assert(n > 400 and n < 1200, n) eq(room:reply(request), 500)
assert(room:count_text(("word "):rep(400)) > 400) eq(room:count_text(""), 0) eq(room:count_text(nil), 0)
eq(policy.tokens({ room = room })(request), n)
eq(policy.tokens({ port = adapter.port(conf), conf = conf })(request), n)
local capped = policy.result_cap({ port = adapter.port(conf), conf = conf, share = 0.1 })({ t = { handler = function() return ("word "):rep(2000) end } })
eq(capped.t.handler({}).limit, 350)`)
}

func TestCheckpointsAndLineageAreRead(t *testing.T) {
	t.Parallel()
	newRig(t).ok(policyPrelude + `
local events = {
  { seq = 1, kind = "forked_from", meta = {}, data = { session = "s0", upto_seq = 9, beat = "b9", reason = "try" } },
  { seq = 2, kind = "checkpoint_blob", meta = {}, data = { version = "v1", content = "old" } },
  { seq = 3, kind = "checkpoint", meta = { label = "baseline" }, data = { files = { a = "v1" }, missing = { "n" } } },
  { seq = 4, kind = "llm_response", meta = { beat = "b1" }, data = {} },
  { seq = 5, kind = "checkpoint_blob", meta = { beat = "b1" }, data = { version = "v2", content = "new" } },
  { seq = 6, kind = "checkpoint", meta = { beat = "b1" }, data = { files = { a = "v2" } } },
  { seq = 7, kind = "llm_response", meta = { beat = "b2" }, data = {} },
}
eq(#policy.checkpoints(events), 2) eq(policy.checkpoints(events)[1].missing[1], "n")
eq(policy.checkpoint_at(events).files.a, "new") eq(policy.checkpoint_at(events, "b2").files.a, "new") eq(policy.checkpoint_at(events, "baseline").files.a, "old")
eq(policy.checkpoint_at(events, "b7"), nil) eq(policy.checkpoint_at({}), nil)
eq(policy.lineage(events)[1].session, "s0") eq(policy.lineage(events)[1].upto_seq, 9)`)
}
