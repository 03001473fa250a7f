package ashlar_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel/store/sqlite"
	"ashlar/stdlib/llm/llmtest"
)

// Read-only calls run side by side; the model sees them in its own order.
func TestReadOnlyCallsRunSideBySideInTheModelsOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local s = knl.open()
local live, most, order = 0, 0, {}
local function tool_of(wait, ro) return { read_only = ro, handler = function()
  live = live + 1 most = math.max(most, live) std.time.sleep(wait) live = live - 1 order[#order + 1] = wait return "after " .. wait
end } end
local tools = { slow = tool_of(0.2, true), mid = tool_of(0.1, true), fast = tool_of(0.01, true), write = tool_of(0.01, false) }
local asked = replies({ call({ "1", "slow" }, { "2", "mid" }, { "3", "fast" }), call({ "4", "slow" }, { "5", "write" }), function(request)
  local m = request.messages
  eq(m[3].content[1].tool_use_id, "1") eq(m[3].content[1].content, "after 0.2") eq(m[3].content[2].tool_use_id, "2") eq(m[3].content[3].tool_use_id, "3")
  return say("done")
end })
local d = knl.device({ llm = asked, tools = tools })
local o = knl.beat(s, d)
eq(o.status, "ok") eq(most, 3)
eq(table.concat(order, " "), "0.01 0.1 0.2")
eq(o.out.tools[1].call_id .. o.out.tools[2].call_id .. o.out.tools[3].call_id, "123")
most = 0
eq(knl.beat(s, d).status, "ok") eq(most, 1, "a call that writes runs alone")
o = knl.beat(s, d)
eq(o.status, "ok", tostring(o.detail and (o.detail.message or o.detail)))
return s:id()`)
	var calls []string
	e := r.events(res.Value.(string))
	for _, x := range e {
		if x.Kind == "tool_call" {
			calls = append(calls, str(dataOf(t, x), "call_id"))
		}
	}
	if got := strings.Join(calls, ""); got != "12345" {
		t.Errorf("calls in the log: %s", got)
	}
	if got := kinds(e[:9]); got != "session_opened llm_request llm_response tool_call tool_call tool_call tool_result tool_result tool_result" {
		t.Error(got)
	}
}

// Four tasks that beat on one session leave a history that folds.
func TestTasksThatBeatOnOneSessionDoNotCorruptTheFold(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Func(func(req map[string]any) llmtest.Reply {
		messages, _ := req["messages"].([]any)
		if len(messages)%3 == 0 {
			return llmtest.Calls(llmtest.Call{ID: fmt.Sprintf("c%d_%d", len(messages), rand.Int64()), Name: "t", Args: `{}`}).After(time.Millisecond)
		}
		return llmtest.Text("hello")
	}))
	res := r.ok(`
local s = knl.open()
local d = knl.device({ llm = llm_of(), tools = { t = { handler = function() std.time.sleep(0.002) return "ok" end } } })
local tasks = {}
for i = 1, 4 do
  tasks[i] = std.task.spawn(function()
    for n = 1, 12 do
      s:append({ kind = "msg_user", data = { content = i .. ":" .. n } })
      local o = knl.beat(s, d)
      if o.status ~= "ok" then error(tostring(o.detail and (o.detail.message or o.detail))) end
    end
  end)
end
for _, task in ipairs(tasks) do task:join() end
local kept
knl.beat(s, knl.device({ llm = function(request) kept = std.json.encode(request.messages) return say("end") end }))
local events, from, more, page = {}, 1, true
while more do page, more = s:events(from) for _, e in ipairs(page) do events[#events + 1] = e from = e.seq + 1 end end
table.remove(events)
eq(kept, std.json.encode(knl.fold(events, knl.device({})).messages), "what is kept and what folding the log again gives")
return s:id()`)
	e := r.events(res.Value.(string))
	if n := count(e, "llm_request"); n != 49 {
		t.Errorf("%d requests", n)
	}
	// Each request in the log is what was sent.
	var logged []string
	for _, x := range e {
		if x.Kind == "llm_request" {
			logged = append(logged, fmt.Sprint(len(sub(dataOf(t, x), "request")["messages"].([]any))))
		}
	}
	t.Log(strings.Join(logged, " "))
	for i, q := range r.model.Requests() {
		pairs(t, i, q.Body)
	}
}

// pairs holds a wire request to the rule that every call is answered exactly once,
// right behind it.
func pairs(t testing.TB, n int, body map[string]any) {
	t.Helper()
	open := map[string]bool{}
	messages, _ := body["messages"].([]any)
	for _, x := range messages {
		m, _ := x.(map[string]any)
		if str(m, "role") == "tool" {
			id := str(m, "tool_call_id")
			if !open[id] {
				t.Fatalf("request %d: a result without its call: %s", n, id)
			}
			delete(open, id)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("request %d: calls without a result: %v", n, open)
		}
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			open[str(c.(map[string]any), "id")] = true
		}
	}
	if len(open) > 0 {
		t.Fatalf("request %d: calls without a result: %v", n, open)
	}
}

// Arbitrary histories, cut anywhere: the fold pairs every tool_use with exactly one
// tool_result, and gives the same bytes again; so does the kept fold, one event at
// a time.
func TestTheFoldPairsWhateverTheHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	var lua strings.Builder
	lua.WriteString("local histories = {\n")
	for range 60 {
		lua.WriteString("{")
		id, open := 0, []string{}
		for range 5 + rnd.IntN(20) {
			switch rnd.IntN(6) {
			case 0:
				lua.WriteString(`{kind="msg_user",data={content="hi"}},`)
			case 1, 2:
				lua.WriteString(`{kind="llm_response",data={usage={input_tokens=1,output_tokens=1},content=std.json.array({`)
				for range rnd.IntN(4) {
					if rnd.IntN(3) == 0 {
						lua.WriteString(`{type="text",text="x"},`)
						continue
					}
					if rnd.IntN(8) > 0 || id == 0 {
						id++ // else an id is used again
					}
					open = append(open, fmt.Sprint("c", id))
					fmt.Fprintf(&lua, `{type="tool_use",id="c%d",name="t",input={}},`, id)
				}
				lua.WriteString(`})}},`)
			case 3, 4:
				call := "stranger"
				if len(open) > 0 && rnd.IntN(9) > 0 {
					call = open[rnd.IntN(len(open))]
				}
				fmt.Fprintf(&lua, `{kind="tool_call",data={call_id=%q,name="t",args={}}},{kind="tool_result",data={call_id=%q,ok=%v,result=%s}},`,
					call, call, rnd.IntN(2) == 0, []string{`"r"`, `{a=1}`, `std.json.array()`, `4`, `std.json.null`, `false`}[rnd.IntN(6)])
			case 5:
				lua.WriteString(`{kind="note",data={}},`)
			}
		}
		lua.WriteString("},\n")
	}
	lua.WriteString("}\n")
	r.ok(lua.String() + `
local device = knl.device({})
local function check(messages)
  local i = 1
  while i <= #messages do
    local m, ids = messages[i], {}
    if m.role == "assistant" then
      assert(#m.content > 0, "an empty message")
      local seen = {}
      for _, b in ipairs(m.content) do if b.type == "tool_use" and not seen[b.id] then seen[b.id] = true ids[#ids + 1] = b.id end end
    end
    if #ids > 0 then
      local answer = assert(messages[i + 1], "no answer")
      eq(answer.role, "user") eq(#answer.content, #ids)
      for n, b in ipairs(answer.content) do eq(b.type, "tool_result") eq(b.tool_use_id, ids[n]) eq(type(b.content), "string") end
      i = i + 1
    elseif m.role == "user" and type(m.content) == "table" then
      for _, b in ipairs(m.content) do assert(b.type ~= "tool_result", "a result without its call") end
    end
    i = i + 1
  end
end
for _, history in ipairs(histories) do
  local folder, prefix = knl.fold.new(), {}
  for cut = 1, #history do
    prefix[cut] = history[cut]
    folder:step(history[cut])
    local once, twice = knl.fold(prefix, device).messages, knl.fold(prefix, device).messages
    check(once)
    local text = std.json.encode(once)
    eq(text, std.json.encode(twice)) eq(text, std.json.encode(folder:messages()))
  end
end`)
}

// Faults row 1: a crash at any event of a beat, then resume: each call has exactly
// one result, the effect is said, and the next beat goes out whole.
func TestAResumeAnswersWhatACrashLeftOpen(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= 3; cut++ {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Text("on"))
			path := filepath.Join(r.dir, "crashed.db")
			st, err := sqlite.Open(context.Background(), path, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			id := crashed(t, st, cut)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			res := r.ok(`
local s = knl.resume({ session = "` + id + `", store = { sqlite = "` + path + `" } })
local o = knl.beat(s, knl.device({ llm = llm_of() }))
eq(o.status, "ok", tostring(o.detail and o.detail.message))
local effects = {}
for _, e in ipairs(s:events()) do if e.kind == "tool_result" then effects[#effects + 1] = e.data.call_id .. "=" .. tostring(e.data.effect) end end
return table.concat(effects, " ")`)
			want := []string{"a=nil b=nil a=none b=none", "a=nil b=nil a=unknown b=none", "a=nil b=nil a=nil b=none"}[cut-1]
			if res.Value != want {
				t.Errorf("%v, want %s", res.Value, want)
			}
			pairs(t, cut, r.model.Requests()[0].Body)
		})
	}
}
