package ashlar_test

import (
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// logOf is Lua that appends n round trips with results of so many words to s.
const logOf = `
local function trips(s, from, n, words)
  for i = from, from + n - 1 do
    s:append({ kind = "llm_response", meta = { beat = "b" .. i }, data = { content = { { type = "text", text = "turn " .. i }, { type = "tool_use", id = "c" .. i, name = "t", input = { n = i } } }, usage = { input_tokens = 0, output_tokens = 0 } } })
    s:append({ kind = "tool_result", meta = { beat = "b" .. i }, data = { call_id = "c" .. i, ok = true, result = ("word "):rep(words) .. i } })
  end
end
local function ask(s, text) s:append({ kind = "msg_user", data = { content = text } }) end
local function windows(s) local list = {} for from = 1, s:len(), 1000 do for _, e in ipairs(s:events(from)) do if e.kind == "llm_request" then list[#list + 1] = e.data.window or false end end end return list end
`

// Row 14 of faults: one result of 5 MB and 1,000 tiny turns both end in a request that
// fits, with no further model call.
func TestEveryRequestFitsTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ log, holds string }{
		"5 MB in the middle": {`ask(s, "the task") trips(s, 1, 3, 5) trips(s, 4, 1, 1000000) trips(s, 5, 3, 5)`, "the task"},
		"5 MB at the end":    {`ask(s, "the task") trips(s, 1, 3, 5) trips(s, 4, 1, 1000000)`, "the task"},
		"5 MB of a prompt":   {`ask(s, ("word "):rep(1000000))`, "left out here"},
		"1,000 tiny turns":   {`ask(s, "the task") trips(s, 1, 1000, 1)`, "the task"},
		"a later prompt":     {`ask(s, "the seed") trips(s, 1, 200, 5) ask(s, "the task") trips(s, 201, 200, 5)`, "the task"},
		"many large ones":    {`ask(s, "the task") trips(s, 1, 40, 2000)`, "the task"},
		"poor words":         {`ask(s, "the task") s:append({ kind = "llm_response", data = { content = { { type = "tool_use", id = "c", name = "t", input = { text = ("8f3a91"):rep(100000) } } } } })`, "the task"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Text("done"), llmtest.Text("more"))
			r.ok(logOf + `
local s = knl.open()
` + c.log + `
local device = knl.device({ llm = llm_of({ max_tokens = 500 }), window = { context_window = 4500, max_output = 500 }, system = "be exact", tools = { t = { description = "d", handler = function() end } } })
local o = knl.beat(s, device)
eq(o.status, "ok", std.json.encode(o))
local w = windows(s)[1]
eq(w.limit, 4000) assert(w.after <= 4000 and w.before > w.after, std.json.encode(w)) assert(w.dropped_messages + w.shortened > 0) eq(w.over, nil)
ask(s, "again")
eq(knl.beat(s, device).status, "ok")`)
			q := r.model.Requests()
			if len(q) != 2 {
				t.Fatalf("%d requests", len(q))
			}
			for i, x := range q {
				pairs(t, i+1, x.Body)
				// The server counts fewer tokens than the estimate: the second may take more bytes.
				if n := len(x.Raw); n > 4000*(5+2*i) || n < 2000 && strings.HasPrefix(name, "1,000") {
					t.Errorf("request %d has %d bytes", i+1, n)
				}
			}
			contains(t, string(q[0].Raw), c.holds)
			if first := str(q[0].Body["messages"].([]any)[1].(map[string]any), "role"); first != "user" {
				t.Errorf("the first message is one of %s", first)
			}
		})
	}
}

// The cut moves in steps: the beginning of the requests, which providers cache, stays.
func TestTheBeginningOfRequestsChangesRarely(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.result(logOf + `
local s = knl.open()
ask(s, "the task")
local window, changes, last = require("knl.window"), 0, nil
trips(s, 1, 100, 20)
for i = 101, 160 do
  trips(s, i, 1, 20)
  local folder = knl.fold.new()
  require("knl.beat").pages(_G.knl, s, 1, function(e) folder:step(e) end)
  local request, report = window.apply(folder, {}, knl.fold.request(folder:messages(), knl.device({})), 2000)
  assert(report.after <= 2000)
  local first = request.messages[2].content[2].id
  if first ~= last then changes = changes + 1 end
  last = first
end
return { changes = changes }`)
	if n := num(got, "changes"); n < 2 || n > 10 {
		t.Errorf("the beginning changed %d times in 60 turns", n)
	}
}

