package ashlar_test

import (
	"fmt"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

const supervised = `local sup, T = require("supervisor"), std.task
local function packed(...) return { n = select("#", ...), ... } end
local function parent(n) return knl.open({ owner = "ada", budget = { beats = n or 9, tokens = 1000 } }) end
`

func TestAChildRunsForItsParent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(supervised + `
local p, kid = parent(5)
local got = packed(sup.child(p, { budget = { amount = 3, tag = "beats" }, meta = { job = "x" } }, function(c)
  kid = c
  eq(c:owner(), "ada") eq(c:remaining(), 3) eq(c:events()[1].meta.job, "x") eq(c:events()[1].data.parent, p:id())
  return 1, nil, 3
end))
eq(got.n, 3) eq(got[1], 1) eq(got[3], 3)
eq(fails(kid.append, kid, { kind = "x" }).kind, "closed")
eq(kid:view("tail", { n = 1 })[1].data.reason, "scope_exit")
-- refused: the one failure that is an answer
local entered = false
local v, err = sup.child(p, { budget = { beats = 9 } }, function() entered = true end)
eq(v, nil) eq(err.kind, "refused") eq(entered, false) assert(tostring(err):find("knl: open: refused", 1, true), tostring(err))
-- what the body raises is raised, a refusal of its own too, as it was
local ok, e = pcall(sup.child, p, { budget = { beats = 1 } }, function(c) kid = c error({ code = 7 }) end)
eq(ok, false) eq(e.code, 7) eq(kid:view("tail", { n = 1 })[1].data.reason, "error")
eq(fails(sup.child, p, { budget = { beats = 1 } }, function(c) knl.open({ parent = c, budget = { from_parent = 5 } }) end).kind, "refused")
-- nothing else comes back as an answer
p:close()
eq(fails(sup.child, p, { budget = { beats = 1 } }, print).kind, "closed")
local p = parent()
local function bad(want, ...) local e = fails(sup.child, ...) eq(e.kind, "validation", want) assert(e.message:find(want, 1, true), e.message) end
bad("no session", "p", { budget = { beats = 1 } }, print)
bad("unknown option 'tag'; it takes budget, meta, owner", p, { budget = { beats = 1 }, tag = "x" }, print)
bad("budget is required", p, {}, print)
bad("budget is required", p, { budget = {} }, print)
bad("at least 1, got 0", p, { budget = { amount = 0 } }, print)
bad("at least 1, got 1.5", p, { budget = { beats = 1.5 } }, print)
bad("unknown key 'unit'", p, { budget = { amount = 1, unit = "x" } }, print)
bad("must be a function", p, { budget = { beats = 1 } })
bad("reserved", p, { budget = { beats = 1 }, owner = "system" }, print)
eq(p:remaining("beats"), 9)
-- a mistake is where its caller made it
local function at(f) local ok, e = pcall(f) return tostring(e):match("%.lua:(%d+): supervisor") end
local here = at(function() local x = sup.child("p", {}) return x end)
assert(here, "no position")
for what, f in pairs({
  option = function() local x = sup.child(p, { b = 1 }, print) return x end, budget = function() local x = sup.child(p, {}, print) return x end,
  join = function() local x = sup.parallel(p, {}, { j = 1 }) return x end, list = function() local x = sup.parallel(p) return x end,
  entry = function() local x = sup.parallel(p, { { { b = 1 }, print } }) return x end, merge = function() local x = sup.merge({}) return x end,
  merged = function() local x = sup.merge({ p }, { b = 1 }) return x end,
}) do assert(at(f), what) end
return p:id()`)
	if got := kinds(r.events(res.Value.(string))); got != "session_opened budget_granted budget_granted session_closed" {
		t.Error(got)
	}
}

