package lua_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ashlar/vm"
	"ashlar/vm/lua"
)

// hostile are scripts that do not end by themselves, or would take minutes.
var hostile = map[string]string{
	"loop":             `while true do end`,
	"loop in pcall":    `while true do pcall(function() while true do end end) end`,
	"pcall of pcall":   `local function f() while true do pcall(f) end end f()`,
	"coroutine":        `coroutine.wrap(function() while true do end end)()`,
	"coroutine pcall":  `while true do pcall(coroutine.wrap(function() while true do end end)) end`,
	"sort":             `table.sort({3, 2, 1}, function(a, b) while true do end end)`,
	"gsub":             `("aaa"):gsub("a", function() while true do end end)`,
	"metamethod":       `local t = setmetatable({}, {__index = function() while true do end end}) return t.x`,
	"find":             `return (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40))`,
	"match":            `return (("a"):rep(3000)):match(".-.-.-.-b")`,
	"gmatch":           `for _ in (("a"):rep(3000)):gmatch(".-.-.-.-b") do end`,
	"gsub pattern":     `return (("a"):rep(3000)):gsub(".-.-.-.-b", "")`,
	"sleep":            `host.sleep(1e9)`,
	"sleep in pcall":   `while true do pcall(host.sleep, 1e9) end`,
	"callback":         `host.call(function() while true do end end)`,
	"waiting callback": `host.call_waiting(function() while true do end end)`,
	"join":             `host.spawn(function() while true do end end):join()`,
	"task sleeps":      `for i = 1, 10 do host.spawn(function() host.sleep(1e9) end) end host.sleep(1e9)`,
	"tostring":         `print(setmetatable({}, {__tostring = function() while true do end end}))`,
	"goto":             `::top:: goto top`,
	"load":             `load(function() while true do end end)`,
	"bridge":           `local t = {} for i = 1, 100 do t = {t, t} end host.echo(t)`,
	"more values":      `local function f(...) return f(1, ...) end return f()`,
	"xpcall handler":   `xpcall(error, function() while true do end end)`,
}

func TestADeadlineStopsEveryScript(t *testing.T) {
	for name, src := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const deadline = 200 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			host, _ := testHost(t)
			began := time.Now()
			_, err := run(ctx, t, host, src)
			if took := time.Since(began); took > deadline+time.Second {
				t.Errorf("took %v", took)
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("ended with %v, want the context's cause", err)
			}
		})
	}
}

// bombs end by themselves, at a bound.
var bombs = map[string]struct{ src, want string }{
	"rep":      {`return ("x"):rep(1e9)`, "resulting string too large"},
	"rep sep":  {`return ("x"):rep(1e6, ("y"):rep(1e6))`, "resulting string too large"},
	"format":   {`local s = ("x"):rep(6e7) return ("%s%s"):format(s, s)`, "resulting string too large"},
	"width":    {`return ("%999999999d"):format(1)`, "too long"},
	"concat":   {`local s, t = ("x"):rep(6e7), {} for i = 1, 9 do t[i] = s end return table.concat(t)`, "resulting string too large"},
	"..":       {`local s = "x" while true do s = s .. s end`, "resulting string too large"},
	".. many":  {`local s = ("x"):rep(6e7) return s .. 1 .. s`, "resulting string too large"},
	"gsub":     {`return (("x"):rep(1e4)):gsub("x", ("y"):rep(1e5))`, "resulting string too large"},
	"unpack":   {`return unpack({}, 1, 1e8)`, "too many results to unpack"},
	"byte":     {`return (("x"):rep(1e7)):byte(1, -1)`, "string slice too long"},
	"pattern":  {`return (("a"):rep(9e4)):find(("a?"):rep(9e4))`, "pattern too complex"},
	"brackets": {`return load(("("):rep(1e6) .. "1" .. (")"):rep(1e6))() or error(select(2, load(("("):rep(1e6))))`, ""},
}

