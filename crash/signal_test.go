package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/stdlib/llm/llmtest"
)

// waiting opens two sessions, starts commands that try to get away, and waits.
const waiting = `
local a, b = knl.open({ owner = "one" }), knl.open({ owner = "two" })
a:append({ kind = "note" })
std.task.spawn(function() sh.exec("setsid sleep TOKEN & (setsid sleep TOKEN &) ; trap '' INT TERM; sleep TOKEN", { timeout = 600 }) end)
std.task.sleep(150)
print("ready")
WAIT
`

// signalled starts a run, waits for its line "ready", sends signals and waits.
func (p *place) signalled(src string, args []string, signals ...syscall.Signal) ended {
	p.t.Helper()
	cmd := p.command(binary, append([]string{"run", "-s", p.script(src)}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	stop := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer stop.Stop()
	var stdout strings.Builder
	r := bufio.NewReader(out)
	line, _ := r.ReadString('\n')
	stdout.WriteString(line)
	began := time.Now()
	for _, s := range signals {
		_ = cmd.Process.Signal(s)
		time.Sleep(5 * time.Millisecond)
	}
	_, _ = r.WriteTo(&stdout)
	err = cmd.Wait()
	e := ended{took: time.Since(began), stdout: stdout.String(), stderr: stderr.String()}
	e.read(err, cmd.ProcessState)
	return e
}

func TestASignalEndsARunInOrder(t *testing.T) {
	waits := map[string]string{
		"sleeping": `std.task.sleep(600000)`,
		"looping":  `while true do pcall(function() while true do end end) end`,
		"in find":  `return (("a"):rep(30000)):match(".-.-.-.-b")`,
		"in sh":    `sh.exec("trap '' INT TERM; sleep TOKEN", {timeout = 600})`,
	}
	for name, wait := range waits {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			t.Run(fmt.Sprintf("%s %v", name, sig), func(t *testing.T) {
				p := newPlace(t)
				token := fmt.Sprintf("5%d.25", os.Getpid())
				src := strings.ReplaceAll(strings.Replace(waiting, "WAIT", wait, 1), "TOKEN", token)
				events := filepath.Join(p.dir, "events.ndjson")
				e := p.signalled(src, []string{"--events", events}, sig)
				if e.code != 128+int(sig) || e.took > time.Second {
					t.Errorf("%v", e)
				}
				p.noneLeft(0, token)
				_, s, rows := p.records()
				all := verify(t, s)
				if len(rows) != 1 || rows[0].State != run.Cancelled || rows[0].StoppedBy != "signal" || len(rows[0].Sessions) != 2 {
					t.Fatalf("rows %+v", rows)
				}
				for _, id := range rows[0].Sessions {
					list := all[id]
					last := list[len(list)-1]
					if d := dataOf(t, last); last.Kind != event.SessionClosed || d["reason"] != "error" || d["detail"] != "signal" {
						t.Errorf("session %s ends with %s %v", id, last.Kind, d)
					}
				}
				lines := ndjson(t, read(t, events))
				if last := lines[len(lines)-1]; last["type"] != "run_finished" || last["stopped_by"] != "signal" || last["status"] != "cancelled" {
					t.Errorf("the last line is %v", last)
				}
			})
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ndjson reads an event stream and checks its frame.
func ndjson(t *testing.T, text string) (lines []map[string]any) {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		t.Errorf("the stream ends within a line: %.200q", text)
	}
	seq := 0.0
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("line %d is no JSON: %v: %.200q", i+1, err, line)
		}
		n, _ := m["seq"].(float64)
		if _, err := time.Parse(time.RFC3339, fmt.Sprint(m["at"])); err != nil || m["v"] != 1.0 || m["run"] == "" || n < seq || m["type"] == nil {
			t.Errorf("line %d: %.300q", i+1, line)
		}
		seq = n
		lines = append(lines, m)
	}
	if len(lines) == 0 || lines[0]["type"] != "run_started" || lines[len(lines)-1]["type"] != "run_finished" {
		t.Errorf("the stream does not begin and end as it must: %.300s … %.300s", text, text[max(0, len(text)-300):])
	}
	return lines
}

func TestASecondSignalEndsAtOnce(t *testing.T) {
	p := newPlace(t)
	token := fmt.Sprintf("6%d.25", os.Getpid())
	src := strings.ReplaceAll(strings.Replace(waiting, "WAIT", `return (("a"):rep(30000)):match(".-.-.-.-b")`, 1), "TOKEN", token)
	e := p.signalled(src, nil, syscall.SIGINT, syscall.SIGINT)
	if e.code != 130 || e.took > 300*time.Millisecond {
		t.Errorf("%v", e)
	}
	p.noneLeft(2*time.Second, token)
	_, s, _ := p.records()
	verify(t, s)
}

func TestJSONIsPrintedOnEveryEnding(t *testing.T) {
	for name, c := range map[string]struct {
		src, deadline string
		code          int
	}{
		"returned": {`return {a = 1}`, "5s", 0},
		"raised":   {`error("no")`, "5s", 1},
		"deadline": {`while true do end`, "200ms", 3},
		"stuck":    {`local t = {} for i = 1, 3e6 do t[i] = (i * 7919) % 1000003 end while true do table.sort(t) end`, "1s", 3},
		"parse":    {`return (`, "5s", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			e := p.run(binary, "run", "-q", "-s", p.script(c.src), "--deadline", c.deadline, "--json")
			var m map[string]any
			if err := json.Unmarshal([]byte(e.stdout), &m); err != nil || e.code != c.code {
				t.Fatalf("%v: %v", err, e)
			}
			if e.code != 0 && m["error"] == nil {
				t.Errorf("no error in %s", e.stdout)
			}
		})
	}
}

