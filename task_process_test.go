package ashlar_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gone waits until the processes whose ids a command left in files have ended.
func (r *rig) gone(files ...string) {
	r.t.Helper()
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(r.ws.Project(), name))
		if err != nil {
			r.t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			r.t.Fatal(err)
		}
		for limit := time.Now().Add(5 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(limit) {
				r.t.Errorf("process %d of %s lives", pid, name)
				break
			}
		}
	}
}

// Whatever ends a task, the command that it waits for ends, with its grandchildren.
func TestCommandsEndWithTheirTask(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"abort": `
local h = T.spawn(function() command() end)
started() h:abort()
assert(not pcall(h.join, h))`,
		"scope cancel": `
T.scope(function(s) local h = s:spawn(function() told = fails(command).message end) started() s:cancel() end)
eq(told, "task cancelled")`,
		"timeout": `
local e = fails(T.with_timeout, 10000, function(s)
  s:spawn(function() told = fails(command).message end)
  started()
  local e = fails(T.with_timeout, 10, function() T.sleep(1e6) end)
  eq(e.kind, "timeout")
  s:token():cancel() T.checkpoint()
end)
eq(e.kind, "cancelled") eq(told, "task cancelled")`,
		"timeout without grace": `
local e = fails(T.with_timeout, 1500, command, { grace_ms = 0 })
eq(e.kind, "timeout") started()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.ok(`
local T, told = std.task
local function command() sh.exec("(sleep 60 & echo $! > a; setsid sleep 60 & echo $! > b; wait)", { timeout = 50 }) end
local function started() while not (std.fs.exists("b") and #std.fs.read("b") > 1) do T.sleep(5) end end
` + src)
			r.gone("a", "b")
		})
	}
}

func TestRequestsEndWithTheirTask(t *testing.T) {
	t.Parallel()
	asked, left := make(chan bool, 1), make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		asked <- true
		<-q.Context().Done()
		left <- true
	}))
	defer server.Close()
	r := newRig(t)
	r.ok(`
local e = fails(std.task.with_timeout, 300, function() http.request("` + server.URL + `", { timeout = 60 }) end)
eq(e.kind, "timeout")`)
	<-asked
	select {
	case <-left:
	case <-time.After(5 * time.Second):
		t.Error("the server still waits for its client")
	}
}

// A failure that nobody joined reaches the log that people read.
func TestAFailureNobodyJoinedIsSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(`std.task.spawn(function() error("lost in the dark", 0) end, { name = "worker" }) std.task.sleep(5)`)
	if !strings.Contains(r.stderr.String(), "lost in the dark") || !strings.Contains(r.stderr.String(), "worker") {
		t.Errorf("stderr: %s", r.stderr)
	}
}
