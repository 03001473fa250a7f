package ashlar_test

import (
	"fmt"
	"testing"
)

// told are the facts of a type, one field of each.
func (r *rig) told(typ, field string) string {
	var all []any
	for _, f := range r.facts.all {
		if f.Type == typ {
			all = append(all, f.Fields[field])
		}
	}
	return fmt.Sprint(all)
}

// A refused call's kind is on the event stream.
func TestARefusalSaysItsKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "hi" } })
local asked = call({ "1", "nobody" }, { "2", "t" }, { "3", "t" })
asked.content[3].input_error = "no JSON"
local d = knl.device({ llm = function() return asked end, tools = { t = { description = "d", handler = function() return "x" end } },
  tool_policy = function(block) if block.id == "2" then return "deny" end end })
eq(knl.beat(s, d).status, "ok")`)
	if got := r.told("tool_result", "kind"); got != "[not_found denied validation]" {
		t.Error(got)
	}
}

// A beat that raises has its end on the event stream, and leaves nothing behind that a
// later call could belong to.
func TestABeatThatRaisesEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = function() s:close() return say("x") end }))
eq(o.status, "error") eq(o.kind, "state")`)
	if got := r.told("beat_finished", "outcome"); got != "[error]" {
		t.Error(got)
	}
}

// Of calls side by side the first error is raised when all have ended.
func TestCallsSideBySideAreAllJoined(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "hi" } })
local seen = { ended = 0 }
local function tool(f) return { description = "d", read_only = true, handler = f } end
local d = knl.device({
  llm = function() return call({ "1", "close" }, { "2", "slow" }, { "3", "slow" }) end,
  tools = {
    close = tool(function() std.time.sleep(0.02) s:close() return "x" end),
    slow = tool(function() std.time.sleep(0.3) seen.ended = seen.ended + 1 return "x" end),
  },
})
local o = knl.beat(s, d)
eq(o.status, "error") eq(o.kind, "state")
return seen.ended`)
	if res.Value != int64(2) {
		t.Errorf("%v calls had ended when the beat did", res.Value)
	}
}

// More sessions than folders are kept of do not disturb one another.
func TestManySessionsKeepTheirFolders(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local list = {}
for i = 1, 70 do list[i] = knl.open({ store = "mem" }) end
for round = 1, 2 do
  for i, s in ipairs(list) do
    s:append({ kind = "msg_user", data = { content = i .. "." .. round } })
    local seen
    local o = knl.beat(s, knl.device({ llm = function(request) seen = request.messages return say("x") end }))
    eq(o.status, "ok") eq(#seen, round * 2 - 1) eq(seen[#seen].content, i .. "." .. round)
  end
end`)
}

// A beat's request is recorded as it was sent, also where another beat of its session
// went on in between.
func TestARequestIsRecordedWithTheMessagesItHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "one" } })
local plain = knl.device({ llm = function() return say("x") end })
local sent
eq(knl.beat(s, knl.device({
  llm = function(request) sent = #request.messages return say("late") end,
  cost = function()
    s:append({ kind = "msg_user", data = { content = "two" } })
    eq(knl.beat(s, plain).status, "ok")
    return 1
  end,
})).status, "ok")
eq(sent, 1)
return s:id()`)
	var sizes []int
	for _, e := range r.events(res.Value.(string)) {
		if e.Kind == "llm_request" {
			list, _ := sub(dataOf(t, e), "request")["messages"].([]any)
			sizes = append(sizes, len(list))
		}
	}
	if fmt.Sprint(sizes) != "[2 1]" {
		t.Errorf("messages of the requests: %v", sizes)
	}
}

// A reply without a usage counts nothing; a failed call counts what it took.
func TestTheViewOfUsageTakesWhatThereIs(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local s = knl.open({})
s:append({ kind = "llm_response", data = { content = { { type = "text", text = "old" } } } })
s:append({ kind = "msg_user", data = { content = "hi" } })
eq(knl.beat(s, knl.device({ llm = function() return nil, { kind = "server", message = "m", usage = { input_tokens = 7, output_tokens = 4 } } end })).status, "error")
eq(knl.beat(s, knl.device({ llm = function() return nil, { kind = "server", message = "m" } end })).status, "error")
local row = knl.views.usage(s)[1]
eq(row.calls, 2) eq(row.input_tokens, 7) eq(row.output_tokens, 4)`)
}
