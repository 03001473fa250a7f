package ashlar_test

import (
	"testing"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// moved adds up what the run's pool reserved or settled of a tag.
func (r *rig) moved(res ashlar.Result, kind, tag, field string) (n int, sum int64) {
	r.t.Helper()
	for _, e := range r.events("run:" + res.Run) {
		d := dataOf(r.t, e)
		if e.Kind != kind || str(d, "tag") != tag {
			continue
		}
		if str(d, "bound") != "run" {
			r.t.Errorf("%s does not say whose it is: %s", kind, e.Data)
		}
		n, sum = n+1, sum+num(d, field)
	}
	return n, sum
}

// A run's bound on tool_calls holds for calls that no model asked for.
func TestAScriptsOwnToolCallsTakeFromTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local ran = 0
tool.register("x", { input_schema = { type = "object" } }, function() ran = ran + 1 return "r" end)
local good, last = 0
for i = 1, 5 do
  local ok, e = pcall(tool.call, "x", {})
  if ok then good = good + 1 else last = knl.error(e) end
end
eq(good, 2) eq(ran, 2) eq(last.kind, "refused") eq(last.message, "not run: budget")
eq(fails(tool.call, "nobody").kind, "not_found")`, bounds(ashlar.Bounds{ToolCalls: 2}))
	reserved, _ := r.moved(res, event.BudgetReserved, "tool_calls", "amount")
	refused, _ := r.moved(res, event.BudgetRefused, "tool_calls", "amount")
	if reserved != 2 || refused != 3 || res.StoppedBy != "tool_calls" || res.Code() != ashlar.ExitBound {
		t.Errorf("reserved %d, refused %d, stopped by %q, code %d", reserved, refused, res.StoppedBy, res.Code())
	}
}

// The model's call of a registered tool is one call, and takes one unit.
func TestARegisteredToolIsCountedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Calls(llmtest.Call{ID: "1", Name: "x", Args: `{}`}, llmtest.Call{ID: "2", Name: "x", Args: `{}`}), llmtest.Text("done"))
	res := r.ok(`
tool.register("x", { input_schema = { type = "object" } }, function() return "r" end)
local got = require("agent").run({ prompt = "go" })
eq(got.ok, true, tostring(got.error))`, bounds(ashlar.Bounds{ToolCalls: 2}))
	if n, _ := r.moved(res, event.BudgetReserved, "tool_calls", "amount"); n != 2 || res.StoppedBy != "" {
		t.Errorf("reserved %d, stopped by %q", n, res.StoppedBy)
	}
	calls := 0
	for _, f := range r.facts.all {
		if f.Type == "tool_call" {
			calls++
		}
	}
	if calls != 2 {
		t.Errorf("%d tool_call on the stream", calls)
	}
}

const send = `local function send(opts, more) local body = { model = "m", messages = { { role = "user", content = "x" } } } ` +
	`for k, v in pairs(more or {}) do body[k] = v end return llm.send(body, opts) end `

// The bounds of a run hold where a script asks a model without a session.
func TestACallOutsideABeatTakesFromTheRun(t *testing.T) {
	t.Parallel()
	answer := llmtest.Text("hi").WithUsage(llmtest.Usage{Prompt: 30, Completion: 20}).Times(-1)
	r := newRig(t, answer)
	res := r.ok(send+`
local good, last = 0
for i = 1, 10 do local ok, e = pcall(send) if ok then good = good + 1 else last = knl.error(e) end end
eq(good, 3) eq(last.kind, "refused")
local _, err = require("llm_proto").backend({ model = "m", messages = { { role = "user", content = "x" } } })
eq(err.kind, "quota") eq(err.retryable, false)`, bounds(ashlar.Bounds{Beats: 3}))
	if n := len(r.model.Requests()); n != 3 || res.StoppedBy != "beats" || res.Code() != ashlar.ExitBound {
		t.Errorf("%d requests, stopped by %q", n, res.StoppedBy)
	}

	r = newRig(t, answer)
	res = r.ok(send+`
local good = 0
for i = 1, 50 do if pcall(send, {}, { max_tokens = 20 }) then good = good + 1 end end
return good`, bounds(ashlar.Bounds{Tokens: 500}))
	_, used := r.moved(res, event.BudgetSettled, "tokens", "used")
	if got := num(res.Usage, "input") + num(res.Usage, "output"); got != used {
		t.Errorf("the run's usage is %d, %d were settled", got, used)
	}
	if n := int64(len(r.model.Requests())); n < 7 || n > 10 || used != n*50 || res.StoppedBy != "tokens" {
		t.Errorf("%d requests, %d tokens settled, stopped by %q", n, used, res.StoppedBy)
	}

	// Without a limit of its own the request gets what is left, also side by side.
	r = newRig(t, answer)
	res = r.ok(send+`
for _, limit in ipairs({ 0, -1, "many" }) do send({}, { max_tokens = limit }) end
local tasks, good = {}, 0
for i = 1, 4 do tasks[i] = std.task.spawn(function() return (pcall(send)) end) end
for _, task in ipairs(tasks) do if task:join() then good = good + 1 end end
return good`, bounds(ashlar.Bounds{Tokens: 1000}))
	for _, q := range r.model.Requests() {
		// One that looked when nothing was left, and was granted because another had settled
		// by then, asks for as little as 1.
		if n, _ := q.Body["max_tokens"].(float64); n != 1 && n < 700 || n > 999 {
			t.Errorf("max_tokens %v", q.Body["max_tokens"])
		}
	}
	if good, _ := res.Value.(int64); good < 1 {
		t.Errorf("%v", res.Value)
	}
}

// A reply that names no usage is estimated, and never free.
func TestACallOutsideABeatWithoutUsageIsEstimated(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("hi").WithoutUsage().Times(-1))
	res := r.ok(send+`send({}, { max_tokens = 20 })`, bounds(ashlar.Bounds{Tokens: 500}))
	if n, used := r.moved(res, event.BudgetSettled, "tokens", "used"); n != 1 || used < 20 || used > 200 {
		t.Errorf("%d settlements, %d tokens", n, used)
	}
}

// A beat's first call is the one that it reserved; a further one takes for itself.
// What a device says of its usage is charged, and at least what the provider said.
func TestADeviceIsChargedWhatTheProviderSaid(t *testing.T) {
	t.Parallel()
	for _, opts := range []string{`{ session = ctx.session, beat = ctx.beat }`, `{}`} {
		r := newRig(t, llmtest.Text("hi").WithUsage(llmtest.Usage{Prompt: 300, Completion: 50}).Times(-1))
		res := r.ok(send+`
local lies = { content = { { type = "text", text = "x" } }, usage = { input_tokens = 0, output_tokens = 0 }, stop_reason = "end_turn", status = "ok" }
local s = knl.open({ budget = { tokens = 10000 } })
local function beat(llm)
  s:append({ kind = "msg_user", data = { content = "hi" } })
  return knl.beat(s, knl.device({ llm = llm }))
end
local function once(_, ctx) send(`+opts+`) return lies end
eq(beat(once).status, "ok") eq(s:remaining("tokens"), 9650)
eq(beat(function(_, ctx) send(`+opts+`) send(`+opts+`) return lies end).status, "ok") eq(s:remaining("beats"), nil)
eq(beat(function(_, ctx) return nil, { kind = "server", message = "no" } end).status, "error")
eq(beat(once).reason, "budget")`, bounds(ashlar.Bounds{Beats: 4, Tokens: 100000}))
		if n, _ := r.moved(res, event.BudgetReserved, "beats", "amount"); n != 4 || len(r.model.Requests()) != 3 || res.StoppedBy != "beats" {
			t.Errorf("%s: %d beats, %d requests, stopped by %q", opts, n, len(r.model.Requests()), res.StoppedBy)
		}
	}
}

// A price of the script's own replaces what its session is charged, never what the
// run's pool is.
func TestAPriceOfTheScriptsOwnDoesNotCheapenThePool(t *testing.T) {
	t.Parallel()
	res := newRig(t).script(`
local granted = 0
for i = 1, 20 do
  local s = knl.open({ budget = { amount = 1000000, tag = "tokens" } })
  local b = _G.knl.beat_begin(s, { request = { messages = std.json.array(), max_tokens = 60 }, cost = 1 })
  if b.granted then granted = granted + 1 end
end
return granted`, bounds(ashlar.Bounds{Tokens: 100}))
	if n, _ := res.Value.(int64); n > 1 || res.StoppedBy != "tokens" {
		t.Errorf("%v beats of at least 60 tokens under 100, stopped by %q, %v", res.Value, res.StoppedBy, res.Err)
	}
}
