package crash

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/stdlib/llm/llmtest"
)

// statementArg makes the test binary a host that ends after a statement of the store:
// statementArg SCRIPT NUMBER, where 0 lets it run to its end and print how many they were.
const statementArg = "crash-statement"

// stoppedCode is how a host ends that was stopped.
const stoppedCode = 137

// spending is a session with a budget and a child of it, each with beats and tools. Every
// seq that it was told of it prints, with the session's id, before it goes on.
const spending = `
local knl, adapter = require("knl"), require("knl_adapter")
local function tool(line)
  return { description = "d", handler = function(input)
    local f = io.open("ran", "a") f:write(input.id, "\n") f:close()
    return { id = input.id, text = ("t"):rep(400) }
  end }
end
local dev = knl.device({ llm = adapter.port({}):open({ max_tokens = 100 }), tools = { one = tool(), two = tool() } })
local function work(s, word, beats)
  local function say(kind, data) print("A " .. s:id() .. " " .. s:append({ kind = kind, data = data })) end
  say("msg_user", { content = word })
  for _ = 1, beats do
    local o = knl.beat(s, dev)
    if o.status ~= "ok" then error(std.json.encode(o.detail or o.kind or o.status)) end
    say("note", { text = ("x"):rep(300) })
  end
end
local s = knl.open({ owner = "crash", budget = { beats = 20, tokens = 100000, tool_calls = 30, units = 9 }, meta = { job = "j" } })
work(s, "root", 2)
assert(s:reserve({ units = 4 })) assert(not s:reserve({ units = 6 })) s:spend({ units = 2 })
local child = knl.open({ parent = s, budget = { from_parent = { beats = 5, tokens = 20000, tool_calls = 9 } } })
work(child, "child", 1)
child:close("closed")
work(s, "again", 1)
`

// beStopped runs a script and ends the process after a statement of the store.
func beStopped(script, number string) int {
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		panic(err)
	}
	var last int64
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Stdout: os.Stdout, Stderr: os.Stderr, Statement: func(n int64) {
		last = n
		if n == at {
			os.Exit(stoppedCode)
		}
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := ws.Prepare(ashlar.Task{Script: script, Exit: os.Exit})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	result := r.Execute(context.Background())
	if result.Err != nil {
		fmt.Fprintln(os.Stderr, "error:", result.Err)
	}
	if err := ws.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	if at == 0 {
		fmt.Println("N", last)
	}
	return result.Code()
}

// twoTools asks for two tools behind a message of the user, and answers behind their
// results. The ids of its calls follow from the session and the length of what it reads.
func twoTools() llmtest.Reply {
	return llmtest.Func(func(request map[string]any) llmtest.Reply {
		messages, _ := request["messages"].([]any)
		first, _ := messages[0].(map[string]any)
		last, _ := messages[len(messages)-1].(map[string]any)
		if last["content"] == "stop now" {
			return llmtest.Text("stopped")
		}
		var calls []llmtest.Call
		for i, name := range []string{"one", "two"} {
			id := fmt.Sprintf("%v-%d-%d", first["content"], len(messages), i)
			calls = append(calls, llmtest.Call{ID: id, Name: name, Args: fmt.Sprintf(`{"id":%q}`, id)})
		}
		return llmtest.Calls(calls...)
	})
}

// statementTime is what all the crashes together may take; the step follows from it.
const statementTime = 45 * time.Second

func TestACrashAfterAnyStatementLosesNothing(t *testing.T) {
	p := newPlace(t)
	srv := llmtest.New(t, twoTools())
	all := p.endedAt(srv.URL(), 0)
	if all.statements < 100 {
		t.Fatalf("only %d statements were counted", all.statements)
	}
	resumed := 0
	crash := func(at int64) {
		p := newPlace(t)
		s := p.endedAt(srv.URL(), at)
		if s.code != stoppedCode {
			t.Fatalf("statement %d: exit %d: %s", at, s.code, s.stderr)
		}
		resumed += p.heldAfter(at, s.acked)
		if t.Failed() {
			t.Fatalf("statement %d of %d", at, all.statements)
		}
	}
	// What a crash takes here is measured by four of them.
	began := time.Now()
	for i := range int64(4) {
		crash(1 + all.statements*i/4)
	}
	one := time.Since(began) / 4
	step := 1 + int64(time.Duration(all.statements)*one/statementTime)
	if os.Getenv("ASHLAR_CRASH") == "long" {
		step = 1
	}
	began = time.Now()
	for at := int64(1); at <= all.statements; at += step {
		crash(at)
	}
	if resumed == 0 {
		t.Error("no session was ever resumed")
	}
	t.Logf("%d statements, one in %d, %d sessions resumed, %v", all.statements, step, resumed, time.Since(began).Round(time.Second))
}

