package scripttest

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local function is(r, ok, code, by, out)
			assert(r.ok == ok and r.code == code and r.ended_by == by, std.json.encode(r))
			assert(out == nil or r.stdout == out, r.stdout)
			assert(r.killed ~= nil and r.timed_out ~= nil and r.truncated ~= nil and r.stderr ~= nil)
			return r
		end
		is(sh.exec("echo hi; echo oops >&2"), true, 0, "exit", "hi\n")
		assert(sh.exec("echo oops >&2").stderr == "oops\n")
		is(sh.exec("exit 3"), true, 3, "exit")
		is(sh.exec("kill -TERM $$"), true, -1, "signal")
		is(sh.exec({"printf", "%s|", "a b", "$HOME", "*"}), true, 0, "exit", "a b|$HOME|*|")
		is(sh.exec("cat", {stdin = "in\0put"}), true, 0, "exit", "in\0put")
		is(sh.exec("cat"), true, 0, "exit", "") -- stdin is empty, not inherited
		is(sh.exec("pwd"), true, 0, "exit", std.env.project_root() .. "\n")
		std.fs.mkdir("sub")
		is(sh.exec("pwd", {cwd = "sub"}), true, 0, "exit", std.env.project_root() .. "/sub\n")
		is(sh.exec("pwd", {cwd = "/"}), true, 0, "exit", "/\n")
		local r = is(sh.exec("echo partial; echo err >&2; sleep 60", {timeout = 0.3}), false, -1, "timeout", "partial\n")
		assert(r.timed_out and r.error == "timeout after 300ms" and r.stderr == "err\n")
		r = is(sh.exec("yes", {max_output = 1000}), false, -1, "output")
		assert(r.truncated and #r.stdout == 1000 and r.error:find("max_output"))
		assert(not sh.exec("printf 12345", {max_output = 5}).truncated)
		-- a background child that holds the pipe does not hold the call
		local secs = std.time.measure(function() is(sh.exec("echo x; sleep 20 &"), true, 0, "exit", "x\n") end)
		assert(secs < 5, secs)
		r = sh.exec({"/no/such/program"})
		assert(not r.ok and r.kind == "not_found" and r.timed_out == false and r.code == -1 and r.stdout == "" and r.ended_by == nil)
		assert(not sh.exec("true", {cwd = "none"}).ok)
		assert(sh.kill("nobody") == false)
	`)
	for src, want := range map[string]string{
		`sh.exec({})`: "empty list", `sh.exec({"a", 1})`: "command[2]", `sh.exec("x", {timeout = "5"})`: "opts.timeout: got string, want number",
		`sh.exec("x", {timeout = 0})`: "opts.timeout", `sh.exec("x", {env = {A = 1}})`: "opts.env.A", `sh.exec("x", {dir = "/"})`: `unknown option "dir"`,
		`sh.exec("x", {max_output = 0})`: "opts.max_output", `sh.exec(5)`: "command",
	} {
		w.fails(src, want)
	}
}

func TestATimeoutEndsGrandchildrenToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local r = sh.exec("(sleep 60 & echo $! > pid; setsid sleep 60 & wait)", {timeout = 0.4})
		assert(r.timed_out)
	`)
	b, err := os.ReadFile(filepath.Join(w.dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("process %d lives", pid)
	}
}

func TestALabelIsKilledFromAnotherTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local victim = std.task.spawn(function() return sh.exec("echo started; sleep 60", {label = "dev"}) end)
		std.time.sleep(0.3)
		assert(sh.kill("dev") == true)
		local r = victim:join()
		assert(r.ok and r.killed and r.code == -1 and r.ended_by == "signal" and r.stdout == "started\n", std.json.encode(r))
		assert(sh.kill("dev") == false)
	`)
}

func TestTheRunsEndEndsItsCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := w.runIn(ctx, `sh.exec("echo $$ > pid; sleep 60")`)
	if err == nil || time.Since(start) > 3*time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
}

func TestACommandSeesOnlyWhatItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local env = sh.exec("env").stdout
		for _, name in ipairs{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GITHUB_TOKEN", "CUSTOM_SETTING", "LC_SECRET"} do
			assert(not env:find(name, 1, true), env)
		end
		assert(not env:find("` + canary + `", 1, true))
		for _, name in ipairs{"PATH=", "HOME=/home/x", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "ASHLAR_PROC="} do assert(env:find(name, 1, true), name) end
		env = sh.exec("env", {env = {OPENAI_API_KEY = "named", CUSTOM_SETTING = "too", HOME = "/other"}}).stdout
		assert(env:find("OPENAI_API_KEY=named", 1, true) and env:find("CUSTOM_SETTING=too", 1, true) and env:find("HOME=/other", 1, true))
	`)
	w.fails(`sh.exec("true", {env = {["A=B"] = "x"}})`, `opts.env: "A=B"`)
	w.fails(`sh.exec("true", {env = {A = "x\0y"}})`, "opts.env")
}

func TestRawOutputIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local r = sh.exec([[printf 'a\377b\342\202']])
		assert(r.stdout == "a\239\191\189b\239\191\189" and r.sanitised == true and r.stdout_raw == "raw0" and r.stderr_raw == nil)
		r = sh.exec([[printf '\377]] .. "` + canary + `" .. [[']])
		assert(r.sanitised and r.stdout_raw == nil) -- raw bytes that hold a secret are not kept
	`)
	if len(w.kept) != 1 || w.kept["raw0"] != "a\xffb\xe2\x82" {
		t.Errorf("kept %q", w.kept)
	}
}