func TestChildrenRunInParallel(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"isolate": `
local p = parent(5)
local kids = {}
local got = sup.parallel(p, {
  { { budget = { beats = 1 } }, function(c) kids[1] = c T.sleep(30) return "a", nil, "b" end },
  { { budget = { beats = 1 } }, function(c) kids[2] = c error("broken", 0) end },
  { { budget = { beats = 9 } }, function(c) error("never") end },
  { { budget = { beats = 1 } }, function(c) kids[4] = c end },
})
eq(#got, 4)
eq(got[1].ok, true) eq(got[1].values.n, 3) eq(got[1].values[1], "a") eq(got[1].values[3], "b")
eq(got[2].ok, false) eq(got[2].err.message, "broken") eq(got[2].cancelled, nil)
eq(got[3].ok, false) eq(got[3].err.kind, "refused") eq(got[3].cancelled, nil)
eq(got[4].ok, true) eq(got[4].values.n, 0)
eq(p:remaining("beats"), 2)
for i, c in pairs(kids) do eq(fails(c.append, c, { kind = "x" }).kind, "closed", i) end`,
		"at once": `
local running, most = 0, 0
local list = {}
for i = 1, 8 do list[i] = { { budget = { beats = 1 } }, function() running = running + 1 most = math.max(most, running) T.sleep(50) running = running - 1 end } end
sup.parallel(parent(), list)
eq(most, 8)`,
		"cancel_on_error": `
local p, kept = parent()
local got = sup.parallel(p, {
  { { budget = { beats = 1 } }, function(c) kept = c T.sleep(1e6) end },
  { { budget = { beats = 1 } }, function() return "done" end },
  { { budget = { beats = 1 } }, function() T.sleep(30) error("broken", 0) end },
  { { budget = { beats = 1 } }, function() pcall(T.sleep, 1e6) return "in spite of it" end },
}, { joiner = "cancel_on_error" })
eq(got[1].ok, false) eq(got[1].cancelled, true) eq(got[1].err.kind, "cancelled") eq(kept:view("tail", { n = 1 })[1].data.reason, "error")
eq(got[2].ok, true) eq(got[3].ok, false) eq(got[3].cancelled, nil) eq(got[3].err.message, "broken")
eq(got[4].ok, true) eq(got[4].values[1], "in spite of it")
T.checkpoint()`,
		"timeout": `
local p, kept = parent()
local got = sup.parallel(p, {
  { { budget = { beats = 1 } }, function() return 1 end },
  { { budget = { beats = 1 } }, function() T.sleep(1e6) end },
  { { budget = { beats = 1 } }, function(c) kept = c while true do pcall(T.sleep, 1e6) end end },
}, { timeout_ms = 150 })
eq(#got, 3) eq(got[1].ok, true)
eq(got[2].ok, false) eq(got[2].cancelled, true) eq(got[2].err.kind, "cancelled")
eq(got[3].ok, false) eq(got[3].cancelled, true) assert(got[3].err.message:find("cut after 150 ms", 1, true), got[3].err.message)
local last = kept:view("tail", { n = 1 })[1]
eq(last.kind, "session_closed") eq(last.data.reason, "error")`,
		"nothing and mistakes": `
local p = parent()
eq(#sup.parallel(p, {}), 0)
local function bad(want, ...) local e = fails(sup.parallel, ...) eq(e.kind, "validation", want) assert(e.message:find(want, 1, true), e.message) end
bad("must be a list", p)
bad("unknown option 'join'; it takes joiner, timeout_ms", p, {}, { join = "x" })
bad("joiner is", p, {}, { joiner = "race" })
bad("timeout_ms", p, {}, { timeout_ms = 0 })
bad("entry 1 must be", p, { 1 })
bad("unknown option 'bugdet'", p, { { { bugdet = {} }, print } })
bad("a hole", p, { [2] = { { budget = { beats = 1 } }, print } })
bad("no session", nil, { { { budget = { beats = 1 } }, print } })
eq(p:len(), 3, "nothing was opened")`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newRig(t).ok(supervised + src)
		})
	}
}

func TestMergeReadsSessionsWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(supervised + `
local function use(id) return { { type = "tool_use", id = id, name = "t", input = {} } } end
local a, b = knl.open(), knl.open({ budget = { beats = 9 } })
a:append({ kind = "msg_user", data = { content = "A0" } })
for i = 1, 1500 do a:append({ kind = "note", data = { i = i } }) end
a:append({ kind = "llm_response", data = { content = use("c1"), usage = {} } })
a:append({ kind = "tool_result", data = { call_id = "c1", ok = true, result = "A1" } })
b:append({ kind = "msg_user", data = { content = "B0" } })
b:append({ kind = "llm_response", data = { content = use("c1"), usage = {} } }) -- the same id; and its result was never recorded
a:close()
local own = knl.open()
own:append({ kind = "msg_user", data = { content = "and now?" } })
local seen
local function beat(fold) return knl.beat(own, knl.device({ fold = fold, system = "S", llm = function(q) seen = q return say("x") end })) end
local function told() local out = {} for i, m in ipairs(seen.messages) do
  out[i] = type(m.content) == "string" and m.content or m.content[1].id or m.content[1].text or m.content[1].tool_use_id .. (m.content[1].is_error and "!" or "") end
  return table.concat(out, " ") end
local o = beat(sup.merge({ a:id(), b }))
eq(o.status, "ok", o.detail and tostring(o.detail.message or o.detail))
eq(told(), "A0 c1 c1 B0 c1_2 c1_2! and now?") eq(seen.system, "S")
eq(beat(sup.merge({ own, b })).status, "ok")
assert(told():find("^and now%? %S+ B0 c1 c1!$"), told())
eq(b:events()[3].seq, 3)
local function state(o) eq(o.status, "error") return tostring(type(o.detail) == "table" and o.detail.message or o.detail) end
assert(state(beat(sup.merge({ a:id() }, { limit = 1000 }))):find("more than 1000 events", 1, true))
assert(state(beat(sup.merge({ "nobody" }))):find("no session of this run", 1, true))
eq(beat(sup.merge({ a }, { timeout_ms = 60000 })).status, "ok")
for _, bad in ipairs({ { "x" }, { {} }, { { 1 } }, { { a }, { limt = 1 } }, { { a }, { limit = 0 } } }) do
  eq(fails(sup.merge, bad[1], bad[2]).kind, "validation")
end`)
}

