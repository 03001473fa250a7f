package lua

import (
	"context"
	"fmt"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// Spawn starts fn as a new task. The task's context descends from the run's and
// not from the caller's: a task outlives the one that spawned it unless somebody
// cancels it. Its place in the queue for the lock is taken at once, so that tasks
// start in the order of their spawns. Errors: kind closed when the run has ended,
// validation when fn is no function of this engine.
func (e *Engine) Spawn(_ context.Context, name string, fn *vm.Func, args ...vm.Value) (*vm.Task, error) {
	body, ok := fn.Bound.(*glua.LFunction)
	if !ok {
		return nil, vm.Errorf("validation", "a task's body must be a function of the script")
	}
	e.mu.Lock()
	root := e.root
	e.mu.Unlock()
	if root == nil {
		return nil, vm.Errorf("closed", "no run has begun")
	}
	task, ok := e.newTask(root, name, false)
	if !ok {
		return nil, vm.Errorf("closed", "the run has ended")
	}
	place := e.sched.enqueue(task.ID)
	go e.runTask(task, place, body, args)
	return task, nil
}

func (e *Engine) runTask(task *vm.Task, place *ticket, body *glua.LFunction, args []vm.Value) {
	defer e.endTask(task)
	place.wait()
	if task.Ctx.Err() != nil { // cancelled before it began
		task.Err = context.Cause(task.Ctx)
		e.sched.release()
		return
	}
	task.Begun.Store(true)
	s := e.newStrand(task.Ctx, e.newThread(), task)
	s.holds.Store(true)
	task.Result, task.Err = s.callNeutral(body, true, args)
	e.retire(s, task.Err == nil)
}

// newTask registers a task under parent. Ids are given in the order of spawns; guests,
// whose order is that of the Go scheduler, count downwards so that they do not move
// the others. ok is false when the engine is closed.
func (e *Engine) newTask(parent context.Context, name string, guest bool) (*vm.Task, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, false
	}
	t := &vm.Task{Name: name, Done: make(chan struct{})}
	if guest {
		e.guests++
		t.ID = -e.guests
	} else {
		t.ID = e.nextID
		e.nextID++
	}
	if name == "" {
		t.Name = fmt.Sprintf("t%d", t.ID)
	}
	ctx, cancel := context.WithCancelCause(parent)
	t.Ctx, t.Cancel = vm.WithTask(ctx, t), cancel
	e.tasks[t.ID] = t
	return t, true
}

// endTask closes a task whose result is set.
func (e *Engine) endTask(t *vm.Task) {
	e.mu.Lock()
	delete(e.tasks, t.ID)
	e.mu.Unlock()
	t.Cancel(nil) // frees the context
	if t.Ended != nil {
		t.Ended()
	}
	close(t.Done)
}
