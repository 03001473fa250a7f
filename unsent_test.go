package ashlar_test

import (
	"net"
	"strings"
	"testing"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// closedPort is a base URL that refuses every connection.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/v1"
}

// A call that never left takes no token, neither of a beat nor outside of one.
func TestACallThatNeverLeftGivesItsTokensBack(t *testing.T) {
	t.Parallel()
	script := func(s string) string { return strings.ReplaceAll(s, "BASE", closedPort(t)) }
	r := newRig(t)
	res := r.ok(script(`
local s = knl.open({ budget = { tokens = 500, beats = 5 } })
s:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of({ base_url = "BASE", api_key = "k", max_retries = 0 }) })
for i = 1, 2 do
  local o = knl.beat(s, d)
  eq(o.status, "error", "beat " .. i) eq(o.detail.kind, "transport")
  eq(s:remaining("tokens"), 500)
end
eq(s:remaining("beats"), 3)`), bounds(ashlar.Bounds{Tokens: 600}))
	n, used := r.moved(res, event.BudgetSettled, "tokens", "used")
	if n != 2 || used != 0 || res.StoppedBy != "" {
		t.Errorf("%d settlements of %d tokens, stopped by %q", n, used, res.StoppedBy)
	}

	r = newRig(t)
	res = r.ok(script(send+`
for i = 1, 3 do eq(fails(send, { base_url = "BASE", api_key = "k", max_retries = 1 }).kind, "network", "call " .. i) end`),
		bounds(ashlar.Bounds{Tokens: 600}))
	if n, used := r.moved(res, event.BudgetSettled, "tokens", "used"); n != 3 || used != 0 || res.StoppedBy != "" {
		t.Errorf("%d settlements of %d tokens, stopped by %q", n, used, res.StoppedBy)
	}
}

// What a beat reserved covers the call that follows one that never left; a device that
// asks nobody we know of stays spent when it fails.
func TestABeatsReserveCoversTheFirstCallThatLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("hi").WithUsage(llmtest.Usage{Prompt: 30, Completion: 20}))
	res := r.ok(strings.ReplaceAll(`
local s = knl.open({ budget = { beats = 5 } })
s:append({ kind = "msg_user", data = { content = "hi" } })
local dead, live = llm_of({ base_url = "BASE", api_key = "k", max_retries = 0 }), llm_of()
local o = knl.beat(s, knl.device({ llm = function(request, ctx)
  local out = dead(request, ctx)
  eq(out, nil)
  return live(request, ctx)
end }))
eq(o.status, "ok", tostring(o.detail and o.detail.message))
eq(knl.beat(s, knl.device({ llm = function() error("by hand") end })).status, "error")`, "BASE", closedPort(t)),
		bounds(ashlar.Bounds{Tokens: 600}))
	reserved, _ := r.moved(res, event.BudgetReserved, "tokens", "amount")
	n, used := r.moved(res, event.BudgetSettled, "tokens", "used")
	if reserved != 2 || n != 1 || used != 50 {
		t.Errorf("%d reserved, %d settlements of %d tokens", reserved, n, used)
	}
}

// A rate that a provider calls a quota is one when it says when to ask again.
func TestARateThatIsCalledAQuotaCanBeRetried(t *testing.T) {
	t.Parallel()
	const text = `{"error":{"code":429,"message":"Quota exceeded for requests per minute"DETAILS}}`
	reply := func(wait, details string) llmtest.Reply {
		h := map[string]string{}
		if wait != "" {
			h["Retry-After"] = wait
		}
		return llmtest.Status(429, h, strings.Replace(text, "DETAILS", details, 1))
	}
	newRig(t, reply("9", ""), reply("", `,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"9s"}]`), reply("", "")).ok(`
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of({ max_retries = 0 }) })
for _, kind in ipairs({ "rate_limited", "rate_limited", "quota" }) do eq(knl.beat(s, d).detail.kind, kind) end`)
}
