package ashlar_test

import (
	"strings"
	"testing"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// A cancel that meets a beat ends its call, and the beat says so in the log; what was
// cut leaves its units spent, and the session goes on.
func TestACancelEndsTheCallOfABeat(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Hang(), llmtest.Hang(), llmtest.Text("still here"))
	res := r.ok(`
local T, s = std.task, knl.open({ budget = { beats = 9 } })
s:append({ kind = "msg_user", data = { content = "go" } })
local d, o = knl.device({ llm = llm_of({ max_tokens = 50 }) })
eq(fails(T.with_timeout, 300, function() o = knl.beat(s, d) end, { grace_ms = 5000 }).kind, "timeout")
eq(o.status, "error") eq(o.kind, "call")
eq(fails(T.with_timeout, 300, function() o = "none" o = knl.beat(s, d) end, { grace_ms = 0 }).kind, "timeout")
eq(o, "none")
eq(knl.beat(s, d).status, "ok")
eq(s:remaining(), 6)
s:close()`, bounds(ashlar.Bounds{Tokens: 10_000}))
	got := kinds(r.events(r.only(res)))
	want := "session_opened budget_granted msg_user budget_reserved llm_request llm_call_failed budget_reserved llm_request budget_reserved llm_request llm_response session_closed"
	if got != want {
		t.Errorf("the log says\n%s\nwant\n%s", got, want)
	}
	if n, _ := r.moved(res, event.BudgetReserved, "tokens", "amount"); n != 3 {
		t.Errorf("the pool gave %d times", n)
	}
}

// A tool's command ends with the task that its beat runs in, and the call has its result.
func TestACancelEndsTheToolOfABeat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local T, s = std.task, knl.open()
local tools = { run = { handler = function() return sh.exec("(sleep 60 & echo $! > a; wait)", { timeout = 50 }).stdout end } }
local o
T.scope(function(scope)
  scope:spawn(function() o = knl.beat(s, knl.device({ tools = tools, llm = function() return call({ "1", "run" }) end })) end)
  while not (std.fs.exists("a") and #std.fs.read("a") > 1) do T.sleep(5) end
  scope:cancel()
end)
s:close()
return o and o.status or "raised"`)
	r.gone("a")
	events := r.events(r.only(res))
	if got := kinds(events); got != "session_opened llm_request llm_response tool_call tool_result session_closed" {
		t.Errorf("the log says %s (the beat: %v)", got, res.Value)
	}
	for _, e := range events {
		if e.Kind == event.ToolResult && !strings.Contains(string(e.Data), `"ok":false`) {
			t.Errorf("%s", e.Data)
		}
	}
}