// chatty makes many facts.
const chatty = `
local knl, adapter = require("knl"), require("knl_adapter")
local s = knl.open({})
s:append({ kind = "msg_user", data = { content = "hello" } })
local dev = knl.device({ llm = adapter.port({}):open({ max_tokens = 100 }), tools = { t = { description = "d", handler = function() return "r" end } } })
for i = 1, 30 do
  local o = knl.beat(s, dev)
  if o.status ~= "ok" then error(std.json.encode(o.detail or o.status)) end
end
print("printed")
return "answer"
`

func chattyModel(t *testing.T, p *place) {
	n := 0
	srv := llmtest.New(t, llmtest.Func(func(map[string]any) llmtest.Reply {
		n++
		return llmtest.Text(strings.Repeat("word ", 300)).WithCalls(llmtest.Call{ID: fmt.Sprintf("c%d", n), Name: "t", Args: "{}"})
	}))
	p.env = []string{"ASHLAR_BASE_URL=" + srv.URL(), "ASHLAR_MODEL=openai/scripted-1", "OPENAI_API_KEY=sk-crash-0123456789abcdef"}
}

func TestEventsOnStandardOutputAreNDJSONAlone(t *testing.T) {
	p := newPlace(t)
	chattyModel(t, p)
	e := p.run(binary, "run", "-s", p.script(chatty), "--events", "-")
	lines := ndjson(t, e.stdout)
	if e.code != 0 || len(lines) < 100 || !strings.Contains(e.stderr, "printed") {
		t.Errorf("%d lines: %v", len(lines), e)
	}
}

// TestABrokenSinkNeverSlowsARun lets nobody read, or closes the sink.
func TestABrokenSinkNeverSlowsARun(t *testing.T) {
	p := newPlace(t)
	chattyModel(t, p)
	script := p.script(chatty)
	base := p.run(binary, "run", "-q", "-s", script)
	if base.code != 0 {
		t.Fatal(base)
	}
	for name, closed := range map[string]bool{"nobody reads": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			p.t = t
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if closed {
				r.Close()
			}
			cmd := p.command(binary, "run", "-q", "-s", script, "--events", "fd:3")
			cmd.ExtraFiles = []*os.File{w}
			e := finish(t, cmd)
			w.Close()
			limit := 2*base.took + 2*time.Second + 300*time.Millisecond // the flush at the end
			if closed {
				limit -= 2 * time.Second
			}
			if e.code != 0 || !strings.Contains(e.stdout, "answer") || e.took > limit {
				t.Errorf("the base took %v; %v", base.took, e)
			}
		})
	}
	t.Run("full device", func(t *testing.T) {
		p.t = t
		if e := p.run(binary, "run", "-q", "-s", script, "--events", "/dev/full"); e.code != 0 {
			t.Errorf("%v", e)
		}
	})
}

func TestAClosedStandardOutput(t *testing.T) {
	for name, src := range map[string]string{
		"printing":  `local n = 0 while n < 1e5 do print(("x"):rep(1000)) n = n + 1 end return "end"`,
		"returning": `return ("x"):rep(1e6)`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			cmd := p.command(binary, "run", "-q", "-s", p.script(src), "--deadline", "20s")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cmd.Stdout = w
			e := finish(t, cmd)
			w.Close()
			if e.code != 1 || !strings.Contains(e.stderr, "broken pipe") || e.took > 5*time.Second {
				t.Errorf("%v", e)
			}
			_, s, rows := p.records()
			verify(t, s)
			if len(rows) != 1 || rows[0].State == run.Running || rows[0].State == run.Lost {
				t.Errorf("rows %+v; %v", rows, e)
			}
		})
	}
	t.Run("head", func(t *testing.T) {
		p := newPlace(t)
		sh := p.command("sh", "-c", binary+" run -q -s "+p.script(`while true do print("line") end`)+" --deadline 20s | head -n 2")
		if e := finish(t, sh); e.took > 5*time.Second || e.stdout != "line\nline\n" {
			t.Errorf("%v", e)
		}
	})
}
