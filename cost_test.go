package ashlar_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// priced makes a token of input 2 and one of output 10 micro-USD, as USD for a million.
const priced = `[model."openai/scripted-1"]
price.input = 2
price.output = 10
price.cache_read = 0.5
`

func said(text string, prompt, completion, cached int) llmtest.Reply {
	return llmtest.Reply{Text: text, Usage: &llmtest.Usage{Prompt: prompt, Completion: completion, Cached: cached}}
}

// A beat reserves the most that its call can cost, and is charged what it cost to the
// unit, in ledger, usage and total alike.
func TestABeatIsChargedWhatItCost(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t, priced, said("hello", 100, 7, 40))
	res := r.ok(`
		local s = knl.open({ budget = { cost = 0.01 } })
		s:append({ kind = "msg_user", data = { content = "hi" } })
		local o = knl.beat(s, knl.device({ llm = llm_of({ max_tokens = 100 }) }))
		eq(o.status, "ok", "the beat")
		eq(o.out.usage.output_tokens, 7)
		return { left = s:remaining("cost"), usage = knl.views.usage(s)[1], ledger = knl.views.ledger(s) }`,
		bounds(ashlar.Bounds{Cost: 20_000}))
	const cost = 60*2 + 40/2 + 7*10
	m := res.Value.(map[string]any)
	if num(m, "left") != 10_000-cost || num(sub(m, "usage"), "cost") != cost {
		t.Errorf("left %d, usage %v, want %d spent", num(m, "left"), m["usage"], cost)
	}
	if res.Usage["cost"] != int64(cost) {
		t.Errorf("the run's usage is %v", res.Usage)
	}
	events := r.events(r.only(res))
	var reserved int64
	for _, e := range events {
		d := dataOf(t, e)
		switch e.Kind {
		case event.BudgetReserved:
			if d["tag"] == "cost" {
				reserved = num(d, "amount")
			}
		case event.BudgetSettled:
			if d["tag"] == "cost" && (num(d, "used") != cost || num(d, "reserved") != reserved || num(d, "returned") != reserved-cost) {
				t.Errorf("settled %v after a reserve of %d", d, reserved)
			}
		case event.LLMResponse:
			if num(sub(d, "usage"), "cost") != cost {
				t.Errorf("llm_response has %v", d["usage"])
			}
		}
	}
	if reserved <= 1000 || reserved > 1000+200 { // 100 tokens of reply, and a short request
		t.Errorf("reserved %d", reserved)
	}
}

// A call that names no limit is given the one that the money left covers.
func TestTheMoneyLeftLimitsTheReply(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t, priced, said("hello", 10, 5, 0))
	r.ok(`
		local s = knl.open({})
		s:append({ kind = "msg_user", data = { content = "hi" } })
		eq(knl.beat(s, knl.device({ llm = llm_of({}) })).status, "ok")`, bounds(ashlar.Bounds{Cost: 1000}))
	limit := r.model.Requests()[0].Body["max_tokens"]
	if n, _ := strconv.Atoi(fmt.Sprint(limit)); n < 80 || n > 100 {
		t.Errorf("asked for %v tokens with 1,000 micro-USD at 10 each", limit)
	}
}

func TestABoundOfCostWithoutAPriceIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, source := range []string{
		`local s = knl.open({ budget = { cost = 1 } }); s:append({ kind = "msg_user", data = { content = "hi" } })
		 local o = knl.beat(s, knl.device({ llm = llm_of({}) })); eq(o.status, "error"); error(o.detail.message, 0)`,
		`llm.send({ model = "scripted-1", messages = { { role = "user", content = "hi" } } })`,
	} {
		res := r.script(source, bounds(ashlar.Bounds{Cost: 1_000_000}))
		contains(t, ashlar.Explain(res.Err, false), `no price is known of openai/scripted-1: add to config.toml`)
	}
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// What a provider says that a call cost is what it cost.
func TestAProvidersOwnCostCounts(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t, priced, llmtest.Reply{Chunks: []string{
		`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}` + "\n\n",
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cost":0.000321}}` + "\n\ndata: [DONE]\n\n",
	}})
	res := r.result(`
		local s = knl.open({ budget = { cost = 0.01 } })
		s:append({ kind = "msg_user", data = { content = "hi" } })
		eq(knl.beat(s, knl.device({ llm = llm_of({ max_tokens = 50 }) })).status, "ok")
		return { left = s:remaining("cost") }`)
	if num(res, "left") != 10_000-321 {
		t.Errorf("left %d", num(res, "left"))
	}
}

