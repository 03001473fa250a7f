package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar"
	"ashlar/kernel/logjson"
)

// Scenario 65.
func TestAnOpeningIsTheFirstEventAndItsGrantsFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`local s = knl.open({ owner = "me", budget = { beats = 2, tokens = 100, cost = 0.5 } }) s:close() return s:id()`)
	e := r.events(r.only(res))
	if got := kinds(e); got != "session_opened budget_granted budget_granted budget_granted session_closed" {
		t.Fatal(got)
	}
	if e[0].Seq != 1 || str(dataOf(t, e[0]), "owner") != "me" {
		t.Errorf("%d %s", e[0].Seq, e[0].Data)
	}
	for i, want := range []string{"beats 2", "tokens 100", "cost 500000"} {
		d := dataOf(t, e[i+1])
		if got := fmt.Sprint(d["tag"], " ", d["amount"]); got != want {
			t.Errorf("grant %d: %s, want %s", i, got, want)
		}
	}
}

// Scenario 66. Nothing of it reaches the log.
func TestWhatOnlyTheKernelMayWriteIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open()
for _, kind in ipairs({ "session_opened", "session_closed", "budget_granted", "budget_reserved", "budget_refused", "budget_spent", "budget_settled" }) do
  eq(fails(s.append, s, { kind = kind, data = { amount = 5, scope_id = s:scope_id() } }).kind, "validation", kind)
end
for what, event in pairs({
  top = { kind = "x", note = 1 }, beat = { kind = "x", beat = "b" }, nested = { kind = "x", meta = { a = { b = 1 } } },
  null = { kind = "x", meta = { a = std.json.null } }, nokind = { data = {} }, kind = { kind = 4 }, data = { kind = "x", data = "text" },
  nan = { kind = "x", data = { v = 0/0 } }, fn = { kind = "x", data = { f = print } }, mixed = { kind = "x", data = { m = { 1, a = 2 } } },
  empty = { kind = "" },
}) do
  eq(fails(s.append, s, event).kind, "validation", what)
end
assert(fails(s.append, s, { kind = "x", beat = "b" }).message:find("meta.beat", 1, true))
assert(fails(s.append, s, { kind = "x", data = { deep = { f = print } } }).message:find("$.deep.f: a function", 1, true))
eq(fails(knl.open, { owner = "anon" }).kind, "validation")
eq(fails(knl.open, { owner = "system" }).kind, "validation")
eq(fails(knl.open, { budget = { beats = -1 } }).kind, "validation")
eq(fails(knl.open, { budjet = { beats = 1 } }).kind, "validation")
eq(fails(knl.open, { budget = { amount = 1, from_parent = 1 } }).kind, "validation")
eq(fails(knl.open, { budget = { from_parent = 1 } }).kind, "validation")
eq(s:len(), 1)`)
	if got := kinds(r.events(r.only(res))); got != "session_opened session_closed" {
		t.Error(got)
	}
}

// Scenarios 67 and 68.
func TestSeqAndTimeAreTheStoresAndRowsAreCopies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local s = knl.open()
eq(s:append({ kind = "x", seq = 99, epoch_ms = 1, _schema_version = 7, data = { list = { 1, 2 }, none = std.json.array(), obj = {} } }), 2)
local rows, more = s:events()
eq(more, false) eq(#rows, 2)
local row = rows[2]
eq(row.seq, 2) eq(row._schema_version, 2) assert(row.epoch_ms > 1e12)
row.kind, row.data.list[1], row.data.new = "changed", 9, true
rows[3] = { kind = "y" }
local again = s:events(2)[1]
eq(again.kind, "x") eq(again.data.list[1], 1) eq(again.data.new, nil)
eq(std.json.encode(again.data), '{"list":[1,2],"none":[],"obj":{}}')
eq(s:view("tail", { n = 1 })[1].seq, 2)
eq(fails(s.view, s, "head").kind, "validation")
eq(#s:view("tail", { n = 0 }), 0)`)
}

