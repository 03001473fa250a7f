package task_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/stdlib/task"
	"ashlar/vm"
	"ashlar/vm/lua"
)

type clock struct{}

func (clock) Now() time.Time { return time.Now() }
func (clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// logbook keeps what was logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) log(level, msg string, fields map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprint(level, " ", msg, " ", fields))
}

func run(tb testing.TB, src string) (vm.Value, *logbook, error) {
	tb.Helper()
	book := &logbook{}
	host := &vm.Host{
		Script: "test", Clock: clock{}, Rand: strings.NewReader("12345678"), Stdin: strings.NewReader(""),
		Stdout: io.Discard, Stderr: io.Discard, Redact: func(s string) string { return s }, Log: book.log,
	}
	host.Modules = []*vm.Module{task.Module(host)}
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v, err := e.Run(ctx, vm.Chunk{Name: "test.lua", Source: []byte(src)})
	if n := e.Close(ctx); n > 0 {
		tb.Fatalf("%d tasks were abandoned", n)
	}
	return v, book, err
}

func TestTasks(t *testing.T) {
	for name, src := range map[string]string{
		"join gives every result by reference": `
			local made = {}
			local a, b = std.task.spawn(function() made.x = 1 return made, function() return 2 end end):join()
			assert(a == made and b() == 2)`,
		"join raises what was raised": `
			local h = std.task.spawn(function() error({code = 7}) end)
			local ok, err = pcall(h.join, h)
			assert(not ok and err.code == 7)
			local h = std.task.spawn(function() error("text", 0) end)
			local ok, err = pcall(h.join, h)
			assert(not ok and err == "text", err)`,
		"join once": `
			local h = std.task.spawn(function() end)
			h:join()
			local ok, err = pcall(h.join, h)
			assert(not ok and err:match("task already joined"), err)`,
		"abort ends a loop": `
			local h = std.task.spawn(function() while true do std.task.sleep(1) end end)
			std.task.sleep(5)
			h:abort()
			local ok, err = pcall(h.join, h)
			assert(not ok and err:match("task aborted"), err)
			assert(h:is_finished())`,
		"abort before the begin": `
			local ran = false
			local h = std.task.spawn(function() ran = true end)
			h:abort()
			assert(not pcall(h.join, h) and not ran)`,
		"handles": `
			local h = std.task.spawn(function() std.task.sleep(30) end, {name = "n", driver = "coroutine"})
			assert(h.id == "t1" and h.name == "n" and not h:is_finished())
			h:join()
			assert(h:is_finished() and h:elapsed() >= 30 and h:elapsed() < 500)
			assert(std.task.spawn(function() end).name == "t2")`,
		"current": `
			assert(std.task.current() == nil)
			local c = std.task.spawn(function() return std.task.current() end, {name = "me"}):join()
			assert(c.id == "t1" and c.name == "me" and c.cancelled == false)`,
		"sleeps overlap": `
			local began, hs = os.clock(), {}
			for i = 1, 20 do hs[i] = std.task.spawn(function() std.task.sleep(50) end) end
			for _, h in ipairs(hs) do h:join() end
			assert(os.clock() - began < 0.5)`,
		"code between syscalls is atomic": `
			local n, hs = 0, {}
			for i = 1, 50 do
				hs[i] = std.task.spawn(function()
					for _ = 1, 20 do
						local before = n
						for _ = 1, 50 do end
						n = before + 1
						std.task.sleep(0)
					end
				end)
			end
			for _, h in ipairs(hs) do h:join() end
			assert(n == 1000, n)`,
		"spawns begin in order": `
			local order, hs = {}, {}
			for i = 1, 50 do hs[i] = std.task.spawn(function() order[#order + 1] = i end) end
			for _, h in ipairs(hs) do h:join() end
			for i = 1, 50 do assert(order[i] == i) end`,
		"a sleep inside pcall inside a coroutine": `
			local h = std.task.spawn(function()
				return coroutine.wrap(function() return select(2, pcall(function() std.task.sleep(1) return "ok" end)) end)()
			end)
			assert(h:join() == "ok")`,
		"options are strict": `
			local function refused(what, ...)
				local ok, err = pcall(std.task.spawn, ...)
				assert(not ok and err:match(what), err)
			end
			refused("unknown option \"nam\"", print, {nam = "x"})
			refused("want string", print, {name = 1})
			refused("unknown driver", print, {driver = "thread"})
			refused("want function", "x")
			assert(not pcall(std.task.sleep, math.huge) and not pcall(std.task.sleep, 1e20) and not pcall(std.task.sleep, -1))`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, book, err := run(t, src); err != nil {
				t.Error(err)
			} else if len(book.lines) > 0 {
				t.Errorf("logged %q", book.lines)
			}
		})
	}
}

func TestAnErrorNobodyJoinedIsLogged(t *testing.T) {
	_, book, err := run(t, `
		std.task.spawn(function() error("lost", 0) end, {name = "worker"})
		std.task.spawn(function() std.task.sleep(1e6) end)
		std.task.sleep(5)`)
	if err != nil {
		t.Fatal(err)
	}
	if len(book.lines) != 1 || !strings.Contains(book.lines[0], "lost") || !strings.Contains(book.lines[0], "worker") {
		t.Errorf("logged %q, want one line that names lost and worker", book.lines)
	}
}

func TestExitInATaskEndsTheRun(t *testing.T) {
	_, _, err := run(t, `
		std.task.spawn(function() pcall(os.exit, 3) end)
		while true do pcall(std.task.sleep, 1e6) end`)
	var exit *vm.Exit
	if !errors.As(err, &exit) || exit.Code != 3 {
		t.Errorf("ended with %v, want exit 3", err)
	}
}

// BenchmarkThousandTasks is a thousand tasks that sleep 50 ms each, spawned and
// joined.
func BenchmarkThousandTasks(b *testing.B) {
	for b.Loop() {
		if _, _, err := run(b, `
			local hs = {}
			for i = 1, 1000 do hs[i] = std.task.spawn(function() return pcall(std.task.sleep, 50) end) end
			for i = 1, 1000 do assert(hs[i]:join()) end`); err != nil {
			b.Fatal(err)
		}
	}
}
