package ashlar_test

import (
	"fmt"
	"testing"
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