// Scenarios 69 and 70.
func TestHandlesInterleaveAndAReserveNeverOverdraws(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local a = knl.open({ budget = { amount = 10, tag = "beats" } })
local b = knl.resume({ session = a:id() })
eq(a:append({ kind = "x" }), 3) eq(b:append({ kind = "x" }), 4) eq(a:append({ kind = "x" }), 5)
local granted = 0
local tasks = {}
for i = 1, 8 do
  local h = i % 2 == 0 and a or b
  tasks[i] = std.task.spawn(function() for _ = 1, 4 do if h:reserve(1) then granted = granted + 1 end end end)
end
for _, task in ipairs(tasks) do task:join() end
eq(granted, 10)
eq(a:remaining(), 0) eq(b:remaining(), 0) eq(a:exhausted(), true)
local ok, tag = a:reserve(1)
eq(ok, false) eq(tag, "beats")
a:spend(5)
eq(a:remaining(), 0)
eq(fails(a.reserve, a, -1).kind, "validation") eq(fails(a.spend, a, -1).kind, "validation")
eq(fails(a.reserve, a, { beats = 1.5 }).kind, "validation")
local c = knl.resume({ session = a:id(), budget = { beats = 4 } })
eq(c:remaining(), 4) eq(a:remaining(), 4)
eq(a:remaining("tokens"), nil)
local free = knl.open()
eq(free:reserve(3), true) eq(free:remaining(), nil) eq(free:exhausted(), false) free:spend(2)
eq(free:len(), 1)
return a:id()`)
	e := r.events(res.Value.(string))
	left := int64(0)
	for _, x := range e {
		d := dataOf(t, x)
		switch x.Kind {
		case "budget_granted":
			left += num(d, "amount")
		case "budget_reserved":
			left -= num(d, "amount")
		case "budget_spent":
			left = max(0, left-num(d, "amount"))
		case "budget_refused":
			if d["remaining"] == nil {
				t.Errorf("a refusal without remaining: %s", x.Data)
			}
		}
		if left < 0 {
			t.Fatalf("overdrawn at %d", x.Seq)
		}
	}
	if n := count(e, "budget_refused"); n != 23 {
		t.Errorf("%d refusals, want 23", n)
	}
}

// Several tags at once: all or nothing, and the refusal names the first that is short.
func TestAReserveOverSeveralTagsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open({ budget = { tool_calls = 3, apples = 1, tokens = 50, beats = 5 } })
local ok, tag = s:reserve({ beats = 1, tokens = 51, apples = 2 })
eq(ok, false) eq(tag, "tokens")
eq(s:remaining("beats"), 5) eq(s:remaining("apples"), 1)
ok, tag = s:reserve({ beats = 2, tokens = 50, apples = 1 })
eq(ok, true) eq(tag, "beats")
eq(s:remaining("beats"), 3) eq(s:remaining("tokens"), 0) eq(s:remaining("apples"), 0)
ok, tag = s:reserve({ apples = 1, tool_calls = 4 })
eq(ok, false) eq(tag, "tool_calls")
local left = s:remaining()
eq(left, 3, "the first tag is beats")`)
	e := r.events(r.only(res))
	want := "session_opened budget_granted budget_granted budget_granted budget_granted budget_refused budget_reserved budget_reserved budget_reserved budget_refused session_closed"
	if got := kinds(e); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if d := dataOf(t, e[5]); str(d, "tag") != "tokens" || num(d, "remaining") != 50 || num(d, "amount") != 51 {
		t.Errorf("%s", e[5].Data)
	}
}

