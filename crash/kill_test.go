package crash

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/stdlib/llm/llmtest"
)

// kills is how many random moments are tried: 200 with ASHLAR_CRASH=long.
func kills() int {
	if os.Getenv("ASHLAR_CRASH") == "long" {
		return 200
	}
	return 50
}

// working is a session with tools that goes on for ever. It prints, unbuffered, the
// session's id and each seq that it was told of.
const working = `
local knl, adapter = require("knl"), require("knl_adapter")
local function command(line)
  return { description = "d", handler = function(input)
    sh.exec("echo " .. input.id .. " >> ran; " .. line, { timeout = 30 })
    return "done " .. input.id
  end }
end
local dev = knl.device({ llm = adapter.port({}):open({ max_tokens = 100 }), tools = {
  quick = command("true"),
  slow = command("sleep 0.03"),
  back = command("sleep TOKEN & echo x"),
  own_session = command("setsid sleep TOKEN >/dev/null 2>&1 & echo x"),
  double = command("( (sleep TOKEN >/dev/null 2>&1 &) & ); echo x"),
  bare = command("env -i /bin/sh -c '(setsid sleep TOKEN >/dev/null 2>&1 &)'; echo x"),
} })
local s = knl.open({ owner = "crash" })
print("S " .. s:id())
print("A " .. s:append({ kind = "msg_user", data = { content = "go on" } }))
while true do
  local o = knl.beat(s, dev)
  if o.status ~= "ok" then error(std.json.encode(o.detail or o.kind or o.status)) end
  print("A " .. s:append({ kind = "note", data = { text = ("x"):rep(300) } }))
end
`

// resuming takes the session up and makes one beat more.
const resuming = `
local knl, adapter = require("knl"), require("knl_adapter")
local s = knl.resume({ session = _PROMPT })
s:append({ kind = "msg_user", data = { content = "stop now" } })
local o = knl.beat(s, knl.device({ llm = adapter.port({}):open({ max_tokens = 100 }) }))
if o.status ~= "ok" then error(std.json.encode(o.detail or o.kind or o.status)) end
return "resumed"
`

// toolsForEver asks for one to three tools at a time, until it is told to stop.
func toolsForEver() llmtest.Reply {
	names := []string{"quick", "slow", "back", "own_session", "double", "bare"}
	var n atomic.Int64
	return llmtest.Func(func(request map[string]any) llmtest.Reply {
		messages, _ := request["messages"].([]any)
		last, _ := messages[len(messages)-1].(map[string]any)
		if last["content"] == "stop now" {
			return llmtest.Text("stopped")
		}
		var calls []llmtest.Call
		for range 1 + n.Load()%3 {
			id := n.Add(1)
			calls = append(calls, llmtest.Call{ID: fmt.Sprintf("c%d", id), Name: names[id%int64(len(names))], Args: fmt.Sprintf(`{"id":"c%d"}`, id)})
		}
		return llmtest.Calls(calls...)
	})
}

func TestKillAtAnyMomentLosesNothing(t *testing.T) {
	p := newPlace(t)
	srv := llmtest.New(t, toolsForEver())
	p.env = []string{"ASHLAR_BASE_URL=" + srv.URL(), "ASHLAR_MODEL=openai/scripted-1", "OPENAI_API_KEY=sk-crash-0123456789abcdef"}
	token := fmt.Sprintf("4%d.25", os.Getpid())
	work := p.script(strings.ReplaceAll(working, "TOKEN", token))
	again := filepath.Join(p.dir, "again.lua")
	if err := os.WriteFile(again, []byte(resuming), 0o644); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	begun, kills := 0, kills()
	for i := range kills {
		session, acked := p.killed(work, time.Duration(rand.IntN(400))*time.Millisecond)
		p.noneLeft(2*time.Second, token)
		s, lost := p.lostRun(known)
		events := verify(t, s)
		if session == "" {
			continue // killed before it had a session
		}
		begun++
		if lost == nil || !slices.Contains(lost.Sessions, session) {
			t.Errorf("kill %d: no lost run has session %s: %+v", i, session, lost)
		}
		p.acknowledged(events[session], acked)
		e := p.run(binary, "run", "-q", "-s", again, session)
		if e.code != 0 || strings.TrimSpace(e.stdout) != "resumed" {
			t.Fatalf("kill %d: the session does not resume: %v", i, e)
		}
		_, s, _ = p.records()
		p.answered(verify(t, s)[session])
		requests := srv.Requests()
		paired(t, requests[len(requests)-1].Body)
		known = p.knownRuns()
	}
	if begun < kills/3 {
		t.Errorf("only %d of %d kills found a session: the moments are too early", begun, kills)
	}
	p.ranOnce()
	t.Logf("%d of %d kills found a session; %d commands ran", begun, kills, len(p.ran()))
}

// killed starts a run, kills it some time after its first line or its start, and
// gives what it had printed.
func (p *place) killed(script string, after time.Duration) (session string, acked []int64) {
	p.t.Helper()
	cmd := p.command(binary, "run", "-q", "-s", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			if err != io.EOF {
				p.t.Errorf("reading: %v", err)
			}
			break
		}
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind == "S" {
			session = rest
			continue
		}
		n, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			p.t.Errorf("the script printed %q", line)
			continue
		}
		acked = append(acked, n)
	}
	err = cmd.Wait()
	if err == nil || cmd.ProcessState.ExitCode() != -1 {
		p.t.Errorf("the run ended before it was killed: %v %s", err, stderr.String())
	}
	return session, acked
}

