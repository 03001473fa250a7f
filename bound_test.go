package ashlar_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar"
)

// Scenario 120 (D7) and 121 (D8).
func TestAnAbortedCommandLeavesNothingAndOutputIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.result(`
local task = std.task.spawn(function() return sh.exec("sh -c 'sleep 30; echo > grandchild' & sh -c 'sleep 30; echo > other'") end)
std.time.sleep(0.2)
task:abort()
local t0 = std.time.now()
local out = sh.exec("yes | head -c 3000000", { max_output = 1000 })
local late = sh.exec("echo kept; sleep 30", { timeout = 0.3 })
local bg = sh.exec("sleep 20 & echo done")
return { bytes = #out.stdout, truncated = out.truncated, late = late.stdout, by = late.ended_by, timed_out = late.timed_out, bg = bg.stdout, took = std.time.now() - t0 }`)
	if num(m, "bytes") > 1000 || m["truncated"] != true || str(m, "late") != "kept\n" || str(m, "by") != "timeout" || m["timed_out"] != true || str(m, "bg") != "done\n" {
		t.Errorf("%v", m)
	}
	if took, _ := m["took"].(float64); took > 8 {
		t.Errorf("it took %v s", took)
	}
}

// Scenario 119 (D6): a timeout has a fraction, and nonsense is refused.
func TestTimeoutsAreNumbersWithAFraction(t *testing.T) {
	t.Parallel()
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}))
	defer slow.Close()
	r := newRig(t)
	took, _ := r.result(`
local t0 = std.time.now()
eq(sh.exec("sleep 5", { timeout = 0.2 }).timed_out, true)
eq(fails(sh.exec, "true", { timeout = "soon" }).kind, "validation")
eq(fails(sh.exec, "true", { timeout = 0 }).kind, "validation")
eq(fails(http.request, "` + slow.URL + `", { timeout = 0.2 }).kind, "timeout")
local good, e = pcall(llm.send, { model = "m" }, { base_url = "` + slow.URL + `", timeout = 0.2, max_retries = 0 })
eq(good, false) eq(knl.error(e).kind, "timeout")
eq(fails(llm.send, { model = "m" }, { base_url = "` + slow.URL + `", timeout = -1 }).kind, "validation")
return { took = std.time.now() - t0 }`)["took"].(float64)
	if took > 3 {
		t.Errorf("it took %v s", took)
	}
}

// Scenario 132 (D19): .env is read before anything that it may set.
func TestDotEnvIsReadFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".env"), []byte("GREETING=hello\nASHLAR_HOME=/nowhere\nASHLAR_MODEL=evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var notices []string
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Environ: []string{"ASHLAR_HOME=" + filepath.Join(dir, "h")},
		Notice: func(s string) { notices = append(notices, s) }})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	script := filepath.Join(dir, "a.lua")
	if err := os.WriteFile(script, []byte(`return std.env.get("GREETING") .. tostring(std.env.get("ASHLAR_MODEL"))`), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := ws.Prepare(ashlar.Task{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	if res := run.Execute(context.Background()); res.Value != "hellonil" {
		t.Errorf("%v %v", res.Value, res.Err)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "ASHLAR_HOME, ASHLAR_MODEL") {
		t.Errorf("%q", notices)
	}
}

// Scenario 134 (D21).
func TestOnlyDeferDefers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if res := r.script(`error("job.defer: not really")`); res.Status != "failed" || res.Code() != ashlar.ExitFailed {
		t.Errorf("raised text: %s %d", res.Status, res.Code())
	}
	if res := r.script(`pcall(job.defer, "later") return "went on"`); res.Status != "deferred" || res.Code() != ashlar.ExitDeferred {
		t.Errorf("job.defer under pcall: %s %d %v", res.Status, res.Code(), res.Err)
	}
}

// Scenario 135 (D22): a signal closes the sessions, waits for no grace, and the code
// is 128+N.
func TestASignalClosesTheSessionsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	script := filepath.Join(r.ws.Project(), "wait.lua")
	if err := os.WriteFile(script, []byte(prelude+`knl.session({}, function(s) s:append({ kind = "ready" }) std.time.sleep(60) end)`), 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := r.ws.Prepare(ashlar.Task{Script: script})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		time.Sleep(300 * time.Millisecond)
		cancel(&ashlar.Signal{Number: 15})
	}()
	start := time.Now()
	res := run.Execute(ctx)
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if res.Code() != 143 || res.Status != "cancelled" {
		t.Errorf("%d %s %v", res.Code(), res.Status, res.Err)
	}
	e := r.events(r.only(res))
	if d := dataOf(t, e[len(e)-1]); kinds(e) != "session_opened ready session_closed" || str(d, "reason") != "error" || str(d, "detail") != "signal" {
		t.Errorf("%s %v", kinds(e), d)
	}
}

// Scenario 146 (D33): a callback may wait, and a line is bounded.
func TestAStreamsCallbackMayWaitAndItsLinesAreBounded(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if req.URL.Path == "/long" {
			fmt.Fprint(w, "data: ")
			line := strings.Repeat("x", 1<<20)
			for range 18 {
				if _, err := fmt.Fprint(w, line); err != nil {
					return
				}
			}
			return
		}
		fmt.Fprint(w, ": hello\r\n\r\ndata: one\r\n\r\ndata: two\n\ndata: last")
	}))
	defer srv.Close()
	r := newRig(t)
	m := r.result(`
local got = {}
local reply = http.request("` + srv.URL + `/sse", { stream = true, on_data = function(data) std.time.sleep(0.01) got[#got + 1] = type(data) == "table" and data.data or data end })
local good, e = pcall(http.request, "` + srv.URL + `/long", { stream = true, on_data = function() end })
local err = good and (e.error or "") or tostring(e)
return { got = got, error = err }`)
	if got := fmt.Sprint(m["got"]); got != "[one two last]" {
		t.Errorf("%s", got)
	}
	if str(m, "error") == "" {
		t.Error("a line of 18 MiB passed")
	}
}