// 64 tasks on one pool: what they are granted is never more than the pool, and the
// run ends by its bound.
func TestAPoolOfMoneyIsNotOverdrawn(t *testing.T) {
	t.Parallel()
	reply := said("hello", 20, 10, 0)
	reply.Repeat, reply.WaitMS = -1, 5
	r := newConfiguredRig(t, priced, reply)
	const pool = 10_000 // about 71 calls of 140, reserved at 10 × 100 and more
	res := r.script(`
		local tasks, done = {}, 0
		for i = 1, 64 do
			tasks[i] = std.task.spawn(function()
				for n = 1, 4 do
					local s = knl.open({})
					s:append({ kind = "msg_user", data = { content = "hi" } })
					local o = knl.beat(s, knl.device({ llm = llm_of({ max_tokens = 100 }) }))
					if o.status == "stopped" then eq(o.tag, "cost") eq(o.bound, "run") else eq(o.status, "ok") done = done + 1 end
					s:close()
				end
			end)
		end
		for _, t in ipairs(tasks) do t:join() end
		return done`, bounds(ashlar.Bounds{Cost: pool, Deadline: time.Minute}))
	if res.Err != nil || res.StoppedBy != "cost" || res.Code() != 3 {
		t.Fatalf("%+v", res)
	}
	done, _ := res.Value.(int64)
	if spent, _ := res.Usage["cost"].(int64); spent != done*140 || spent > pool || spent < pool/10 { // what comes back is not there for who asked before
		t.Errorf("%d beats took %v of %d", done, spent, pool)
	}
	var balance, held int64
	for _, e := range r.events("run:" + res.Run) {
		d := dataOf(t, e)
		if d["tag"] != "cost" {
			continue
		}
		switch e.Kind {
		case event.BudgetGranted:
			balance += num(d, "amount")
		case event.BudgetReserved:
			balance -= num(d, "amount")
			held += num(d, "amount")
		case event.BudgetSettled:
			balance += num(d, "returned")
			held -= num(d, "reserved")
		}
		if balance < 0 {
			t.Fatalf("overdrawn at %d", e.Seq)
		}
	}
	if held != 0 {
		t.Errorf("%d stay reserved", held)
	}
}

// Bounds and model of config.toml hold where the task names none; the task's own win.
func TestConfigBoundsARun(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t, "[run]\nbeats = 1\n[limits]\nsh_timeout = 200\n", llmtest.Reply{Text: "x", Repeat: -1})
	const two = `
		local s = knl.open({})
		s:append({ kind = "msg_user", data = { content = "hi" } })
		local d = knl.device({ llm = llm_of({}) })
		return { knl.beat(s, d).status, knl.beat(s, d).status }`
	if res := r.ok(two); fmt.Sprint(res.Value) != "[ok stopped]" || res.StoppedBy != "beats" {
		t.Errorf("%v %s", res.Value, res.StoppedBy)
	}
	if res := r.ok(two, bounds(ashlar.Bounds{Beats: 2})); fmt.Sprint(res.Value) != "[ok ok]" {
		t.Errorf("%v", res.Value)
	}
	if m := r.result(`return sh.exec("sleep 5")`); m["timed_out"] != true {
		t.Errorf("%v", m)
	}
}

func TestAWrongConfigOpensNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[run]\nbeets = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ashlar.Open(t.Context(), ashlar.Options{Project: dir, Environ: []string{"ASHLAR_HOME=" + dir}})
	if err == nil {
		t.Fatal("it opened")
	}
	contains(t, err.Error(), "config.toml:2: unknown key run.beets")
}

// A grant of cost is in USD, and what no balance can hold is refused, not wrapped around.
func TestAGrantOfCostIsAnAmountOfUSD(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
for _, bad in ipairs({ 9007199254740992, 1e300, -1e300, 1e14, -1 }) do eq(fails(knl.open, { budget = { cost = bad } }).kind, "validation", tostring(bad)) end
eq(knl.open({ budget = { cost = 1e9 } }):remaining("cost"), 1e15)
eq(knl.open({ budget = { cost = 0.25 } }):remaining("cost"), 250000)
eq(knl.open({ budget = { cost = 0 } }):remaining("cost"), 0)
-- what a device says of cost goes into the log, and is an amount
for _, bad in ipairs({ -5, 1.5, "x", 2 ^ 53, 1 / 0, 0 / 0 }) do
	local s = knl.open()
	s:append({ kind = "msg_user", data = { content = "hi" } })
	local o = knl.beat(s, knl.device({ llm = function() local r = say("x") r.usage.cost = bad return r end }))
	eq(o.status, "error", tostring(bad)) assert(o.detail.message:find("usage.cost is", 1, true), o.detail.message)
end`)
}
