package task_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/stdlib/task"
	"ashlar/vm"
	"ashlar/vm/lua"
)

// tape is a journal that records a run, or answers another from its record.
type tape struct {
	mu      sync.Mutex
	entries map[string]vm.Entry
	turns   []int
	replay  bool
	missing []string
}

func key(task int, k int64) string { return fmt.Sprint(task, "/", k) }

func (t *tape) Record(e vm.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.replay {
		t.missing = append(t.missing, fmt.Sprint(key(e.Task, e.K), " ", e.Name))
		return
	}
	t.entries[key(e.Task, e.K)] = e
}

func (t *tape) Handover(_ int64, task int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, task)
}

// again answers from a tape and gives the lock in its order.
type again struct {
	*tape
	order []int
}

func (a again) Answer(now vm.Entry) (vm.Entry, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.entries[key(now.Task, now.K)]
	if ok && e.Name != now.Name {
		return e, false, fmt.Errorf("task %d asks for %s, the record has %s", now.Task, now.Name, e.Name)
	}
	return e, ok, nil
}

func (a again) Turn(n int64) (int, bool) {
	if int(n) > len(a.order) {
		return 0, true
	}
	return a.order[n-1], true
}

func (again) Idle(int64, []int, int) {}

func runOn(t *testing.T, journal vm.Journal, src string) vm.Value {
	t.Helper()
	book := &logbook{}
	host := &vm.Host{
		Script: "test", Clock: clock{}, Rand: strings.NewReader("12345678"), Stdin: strings.NewReader(""), Journal: journal,
		Stdout: io.Discard, Stderr: io.Discard, Redact: func(s string) string { return s }, Log: book.log,
	}
	host.Modules = []*vm.Module{task.Module(host)}
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	v, err := e.Run(ctx, vm.Chunk{Name: "test.lua", Source: []byte(helpers + src)})
	e.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What the clock decided is in the journal: a run that is answered from it, in which
// nothing takes any time, ends as the recorded one did.
func TestAReplayDecidesWhatTheRunDecided(t *testing.T) {
	t.Parallel()
	const src = `
		local out = {}
		local function note(...) out[#out + 1] = table.concat({ ... }, " ") end
		note(fails(T.with_timeout, 30, function() T.sleep(1e6) end))
		note(fails(T.with_timeout, 30, function(s) s:spawn(function() note("child", (fails(T.sleep, 1e6))) end) return 1 end))
		note("in time", T.with_timeout(60000, function() T.sleep(1) return "v" end))
		T.scope(function(s)
			local n = 0
			local h = s:spawn(function() while true do n = n + 1 T.yield() end end, { driver = "coroutine" })
			local c = s:spawn(function() while not T.cancel_token():is_cancelled() do coroutine.yield(1) end note("seen") T.checkpoint() end, { driver = "coroutine" })
			T.sleep(10)
			s:cancel()
			note(fails(h.join, h)) note(n)
			note(fails(c.join, c))
			note(tostring(h:is_finished()), h:elapsed())
		end)
		return out`
	j := &tape{entries: map[string]vm.Entry{}}
	first := fmt.Sprint(runOn(t, j, src))
	if len(j.entries) == 0 || len(j.turns) == 0 || !strings.Contains(first, "exceeded 30 ms") {
		t.Fatalf("%d entries, %d turns, %s", len(j.entries), len(j.turns), first)
	}
	j.replay = true
	began := time.Now()
	second := fmt.Sprint(runOn(t, again{j, slices.Clone(j.turns)}, src))
	if first != second {
		t.Errorf("the run gave\n%s\nits replay\n%s", first, second)
	}
	if len(j.missing) > 0 {
		t.Errorf("the replay went its own way: %q", j.missing)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the replay took %v", took)
	}
}
