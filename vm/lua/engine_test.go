package lua_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/vm"
	"ashlar/vm/lua"
)

func TestHelloRuns(t *testing.T) {
	host, out := testHost(t)
	v, err := run(t.Context(), t, host, `print("hello", 1, nil, std.json.null) print("s3cret") return {a = {1, 2}}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "hello\t1\tnil\tnull\n[redacted]\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	if m, ok := v.(map[string]any); !ok || len(m["a"].([]any)) != 2 {
		t.Errorf("returned %#v", v)
	}
}

func TestExitAndFaultCannotBeHeld(t *testing.T) {
	for src, check := range map[string]func(error) bool{
		`while true do pcall(os.exit, 3) end`:                                               func(err error) bool { return exitCode(err) == 3 },
		`pcall(os.exit) return 1`:                                                           func(err error) bool { return exitCode(err) == 0 },
		`pcall(os.exit, false) while true do end`:                                           func(err error) bool { return exitCode(err) == 1 },
		`while true do pcall(host.fault) end`:                                               isFault,
		`coroutine.wrap(function() pcall(host.fault) while true do end end)()`:              isFault,
		`host.spawn(function() host.fault() end) while true do pcall(host.sleep, 1000) end`: isFault,
		`host.call(function() pcall(host.fault) end) while true do end`:                     isFault,
	} {
		host, _ := testHost(t)
		if v, err := run(t.Context(), t, host, src); !check(err) {
			t.Errorf("%s: got %v, %v", src, v, err)
		}
	}
}

func isFault(err error) bool {
	var fault *vm.Fault
	return errors.As(err, &fault) && errors.Is(err, errFault)
}

func exitCode(err error) int {
	var exit *vm.Exit
	if !errors.As(err, &exit) {
		return -1
	}
	return exit.Code
}

func TestErrorsCarryKindPositionAndTraceback(t *testing.T) {
	host, _ := testHost(t)
	_, err := run(t.Context(), t, host, "local function f()\n  local ok, e = pcall(host.busy)\n  error(e .. '')\nend\nf()")
	var script *vm.Error
	if !errors.As(err, &script) {
		t.Fatal(err)
	}
	if script.Kind != "busy" || script.Namespace != "host" || script.Position != "test.lua:3" {
		t.Errorf("got kind %q, namespace %q, position %q", script.Kind, script.Namespace, script.Position)
	}
	if !strings.Contains(script.Traceback, "test.lua:5") {
		t.Errorf("traceback %q", script.Traceback)
	}
	_, err = run(t.Context(), t, host, `error("the s3cret")`)
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a secret left in %v", err)
	}
}

// record is a journal in memory.
type record struct {
	mu      sync.Mutex
	turns   []int
	entries []vm.Entry
	answers map[string]vm.Entry
}

func (r *record) Record(e vm.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, e)
}

func (r *record) Handover(n int64, task int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if int(n) != len(r.turns)+1 {
		panic("hand-overs out of order")
	}
	r.turns = append(r.turns, task)
}

// replay answers from another record, in whose order it gives the lock.
type replay struct {
	record
	order []int
}

func (r *replay) Answer(now vm.Entry) (vm.Entry, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.answers[fmt.Sprint(now.Task, now.K, now.Name)]
	return e, ok, nil
}

func (r *replay) Turn(n int64) (int, bool) {
	if int(n) > len(r.order) {
		return 0, false
	}
	return r.order[n-1], true
}

func (*replay) Idle(int64, []int, int) {}

func TestHandoversFollowTheQueue(t *testing.T) {
	host, _ := testHost(t)
	journal := &record{}
	host.Journal = journal
	if _, err := run(t.Context(), t, host, `
		local hs = {}
		for i = 1, 3 do hs[i] = host.spawn(function() end) end
		for i = 1, 3 do hs[i]:join() end`); err != nil {
		t.Fatal(err)
	}
	// The block, then the tasks in the order of their spawns while it waits; where
	// between them it comes back is up to the joins.
	tasks := slices.DeleteFunc(slices.Clone(journal.turns), func(task int) bool { return task == 0 })
	if journal.turns[0] != 0 || !slices.Equal(tasks, []int{1, 2, 3}) {
		t.Errorf("hand-overs %v", journal.turns)
	}
}

func TestASecondRunAnswersFromTheFirst(t *testing.T) {
	const src = `return {os.time(), math.random(1e9), os.getenv("HOME"), io.read("l")}`
	host, _ := testHost(t)
	first := &record{}
	host.Journal = first
	want, err := run(t.Context(), t, host, src)
	if err != nil {
		t.Fatal(err)
	}
	again := &replay{record: record{answers: map[string]vm.Entry{}}}
	for _, e := range first.entries {
		again.answers[fmt.Sprint(e.Task, e.K, e.Name)] = e
	}
	host, _ = testHost(t)
	host.Env, host.Stdin = environ{}, strings.NewReader("")
	host.Journal = again
	got, err := run(t.Context(), t, host, src)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

func TestCloseCountsWhatCannotBeStopped(t *testing.T) {
	stuck := make(chan struct{})
	host, _ := testHost(t, &vm.Module{Name: "deaf", Funcs: []vm.Function{{Name: "wait", Waits: true, Effect: vm.Pure,
		Impl: func(context.Context, *vm.Call) ([]vm.Value, error) { <-stuck; return nil, nil }}}})
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Run(t.Context(), vm.Chunk{Name: "x.lua", Source: []byte(`host.spawn(function() deaf.wait() end) host.sleep(5)`)}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if n := e.Close(ctx); n != 1 {
		t.Errorf("%d tasks were abandoned, want 1", n)
	}
	close(stuck)
	if n := e.Close(t.Context()); n != 0 {
		t.Errorf("%d tasks were abandoned after the wait ended", n)
	}
}

func TestNoGoroutineOutlivesTheEngine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		host, _ := testHost(t)
		if _, err := run(t.Context(), t, host, `
			for i = 1, 50 do
				local self
				self = coroutine.wrap(function() coroutine.yield(self) pcall(coroutine.yield) while true do pcall(coroutine.yield) end end)
				self() self() self()
				host.spawn(function() while true do pcall(host.sleep, 1000) end end)
			end`); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; runtime.NumGoroutine() > before && i < 100; i++ {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines, %d before", n, before)
	}
}

func TestAbandonedCoroutinesAreFreed(t *testing.T) {
	host, _ := testHost(t, &vm.Module{Name: "go", Funcs: []vm.Function{{Name: "gc", Effect: vm.Pure,
		Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
			return []vm.Value{int64(runtime.NumGoroutine())}, nil
		}}}})
	v, err := run(t.Context(), t, host, `
		for round = 1, 10 do
			for i = 1, 500 do coroutine.wrap(function() coroutine.yield() end)() end
			go.gc()
		end
		coroutine.wrap(function() end)()
		return go.gc()`)
	if err != nil {
		t.Fatal(err)
	}
	if n := v.(int64); n > 1500 {
		t.Errorf("%d goroutines are left of 5000 abandoned coroutines", n)
	}
}

func TestAModuleCannotShadowWhatIsThere(t *testing.T) {
	host, _ := testHost(t, &vm.Module{Name: "host", Funcs: []vm.Function{{Name: "echo"}}})
	if _, err := lua.New(host, lua.Options{}); err == nil || !strings.Contains(err.Error(), "declares echo twice") {
		t.Errorf("got %v", err)
	}
}

func TestAReplayGivesTheLockInItsOrder(t *testing.T) {
	t.Parallel()
	host, _ := testHost(t)
	host.Journal = &replay{order: []int{0, 3, 1, 2, 0}}
	got, err := run(t.Context(), t, host, `
		local out = {}
		for i = 1, 3 do host.spawn(function() out[#out + 1] = i end) end
		host.sleep(20)
		return out`)
	if err != nil || fmt.Sprint(got) != "[3 1 2]" {
		t.Errorf("got %v, %v", got, err)
	}
}