// Scenarios 72 and 153, and the resume of what has ended.
func TestClosingIsPerHandleAndOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local a = knl.open({ budget = { beats = 3 } })
local b = knl.resume({ session = a:id() })
a:close("closed", "done here")
a:close() a:close("error")
eq(fails(a.append, a, { kind = "x" }).kind, "closed")
eq(fails(a.reserve, a, 1).kind, "closed")
eq(fails(a.spend, a, 1).kind, "closed")
eq(#a:events(), 3) eq(a:len(), 3) eq(a:remaining(), 3)
eq(b:append({ kind = "late" }), 4)
b:close("scope_exit")
eq(a:len(), 5)
eq(fails(knl.resume, { session = a:id() }).kind, "closed")
eq(fails(knl.resume, { session = "nobody" }).kind, "validation")
local dev = knl.device({ llm = function() return say("x") end })
local o = knl.beat(a, dev)
eq(o.status, "error") eq(o.kind, "state") eq(o.detail.kind, "closed")
return a:id()`)
	e := r.events(res.Value.(string))
	if got := kinds(e); got != "session_opened budget_granted session_closed late session_closed" {
		t.Error(got)
	}
	if d := dataOf(t, e[2]); str(d, "reason") != "closed" || str(d, "detail") != "done here" {
		t.Errorf("%s", e[2].Data)
	}
}

// Scenario 73 in one VM: what is left open is dropped, and the bracket keeps the
// body's error.
func TestABracketClosesAndKeepsTheBodysError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local left = knl.open()
local a, b = knl.session({ owner = "me" }, function(s) s:append({ kind = "x" }) return 1, s:id() end)
eq(a, 1)
local id
local e = fails(knl.session, {}, function(s) id = s:id() error({ code = 7, message = ("long "):rep(60) }) end)
local good, raised = pcall(knl.session, {}, function() error({ code = 7 }) end)
eq(raised.code, 7)
good, raised = pcall(knl.session, { session = "nobody" }, function() error("never") end)
eq(knl.error(raised).kind, "validation")
local again = knl.open() local sid = again:id()
eq(select(2, knl.session({ session = sid }, function(s) return nil, s:id() end)), sid)
return { left = left:id(), scope = b, error = id }`)
	m := res.Value.(map[string]any)
	ending := func(name string) map[string]any {
		e := r.events(str(m, name))
		last := e[len(e)-1]
		if last.Kind != "session_closed" {
			t.Fatalf("%s ends with %s", name, last.Kind)
		}
		return dataOf(t, last)
	}
	if d := ending("left"); str(d, "reason") != "dropped" {
		t.Errorf("left: %v", d)
	}
	if d := ending("scope"); str(d, "reason") != "scope_exit" {
		t.Errorf("scope: %v", d)
	}
	d := ending("error")
	if detail := str(d, "detail"); str(d, "reason") != "error" || !strings.HasSuffix(detail, "...") || len([]rune(detail)) != 203 {
		t.Errorf("error: %v", d)
	}
}

// A close that fails does not hide what the body raised; it goes to the log.
func TestAFailingCloseDoesNotHideTheBodysError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.script(`
knl.session({ store = { sqlite = "own.db" } }, function(s)
  error("the body's own")
end)`)
	if res.Err == nil || !strings.Contains(res.Err.Error(), "the body's own") || res.Code() != ashlar.ExitFailed {
		t.Errorf("%d %v", res.Code(), res.Err)
	}
}

// Scenario 76.
func TestTheEightKindsReadBackFromTheirText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local kinds = knl.api().errors
eq(table.concat(kinds, " "), "busy storage corruption closed validation unsupported timeout refused")
for _, kind in ipairs(kinds) do
  local e = knl.error("knl: append: " .. kind .. ": some prose: with colons")
  eq(e.kind, kind) eq(e.method, "append") eq(e.message, "some prose: with colons") eq(e.retryable, kind == "busy")
  local good, raised = pcall(error, "knl: append: " .. kind .. ": prose")
  eq(knl.error(raised).kind, kind)
