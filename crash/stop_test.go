package crash

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"ashlar/kernel/run"
	"ashlar/vm"
)

const (
	stopDeadline = 300 * time.Millisecond
	stopGrace    = time.Second // after the deadline the process is gone
	stopHeap     = 256 << 20
)

// endless are scripts that only their deadline ends, or an error of their own.
var endless = map[string]string{
	"loop":              `while true do end`,
	"loop in pcall":     `while true do pcall(function() while true do end end) end`,
	"loop in coroutine": `while true do pcall(coroutine.wrap(function() while true do end end)) end`,
	"loop in sort":      `table.sort({3, 2, 1}, function() while true do end end)`,
	"loop in gsub":      `("aaa"):gsub("a", function() while true do end end)`,
	"loop in a task":    `std.task.spawn(function() while true do end end) std.task.sleep(1e6)`,
	"string.find":       `while true do pcall(string.find, ("a"):rep(3000), ("a?"):rep(3000) .. ("a"):rep(3000)) end`,
	"string.match":      `return (("a"):rep(30000)):match(".-.-.-.-b")`,
	"string.format":     `while true do pcall(string.format, ("%99.99f"):rep(1e5), unpack({})) local s = ("x"):rep(6e7) pcall(string.format, "%s%s", s, s) end`,
	"table.concat":      `local s, t = ("x"):rep(6e7), {} for i = 1, 1e4 do t[i] = s end while true do pcall(table.concat, t, s) end`,
	"string.rep":        `while true do pcall(string.rep, "x", 1e9) pcall(string.rep, ("y"):rep(6e7), 1e6) end`,
	"sort without cmp":  `local t = {} for i = 1, 3e6 do t[i] = (i * 7919) % 1000003 end while true do table.sort(t) end`,
	"task.sleep":        `std.task.sleep(60000)`,
	"task.sleep pcall":  `while true do pcall(std.task.sleep, 60000) end`,
	"time.sleep":        `std.time.sleep(60)`,
	"sh.exec":           `sh.exec("sleep 61.25", {timeout = 600})`,
	"sh.exec pcall":     `while true do pcall(sh.exec, "sleep 61.25", {timeout = 600}) end`,
	"sh.exec setsid":    `sh.exec("setsid sleep 61.25 & (setsid sh -c 'sleep 61.25 & sleep 61.25' &) ; trap '' TERM INT; sleep 61.25", {timeout = 600})`,
	"print":             `while true do print(("x"):rep(1000)) end`,
	"journal":           `while true do std.time.now() end`,
	"append":            `local s = knl.open({}) while true do s:append({kind = "x"}) end`,
	"spawn tasks":       `while true do std.task.spawn(function() std.task.sleep(1e6) end) end`,
	"coroutines":        `local t = {} while true do t[#t % 1000 + 1] = coroutine.create(function() coroutine.yield() end) coroutine.resume(t[#t]) end`,
}

// growing are scripts that take memory for ever.
var growing = map[string]string{
	"concat":       `local s = "x" while true do s = s .. s end`,
	"concat pcall": `local t = {} while true do local s = "x" pcall(function() while true do s = s .. s end end) t[#t + 1] = s end`,
	"concat many":  `local s = ("x"):rep(6e7) while true do local t = s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s .. s end`,
	"concat keep":  `local s, t = ("x"):rep(3e7), {} while true do t[#t + 1] = s .. #t end`,
	"table":        `local t = {} while true do t[#t + 1] = {#t} end`,
	"table pcall":  `local t = {} while true do pcall(function() while true do t[#t + 1] = {#t} end end) end`,
	"numbers":      `local t = {} local i = 0 while true do i = i + 1 t[i] = i end`,
	"hash":         `local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i end`,
	"sparse":       `local t = {} for i = 1, 100 do t[i] = {} t[i][6e7] = 1 end`,
	"rep keep":     `local t = {} while true do t[#t + 1] = ("x"):rep(6e7) end`,
	"closures":     `local f = function() end while true do local g = f f = function() return g end end`,
	"deep call":    `local function f(...) return f(1, ...) end return f()`,
	"deep pcall":   `local function f() return pcall(f) end while true do f() end`,
	"gsub grow":    `local t = {} while true do t[#t + 1] = (("x"):rep(1e6)):gsub("x", "yy") end`,
	"json":         `local t = {} for i = 1, 1e5 do t[i] = {i} end local k = {} while true do k[#k + 1] = std.json.encode(t) end`,
	"tasks":        `while true do std.task.spawn(function() local t = {} for i = 1, 1e4 do t[i] = {} end std.task.sleep(1e6) end) end`,
	"sh output":    `local t = {} while true do t[#t + 1] = sh.exec("head -c 9000000 /dev/zero | tr '\\0' x").stdout end`,
}