// stop is how a host ended, and what it had been told by then.
type stop struct {
	code       int
	stderr     string
	acked      map[string][]int64
	statements int64
}

func (p *place) endedAt(model string, at int64) stop {
	p.t.Helper()
	p.env = []string{"ASHLAR_BASE_URL=" + model, "ASHLAR_MODEL=openai/scripted-1", "OPENAI_API_KEY=sk-crash-0123456789abcdef"}
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := p.command(self, statementArg, p.script(spending), strconv.FormatInt(at, 10))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	limit := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		p.t.Fatal(err)
	}
	s := stop{code: cmd.ProcessState.ExitCode(), stderr: stderr.String(), acked: map[string][]int64{}}
	for _, line := range strings.Split(stdout.String(), "\n") {
		switch f := strings.Fields(line); {
		case len(f) == 3 && f[0] == "A":
			seq, err := strconv.ParseInt(f[2], 10, 64)
			if err != nil {
				p.t.Errorf("the script printed %q", line)
			}
			s.acked[f[1]] = append(s.acked[f[1]], seq)
		case len(f) == 2 && f[0] == "N":
			s.statements, _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	if at == 0 && s.code != 0 {
		p.t.Fatalf("exit %d: %s", s.code, s.stderr)
	}
	return s
}

// heldAfter looks at what a host left that was stopped, takes up every session that is
// open, looks again, and says how many they were.
func (p *place) heldAfter(at int64, acked map[string][]int64) (resumed int) {
	p.t.Helper()
	ctx := context.Background()
	ws, err := ashlar.Open(ctx, ashlar.Options{Project: p.dir, Environ: p.command("").Env})
	if err != nil {
		p.t.Fatal(err)
	}
	defer ws.Close()
	s, err := ws.Store(ctx)
	if err != nil {
		p.t.Fatalf("statement %d: the log does not open: %v", at, err)
	}
	p.verified(ws)
	events := verify(p.t, s)
	for id, seqs := range acked {
		p.acknowledged(events[id], seqs)
	}
	p.endedOrLost(ws)
	again := filepath.Join(p.dir, "again.lua")
	if err := os.WriteFile(again, []byte(resuming), 0o644); err != nil {
		p.t.Fatal(err)
	}
	for id, list := range events {
		if list[0].Kind != event.SessionOpened || slices.ContainsFunc(list, func(e event.Event) bool { return e.Kind == event.SessionClosed }) {
			continue
		}
		resumed++
		r, err := ws.Prepare(ashlar.Task{Script: again, Prompt: &id})
		if err != nil {
			p.t.Fatal(err)
		}
		if result := r.Execute(ctx); result.Err != nil || result.Value != "resumed" {
			p.t.Errorf("statement %d: session %s does not resume: %v %v", at, id, result.Value, result.Err)
		}
	}
	p.verified(ws)
	for _, list := range verify(p.t, s) {
		if list[0].Kind == event.SessionOpened {
			p.answered(list)
		}
	}
	p.ranOnce()
	return resumed
}

// verified is `ashlar log verify`.
func (p *place) verified(ws *ashlar.Workspace) {
	p.t.Helper()
	ctx := context.Background()
	l, err := ws.Log(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := l.Verify(ctx, nil, false)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range r.Faults {
		p.t.Errorf("log verify: %s", f)
	}
}

// endedOrLost holds every run of a host that was stopped to one of the two.
func (p *place) endedOrLost(ws *ashlar.Workspace) {
	p.t.Helper()
	ctx := context.Background()
	ledger, err := ws.Runs(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := ledger.List(ctx, "", store.MaxPage)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range rows {
		if r.State != run.Lost && r.State != run.Completed {
			p.t.Errorf("run %s is %s", r.ID, r.State)
		}
	}
}