end
eq(knl.error("nothing of ours").kind, nil) eq(knl.error("nothing of ours").retryable, false)
eq(knl.error("knl: append: strange: prose").kind, nil)
eq(knl.error(nil).message, "nil")
eq(knl.error({ kind = "busy", message = "m" }).retryable, true)
eq(knl.error(12).message, "12")
assert(tostring(knl.error("knl: append: closed: over")):find("closed"), tostring(knl.error("knl: append: closed: over")))
-- the names of methods and fields are published
local api = knl.api()
for _, name in ipairs({ "amount", "tag", "desc", "remaining", "scope_id", "owner", "parent", "child", "reason", "detail", "open_children" }) do eq(api.fields[name], name) end
local s = knl.open()
for _, m in ipairs(api.session) do assert(s[m.name], m.name) end
for _, f in ipairs(api.module) do assert(_G.knl[f.name], f.name) end`)
}

// Scenario 77: a waiting syscall stops no timer.
func TestAWaitingSyscallStopsNoTimer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.result(`
local s = knl.open()
local ticks = 0
local timer = std.task.spawn(function() for _ = 1, 20 do std.time.sleep(0.01) ticks = ticks + 1 end end)
local writers = {}
for i = 1, 4 do writers[i] = std.task.spawn(function() for _ = 1, 50 do s:append({ kind = "x", data = { v = ("y"):rep(2000) } }) end end) end
for _, w in ipairs(writers) do w:join() end
local cmd = std.task.spawn(function() return sh.exec("sleep 0.3").ok end)
local before = std.time.now()
timer:join()
return { ticks = ticks, waited = std.time.now() - before, ok = cmd:join(), len = s:len() }`)
	if num(m, "ticks") != 20 || m["ok"] != true || num(m, "len") != 201 {
		t.Errorf("%v", m)
	}
	if w, _ := m["waited"].(float64); w > 2 {
		t.Errorf("the timer took %v s", w)
	}
}

// Scenario 149.
func TestLabelsGoIntoTheOpeningAndTheScriptsOwnWin(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`knl.open({ meta = { who = "script" } }):close()`, func(task *ashlar.Task) {
		task.Labels = map[string]any{"n": int64(3), "yes": true, "who": "flag", "x": 1.5}
	})
	e := r.events(r.only(res))
	if got := string(e[0].Meta); got != `{"n":3,"who":"script","x":1.5,"yes":true}` {
		t.Error(got)
	}
}

// Scenario 114 (D1): a session of 1,200 events still beats, and agent.run takes such
// a history.
func TestASessionOfManyEventsStillBeats(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open({ budget = { beats = 2 } })
s:append({ kind = "msg_user", data = { content = "first" } })
for i = 1, 1200 do s:append({ kind = "note", data = { i = i } }) end
s:append({ kind = "msg_user", data = { content = "last" } })
local rows, more = s:events()
eq(#rows, 1000) eq(more, true)
rows, more = s:events(1001)
eq(#rows, 204) eq(more, false)
local seen
local o = knl.beat(s, knl.device({ llm = function(request) seen = request return say("hi") end }))
eq(o.status, "ok", o.detail and tostring(o.detail.message))
eq(#seen.messages, 2) eq(seen.messages[2].content, "last")
-- a fold of one's own gets every event
o = knl.beat(s, knl.device({ llm = function() return say("hi") end, fold = function(events, device)
  eq(#events, 1207) return knl.fold(events, device)
end }))
eq(o.status, "ok", o.detail and tostring(o.detail))
eq(#knl.export(s), 1210)
eq(#knl.export(s, { as = "messages" }), 4)
return s:id()`)
	if n := len(r.events(res.Value.(string))); n != 1211 {
		t.Errorf("%d events", n)
	}
}

// A tree in memory: the child's owner, its allocation, and a parent without a grant.
func TestAChildTakesFromItsParent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local p = knl.open({ owner = "boss", store = "mem", budget = { amount = 5, tag = "beats" } })
local c = knl.open({ parent = p, budget = { from_parent = 3 } })
eq(c:owner(), "boss") eq(c:remaining("beats"), 3) eq(p:remaining(), 2)
local e = fails(knl.open, { parent = p, budget = { from_parent = 9 } })
eq(e.kind, "refused")
eq(p:len(), 4)
c:close() eq(p:remaining(), 2, "no refund")
local free = knl.open()
local kid = knl.open({ parent = free, owner = "kid", budget = { from_parent = 4, tag = "beats" } })
eq(kid:remaining("beats"), 4) eq(kid:owner(), "kid")
free:close()
eq(fails(knl.open, { parent = free, budget = { from_parent = 1, tag = "beats" } }).kind, "closed")
eq(kid:append({ kind = "x" }), 3)`)
}

// The neutral values of an event survive a round trip.
func TestAnEventKeepsItsValues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open()
s:append({ kind = "x", data = { big = std.json.int("9007199254740993"), null = std.json.null, list = std.json.array(), obj = {}, f = 0.5, neg = -0.0, text = "é\0" } })
local d = s:events(2)[1].data
eq(tostring(d.big), "9007199254740993") eq(d.null, std.json.null) eq(d.text, "é\0")
return s:id()`)
	e := r.events(res.Value.(string))
	v, err := logjson.Object(e[1].Data)
	if err != nil || fmt.Sprint(v["big"]) != "9007199254740993" || v["neg"] != int64(0) {
		t.Errorf("%s %v", e[1].Data, err)
	}
}