// Where the provider's own figures are known, they are what counts.
func TestTheProvidersFiguresScaleTheEstimate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ per, want int }{"three times as many": {1, 3}, "as many": {3, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The provider counts a token for each `per` bytes of what it is sent.
			r := newRig(t, llmtest.Func(func(body map[string]any) llmtest.Reply {
				n := 0
				for _, m := range body["messages"].([]any) {
					n += len(str(m.(map[string]any), "content"))
				}
				return llmtest.Text(strings.Repeat("word ", 40)).WithUsage(llmtest.Usage{Prompt: n / c.per, Completion: 40})
			}))
			got := r.result(logOf + `
local s = knl.open()
local device = knl.device({ llm = llm_of(), window = { context_window = 3000, max_output = 600 } })
for i = 1, 60 do ask(s, ("say on "):rep(10) .. i) eq(knl.beat(s, device).status, "ok") end
local w = windows(s)
return { kept = w[60].kept, before = w[60].before }`)
			limit := 2400
			for i, q := range r.model.Requests()[5:] {
				n := 0
				for _, m := range q.Body["messages"].([]any) {
					n += len(str(m.(map[string]any), "content"))
				}
				if n/c.per > limit {
					t.Errorf("request %d takes %d tokens of %d", i+6, n/c.per, limit)
				}
			}
			if c.want == 1 && num(got, "kept") < 30 {
				t.Errorf("only %d messages were kept", num(got, "kept"))
			}
		})
	}
}

// A request that the provider finds too long is shorter the next time, also where no
// window is known.
func TestARequestFoundTooLongIsFoldedShorter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(logOf + `
local s = knl.open()
ask(s, "the task")
trips(s, 1, 50, 50)
local sizes = {}
local device = knl.device({ llm = function(request)
  sizes[#sizes + 1] = #std.json.encode(request)
  if sizes[#sizes] > 12000 then return nil, { kind = "context_length", message = "too long" } end
  return say("fits")
end })
local o
for i = 1, 6 do
  o = knl.beat(s, device)
  if o.status == "ok" then break end
  eq(o.detail.kind, "context_length")
end
eq(o.status, "ok") assert(#sizes > 1)
for i = 2, #sizes do assert(sizes[i] < sizes[i - 1]) end
local w = windows(s)
eq(w[1], false, "nothing is known before, and nothing is recorded") assert(w[#w].dropped_trips > 0)`)
}

func TestWithoutAKnownWindowNothingIsMeasured(t *testing.T) {
	t.Parallel()
	newRig(t).ok(logOf + `
local s = knl.open()
ask(s, "the task")
trips(s, 1, 50, 500)
local n
eq(knl.beat(s, knl.device({ llm = function(request) n = #request.messages return say("x") end })).status, "ok")
eq(n, 101) eq(windows(s)[1], false)
-- what does not fit at all leaves no request
local o = knl.beat(s, knl.device({ llm = function() error("never") end, window = { context_window = 400, max_output = 100 }, system = ("rule "):rep(900) }))
eq(o.status, "stopped") eq(o.reason, "context") eq(#windows(s), 1)
-- another fold is kept inside the window too, unless it reports of its own
o = knl.beat(s, knl.device({ window = 2000, fold = function(events, device) return knl.fold(events, device) end, llm = function(request) n = #request.messages return say("x") end }))
eq(o.status, "ok") assert(n < 20, n)
o = knl.beat(s, knl.device({ window = 2000, fold = function(events, device) return knl.fold(events, device), { kept = 5 } end, llm = function(request) n = #request.messages return say("x") end }))
assert(n > 100)
-- what the llm of this binary knows of its model is used where the device names nothing
local trusted = require("knl.trusted")
local llm = trusted.add(function(request) n = #request.messages return say("x") end, { max_tokens = 200, profile = function() return { context_window = 2000, max_output = 900 } end })
o = knl.beat(s, knl.device({ llm = llm }))
eq(o.status, "ok") assert(n < 20, n) eq(windows(s)[4].limit, 1800)
-- and where it cannot say, none is known
llm = trusted.add(function(request) n = #request.messages return say("x") end, { profile = function() error("no answer") end })
o = knl.beat(s, knl.device({ llm = llm }))
eq(o.status, "ok") assert(n > 100)
for _, bad in ipairs({ "many", 0, 1.5, { max_output = 5 }, { context_window = 5, typo = 1 }, { context_window = 5, reserve = -1 } }) do
  assert(fails(knl.device, { window = bad }).message:find("window", 1, true))
end
local d = knl.device({ window = { context_window = 5 } })
d.window.context_window = 9
eq(d.window.context_window, 5)`)
}

func TestALongTextIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local shorten = require("knl.estimate").shorten
for _, text in ipairs({ ("ä"):rep(2000), ("€"):rep(2000), ("\240\159\152\128"):rep(1000), ("abc"):rep(900) }) do
  for n = 0, 400, 7 do
    local short = shorten(text, n)
    assert(#short <= n, n) assert(utf8.len(short), n)
  end
  assert(shorten(text, 400):find("bytes were left out here", 1, true))
  eq(shorten(text, #text), text)
end
assert(#shorten(("\128"):rep(500), 100) <= 100)
local short = shorten(("head "):rep(300) .. ("tail "):rep(300), 1000)
eq(short:sub(1, 10), "head head ") eq(short:sub(-10), "tail tail ")
local cut = tonumber(short:match("(%d+) of 3000 bytes"))
eq(#short - #short:match("\n.-\n") + cut, 3000)`)
}
