package ashlar_test

import (
	"fmt"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// foldBlock folds a log of 2,000 events, n times, and gives the seconds of one fold.
const foldBlock = `
local events = std.json.array()
local function add(kind, data) events[#events + 1] = { seq = #events + 1, kind = kind, meta = { beat = "b" .. #events }, data = data } end
add("msg_user", { content = "the task" })
for i = 1, 400 do
  add("llm_request", {})
  add("llm_response", { content = { { type = "text", text = "turn " .. i }, { type = "tool_use", id = "c" .. i, name = "t", input = { n = i } } }, usage = { input_tokens = 100 + 40 * i, output_tokens = 5 } })
  add("tool_call", { call_id = "c" .. i, name = "t", args = { n = i } })
  add("tool_result", { call_id = "c" .. i, ok = true, result = ("some words of a result "):rep(4) .. i })
  add("budget_reserved", { amount = 1, tag = "beats" })
end
assert(#events > 2000)
local device = knl.device({ llm = function() end, window = %s })
local window, count = require("knl.window"), %d
local function once()
  local folder = knl.fold.new()
  folder:steps(events)
  local request = knl.fold.request(folder:messages(), device)
  return window.apply(folder, {}, request, window.of(device))
end
once()
local before, request = std.time.now(), nil
for _ = 1, count do request = once() end
local took = (std.time.now() - before) / count
return { took = took, kept = #request.messages }`

// BenchmarkFold2000Events folds a log of 2,000 events anew: with no window known, with
// one that it fits into, and with one that most of it is dropped for.
func BenchmarkFold2000Events(b *testing.B) {
	for _, c := range []struct{ name, window string }{{"bare", "nil"}, {"fits", "1000000"}, {"dropped", "8000"}} {
		b.Run(c.name, func(b *testing.B) {
			got := newRig(b).result(fmt.Sprintf(foldBlock, c.window, max(b.N, 20)))
			took, _ := got["took"].(float64)
			b.ReportMetric(took*1e3, "ms/fold")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkPolicyBeat compares bare beats with beats whose seams are all policies: the
// first beat of a session, and sessions of 30 beats that each call a tool.
func BenchmarkPolicyBeat(b *testing.B) {
	for _, c := range []struct {
		name, reply string
		beats       int
		policy      bool
	}{
		{"bare", "text", 1, false}, {"policy", "text", 1, true},
		{"bare30", "call", 30, false}, {"policy30", "call", 30, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			reply := llmtest.Text("hello yourself").Times(-1)
			if c.reply == "call" {
				n := 0
				reply = llmtest.Func(func(map[string]any) llmtest.Reply {
					n++
					return llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", n), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, n)})
				})
			}
			r := newRig(b, reply)
			got := r.result(fmt.Sprintf(`
local policy = require("policy")
local llm = llm_of()
local room = policy.room({ port = {}, conf = { context_window = 128000, max_tokens = 1000 } })
local tools = { t = { description = "d", handler = function() return ("word "):rep(40) end } }
local function wrap(s, list) return policy.repeat_cap({})(s)(policy.beat_cap({ room = room })(s)(policy.require_args({})(policy.result_cap({ room = room })(list)))) end
local stuck, fold, total, sessions, beats, wrapped = policy.stagnation({}), policy.window({ room = room }), 0, %d, %d, %t
for i = 1, sessions do
  local s = knl.open({})
  s:append({ kind = "msg_user", data = { content = "hello" } })
  local device = knl.device({ llm = llm, tools = tools })
  if wrapped then
    device = knl.device({ llm = llm, tools = wrap(s, tools), fold = fold, filters = { policy.room_note({ room = room }), policy.carry({})(s) } })
  end
  for _ = 1, beats do
    local before = std.time.now()
    local o = knl.beat(s, device)
    if wrapped then eq(stuck(s), nil) end
    total = total + std.time.now() - before
    eq(o.status, "ok")
  end
  s:close()
end
return { took = total / sessions / beats }`, max(b.N/c.beats, 3), c.beats, c.policy))
			took, _ := got["took"].(float64)
			b.ReportMetric(took*1e3, "ms/beat")
			b.ReportMetric(0, "ns/op")
		})
	}
}