// fanOut is a block where n children at once do beats, as many as they are let.
func fanOut(n, beats int) string {
	return fmt.Sprintf(supervised+`
local device = knl.device({ llm = llm_of({ max_tokens = 200 }) })
local p = knl.open()
local list = {}
for i = 1, %d do list[i] = { { budget = { beats = %d } }, function(c)
  c:append({ kind = "msg_user", data = { content = "go " .. i } })
  local done, last = 0
  repeat last = knl.beat(c, device) if last.status == "ok" then done = done + 1 end until last.status ~= "ok"
  return done, last.status .. ":" .. tostring(last.tag)
end } end
local before = std.time.now()
local done, ends = 0, {}
for i, slot in ipairs(sup.parallel(p, list)) do
  if not slot.ok then error(slot.err.message) end
  done = done + slot.values[1]
  ends[slot.values[2]] = (ends[slot.values[2]] or 0) + 1
end
return { done = done, ends = ends, seconds = std.time.now() - before }`, n, beats)
}

// A pool that 64 tasks draw on at once gives what it has, in beats and in tokens.
func TestAFanOutNeverOverdrawsItsPool(t *testing.T) {
	t.Parallel()
	answer := llmtest.Text("ok").WithUsage(llmtest.Usage{Prompt: 30, Completion: 20}).Times(-1)
	t.Run("beats", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, answer)
		res := r.ok(fanOut(64, 3), bounds(ashlar.Bounds{Beats: 100}))
		got := res.Value.(map[string]any)
		if n := got["done"].(int64); n != 100 || len(r.model.Requests()) != 100 {
			t.Errorf("%d beats, %d requests, want the pool's 100", n, len(r.model.Requests()))
		}
		if n, sum := r.moved(res, event.BudgetReserved, "beats", "amount"); n != 100 || sum != 100 {
			t.Errorf("the pool gave %d in %d", sum, n)
		}
		if res.StoppedBy != "beats" {
			t.Errorf("stopped by %q", res.StoppedBy)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, answer)
		const pool = 5000
		res := r.ok(fanOut(64, 50), bounds(ashlar.Bounds{Tokens: pool}))
		asked := len(r.model.Requests())
		_, used := r.moved(res, event.BudgetSettled, "tokens", "used")
		_, over := r.moved(res, event.BudgetSettled, "tokens", "overdrawn")
		if used != int64(50*asked) || used > pool || over != 0 || asked < 15 {
			t.Errorf("%d requests used %d of %d, overdrawn %d", asked, used, pool, over)
		}
		if res.StoppedBy != "tokens" {
			t.Errorf("stopped by %q", res.StoppedBy)
		}
	})
}

// BenchmarkSupervised is 64 supervised children with one pool against one, with a
// model that takes 20 ms: how many times as many beats a second they do.
func BenchmarkSupervised(b *testing.B) {
	answer := llmtest.Text("ok").WithUsage(llmtest.Usage{Prompt: 30, Completion: 20}).After(20 * time.Millisecond).Times(-1)
	rate := func(n int) float64 {
		const each = 8
		got := newRig(b, answer).result(fanOut(n, each), bounds(ashlar.Bounds{Beats: 100_000, Tokens: 1_000_000_000}))
		if done, _ := got["done"].(int64); done != int64(n*each) {
			b.Fatalf("%v", got)
		}
		seconds, _ := got["seconds"].(float64)
		return float64(n*each) / seconds
	}
	for b.Loop() {
		one := rate(1)
		all := rate(64)
		b.ReportMetric(one, "beats/s-of-1")
		b.ReportMetric(all, "beats/s-of-64")
		b.ReportMetric(all/one, "times")
	}
	b.ReportMetric(0, "ns/op")
}