// lostRun gives the run that was not known: it must be lost.
func (p *place) lostRun(known map[string]bool) (store.Store, *run.Row) {
	p.t.Helper()
	ws, s, rows := p.records()
	p.t.Cleanup(func() { ws.Close() })
	var lost *run.Row
	for _, r := range rows {
		if known[r.ID] {
			continue
		}
		if r.State != run.Lost {
			p.t.Errorf("run %s is %s, want lost", r.ID, r.State)
		}
		lost = &r
	}
	return s, lost
}

func (p *place) knownRuns() map[string]bool {
	_, _, rows := p.records()
	known := map[string]bool{}
	for _, r := range rows {
		known[r.ID] = true
	}
	return known
}

func (p *place) acknowledged(events []event.Event, acked []int64) {
	p.t.Helper()
	for _, seq := range acked {
		if seq > int64(len(events)) {
			p.t.Errorf("the script was told of %d, the log ends at %d", seq, len(events))
			continue
		}
		if k := events[seq-1].Kind; k != "note" && k != event.MsgUser {
			p.t.Errorf("the script was told of %d, which is a %s", seq, k)
		}
	}
}

// answered checks that each call has exactly one result, behind it, and that what
// had no effect did not run.
func (p *place) answered(events []event.Event) {
	p.t.Helper()
	ran := p.ran()
	asked, called, results := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, e := range events {
		switch d := dataOf(p.t, e); e.Kind {
		case event.LLMResponse:
			for _, b := range d["content"].([]any) {
				if m := b.(map[string]any); m["type"] == "tool_use" {
					asked[m["id"].(string)] = true
				}
			}
		case event.ToolCall:
			called[d["call_id"].(string)] = true
		case event.ToolResult:
			id := d["call_id"].(string)
			if !asked[id] {
				p.t.Errorf("a result for %s, which was not asked for", id)
			}
			results[id]++
			if effect := d["effect"]; effect == "none" && (called[id] || ran[id] > 0) || effect == "unknown" && !called[id] {
				p.t.Errorf("call %s: effect %v, begun %v, ran %d times", id, effect, called[id], ran[id])
			}
		}
	}
	for id := range asked {
		if results[id] != 1 {
			p.t.Errorf("call %s has %d results", id, results[id])
		}
	}
}

// ran counts how often each call's command ran.
func (p *place) ran() map[string]int {
	b, _ := os.ReadFile(filepath.Join(p.dir, "ran"))
	n := map[string]int{}
	for _, id := range strings.Fields(string(b)) {
		n[id]++
	}
	return n
}

func (p *place) ranOnce() {
	p.t.Helper()
	for id, n := range p.ran() {
		if n != 1 {
			p.t.Errorf("the command of %s ran %d times", id, n)
		}
	}
}

// paired checks what a provider checks: behind a message with calls there is one
// result for each, and none elsewhere.
func paired(t *testing.T, request map[string]any) {
	t.Helper()
	messages, _ := request["messages"].([]any)
	open := map[string]bool{}
	for i, raw := range messages {
		m := raw.(map[string]any)
		if m["role"] == "tool" {
			id, _ := m["tool_call_id"].(string)
			if !open[id] {
				t.Errorf("message %d answers %s, which is not open", i, id)
			}
			delete(open, id)
			continue
		}
		if len(open) > 0 {
			t.Errorf("message %d (%v) comes before the results of %v", i, m["role"], open)
		}
		calls, _ := m["tool_calls"].([]any)
		for _, c := range calls {
			open[c.(map[string]any)["id"].(string)] = true
		}
	}
	if len(open) > 0 {
		b, _ := json.Marshal(messages[len(messages)-1])
		t.Errorf("%v are never answered; the last message is %s", open, b)
	}
}

// TestKilledWhileManyWrite kills one of several processes on one home.
func TestKilledWhileManyWrite(t *testing.T) {
	p := newPlace(t)
	script := p.script(`
local s = knl.open({})
print("S " .. s:id())
while true do print("A " .. s:append({ kind = "note", data = { text = ("y"):rep(500) } })) end`)
	type told struct {
		session string
		acked   []int64
	}
	for range 3 {
		all := make(chan told)
		for range 4 {
			go func() {
				session, acked := p.killed(script, time.Duration(100+rand.IntN(300))*time.Millisecond)
				all <- told{session, acked}
			}()
		}
		var list []told
		for range 4 {
			list = append(list, <-all)
		}
		_, s, rows := p.records()
		for _, r := range rows {
			if r.State != run.Lost {
				t.Errorf("run %s is %s, want lost", r.ID, r.State)
			}
		}
		events := verify(t, s)
		for _, one := range list {
			p.acknowledged(events[one.session], one.acked)
			if one.session != "" && len(one.acked) == 0 {
				t.Logf("session %s was told of nothing", one.session)
			}
		}
		if _, _, err := s.Row(context.Background(), store.Runs, "none"); err != nil {
			t.Error(err)
		}
	}
}