func TestEveryScriptEndsAtItsDeadline(t *testing.T) {
	for name, src := range endless {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			e := p.run(binary, "run", "-q", "-s", p.script(src), "--deadline", stopDeadline.String())
			t.Logf("exit %d after %v, %d MiB", e.code, e.took.Round(time.Millisecond), e.maxRSS>>20)
			if e.took > stopDeadline+stopGrace {
				t.Errorf("%v", e)
			}
			p.stopped(e, 2<<30)
		})
	}
}

// TestADeadlineHoldsWhereNobodyReads fills the pipe of standard output.
func TestADeadlineHoldsWhereNobodyReads(t *testing.T) {
	p := newPlace(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := p.command(binary, "run", "-q", "-s", p.script(endless["print"]), "--deadline", stopDeadline.String())
	cmd.Stdout = w
	e := finish(t, cmd)
	w.Close()
	if e.took > stopDeadline+stopGrace {
		t.Errorf("%v", e)
	}
	p.stopped(e, 2<<30)
}

// TestMemoryEndsAtItsBound gives the scripts time to reach the bound first.
func TestMemoryEndsAtItsBound(t *testing.T) {
	for name, src := range growing {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.grow(src, stopDeadline, stopHeap)
			p.grow(src, 8*time.Second, stopHeap)
		})
	}
	// The bound that holds without a flag. Gigabytes take their time.
	for _, name := range []string{"concat", "concat many", "numbers"} {
		t.Run(name+" 2 GiB", func(t *testing.T) {
			newPlace(t).grow(growing[name], 20*time.Second, 2<<30)
		})
	}
}

func (p *place) grow(src string, deadline time.Duration, heap int64) {
	p.t.Helper()
	e := p.run(os.Args[0], hostArg, p.script(src), deadline.String(), fmt.Sprint(heap))
	p.t.Logf("deadline %v: exit %d after %v, %d MiB", deadline, e.code, e.took.Round(time.Millisecond), e.maxRSS>>20)
	if e.took > deadline+stopGrace {
		p.t.Errorf("deadline %v: %v", deadline, e)
	}
	p.stopped(e, heap)
}

// stopped is what must hold after a script was stopped, or stopped by itself.
// processBytes is what the process takes before any script: half of a small bound is
// not much more. One string that a builtin makes may come on top, between two looks at
// the memory.
const processBytes = 28 << 20

func (p *place) stopped(e ended, heap int64) {
	p.t.Helper()
	if e.code != 3 && (e.code != 1 || e.stderr == "") {
		p.t.Errorf("%v", e)
	}
	if e.code == 1 {
		p.t.Logf("%.300s", e.stderr)
	}
	if e.maxRSS > heap+heap/2+processBytes+vm.MaxStringBytes {
		p.t.Errorf("it took %d MiB, the bound is %d MiB and a half\n%v", e.maxRSS>>20, heap>>20, e)
	}
	p.noneLeft(0, "sleep 61.25", "61.25")
	_, s, rows := p.records()
	verify(p.t, s)
	for _, r := range rows {
		want := run.Failed
		if r.State != want || e.code == 3 && r.StoppedBy == "" {
			p.t.Errorf("run %s is %s, stopped by %q", r.ID, r.State, r.StoppedBy)
		}
	}
	if len(rows) == 0 {
		p.t.Errorf("no run is recorded: %v", e)
	}
}

func TestHostileSourceEndsAtOnce(t *testing.T) {
	for name, src := range map[string]string{
		"14 MB":    strings.Repeat("x = 1\n", 14<<20/6),
		"brackets": "return " + strings.Repeat("(", 1_000_000),
		"loaded":   `return load(("x = 1\n"):rep(2.3e6))() or load(("("):rep(1e6))`,
		"in pcall": `local s = "return " .. ("("):rep(1e6) assert(select(2, pcall(load, s))) error("done")`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			e := p.run(binary, "run", "-q", "-s", p.script(src), "--deadline", stopDeadline.String())
			if e.code != 1 && e.code != 2 && e.code != 3 || e.took > stopDeadline+stopGrace || e.maxRSS > stopHeap {
				t.Errorf("%v", e)
			}
			if strings.Contains(e.stderr, "goroutine ") {
				t.Errorf("the host fell: %v", e)
			}
			if _, err := os.Stat(p.home); err != nil {
				return // refused before anything was recorded
			}
			_, s, _ := p.records()
			verify(t, s)
		})
	}
}
