package task

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"ashlar/vm"
)

// errAborted is the cause that abort cancels a task with.
var errAborted = vm.Errorf("cancelled", "task aborted")

// entry is one spawned task as its handle sees it.
type entry struct {
	seq     int
	id      string
	name    string
	task    *vm.Task
	clock   vm.Clock
	started time.Time

	mu      sync.Mutex
	joined  bool
	aborted bool
	elapsed time.Duration // once it has ended
}

// group holds the tasks of one run: those that run, by the engine's id, and those
// that failed and were not joined yet.
type group struct {
	host *vm.Host

	mu     sync.Mutex
	byID   map[int]*entry
	failed map[int]*entry
	count  int
}

// add makes the entry of a task that was just spawned; its caller holds the VM's
// lock, so the task has not begun.
func (g *group) add(t *vm.Task, name string) *entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	e := &entry{seq: g.count, name: name, task: t, clock: g.host.Clock, started: g.host.Clock.Now()}
	e.id = fmt.Sprintf("t%d", g.count)
	if e.name == "" {
		e.name = e.id
	}
	g.byID[t.ID] = e
	t.Ended = func() { g.ended(e) }
	return e
}

// find gives the entry of a task, nil for the block itself.
func (g *group) find(t *vm.Task) *entry {
	if t == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.byID[t.ID]
}

func (g *group) ended(e *entry) {
	e.mu.Lock()
	e.elapsed = max(e.clock.Now().Sub(e.started), 1)
	e.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byID, e.task.ID)
	var script *vm.Error // any other error is the cause of a cancel
	if errors.As(e.task.Err, &script) && script != errAborted {
		g.failed[e.seq] = e
	}
}

// report logs the errors of tasks that nobody joined. It waits until the run's end,
// since a script may join a task long after it failed.
func (g *group) report() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, seq := range slices.Sorted(maps.Keys(g.failed)) {
		e := g.failed[seq]
		g.host.Log("error", "a task that nobody joined failed: "+g.host.Redact(e.task.Err.Error()),
			map[string]any{"task": e.id, "name": e.name})
	}
	clear(g.failed)
}

// abort ends a task hard: its Lua is interrupted at its next instruction, a syscall
// of it at once.
func (e *entry) abort() {
	e.mu.Lock()
	e.aborted = true
	e.mu.Unlock()
	e.task.Cancel(errAborted)
}

func (e *entry) finished() bool {
	select {
	case <-e.task.Done:
		return true
	default:
		return false
	}
}

func (e *entry) since() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.elapsed > 0 {
		return e.elapsed
	}
	return e.clock.Now().Sub(e.started)
}

// join waits for the task's end and gives what it returned, by reference. Its error
// comes back as it was raised. Errors: validation when it was joined before,
// cancelled when it was aborted or the caller is.
func (g *group) join(ctx context.Context, e *entry) ([]vm.Value, error) {
	e.mu.Lock()
	already := e.joined
	e.joined = true
	e.mu.Unlock()
	if already {
		return nil, vm.Errorf("validation", "task already joined")
	}
	select {
	case <-e.task.Done:
	case <-ctx.Done():
		return nil, cancelled(ctx)
	}
	g.mu.Lock()
	delete(g.failed, e.seq)
	g.mu.Unlock()
	e.mu.Lock()
	aborted := e.aborted
	e.mu.Unlock()
	if aborted && e.task.Err != nil {
		return nil, errAborted
	}
	return e.task.Result, e.task.Err
}

// cancelled is what a waiting call raises when its task is to end.
func cancelled(ctx context.Context) error {
	err := vm.Errorf("cancelled", "task cancelled")
	err.Cause = context.Cause(ctx)
	return err
}