func TestBombsEndAtTheirBound(t *testing.T) {
	for name, bomb := range bombs {
		if bomb.want == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			host, _ := testHost(t)
			_, err := run(ctx, t, host, bomb.src)
			if err == nil || !containsAny(err.Error(), strings.Split(bomb.want, "|")) {
				t.Errorf("got %v, want %q", err, bomb.want)
			}
		})
	}
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

func TestHostileSourceIsRefusedBeforeTheParser(t *testing.T) {
	deep := func(s string) string { return strings.Repeat(s, 1_000_000) }
	for name, src := range map[string]string{
		"14 MB":       strings.Repeat("x = 1\n", 14<<20/6),
		"parens":      "return " + deep("("),
		"braces":      "return " + deep("{"),
		"indexes":     "return " + strings.Repeat("a[", 1_000_000),
		"functions":   strings.Repeat("function f() ", 300_000),
		"blocks":      strings.Repeat("do ", 1_000_000),
		"ifs":         strings.Repeat("if x then ", 300_000),
		"minus":       "return " + deep("- ") + "1",
		"not":         "return " + strings.Repeat("not ", 900_000) + "1",
		"concat":      "return " + deep("a..") + "a",
		"power":       "return " + deep("2^") + "2",
		"sum":         "return 1" + deep("+1"),
		"fields":      "return a" + deep(".b"),
		"calls":       "return a" + deep("()"),
		"text calls":  "return a" + deep(`""`),
		"methods":     "return a" + strings.Repeat(":b()", 900_000),
		"elseif":      "if a then " + strings.Repeat("elseif a then ", 250_000) + "end",
		"and":         "return a" + strings.Repeat(" and a", 600_000),
		"comparisons": "return a" + deep("<a"),
	} {
		t.Run(name, func(t *testing.T) {
			host, _ := testHost(t)
			began := time.Now()
			_, err := run(t.Context(), t, host, src)
			var script *vm.Error
			if !errors.As(err, &script) || script.Kind != "limit" {
				t.Errorf("got %.200v, want an error of kind limit", err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// growing are scripts that take memory until somebody stops them.
var growing = map[string]string{
	"concat":  `local t = {} while true do local s = "x" for i = 1, 25 do s = s .. s end t[#t + 1] = s end`,
	"table":   `local t = {} while true do t[#t + 1] = {#t} end`,
	"sparse":  `local t = {} for i = 1, 100 do t[i] = {} t[i][6e7] = 1 end`,
	"strings": `local t = {} while true do t[#t + 1] = ("x"):rep(1e6) .. #t end`,
}

// TestMemoryIsTheWatchdogs runs each script in a process of its own, as a run does:
// the watchdog interrupts it at a small bound, and ends the process if that is not
// enough.
func TestMemoryIsTheWatchdogs(t *testing.T) {
	if name := os.Getenv("ASHLAR_TEST_GROW"); name != "" {
		grow(t, growing[name])
		return
	}
	for name := range growing {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryIsTheWatchdogs$")
			cmd.Env = append(os.Environ(), "ASHLAR_TEST_GROW="+name)
			began := time.Now()
			out, _ := cmd.CombinedOutput()
			took := time.Since(began)
			if !strings.Contains(string(out), "ended: the process uses") {
				t.Errorf("after %v:\n%.2000s", took, out)
			}
			if took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func grow(t *testing.T, src string) {
	host, _ := testHost(t)
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dog := &vm.Watchdog{Heap: 300 << 20, Interrupt: e.Interrupt, OnStuck: func(cause error) {
		fmt.Println("ended:", cause, "(stuck)")
		os.Exit(3)
	}}
	dog.Start(t.Context())
	defer dog.Stop()
	_, err = e.Run(t.Context(), vm.Chunk{Name: "grow.lua", Source: []byte(src)})
	var heap *vm.HeapError
	if errors.As(err, &heap) {
		fmt.Println("ended:", err)
	}
}
