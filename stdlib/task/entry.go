package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"ashlar/vm"
)

// AbortGrace is how long an aborted task may clean up before it is cut.
const AbortGrace = 100 * time.Millisecond

// entry is one spawned task as its handle sees it.
type entry struct {
	seq     int
	id      string
	name    string
	task    *vm.Task
	token   *token
	scope   *scope // that waits for it; nil for none
	clock   vm.Clock
	started time.Time

	mu      sync.Mutex
	joined  bool
	aborted bool
	over    bool
	cut     func() bool   // stops the cut after an abort's grace
	elapsed time.Duration // once it has ended
}

// abort ends a task: it is cancelled, and cut when it still runs grace later; at once
// when it has not begun.
func (e *entry) abort(grace time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	e.aborted = true
	defer e.token.cancel(errAborted)
	if grace <= 0 || !e.task.Begun.Load() {
		e.task.Cancel(errAborted)
		return
	}
	if e.cut == nil {
		e.cut = vm.After(e.clock, grace, func() { e.task.Cancel(errAborted) })
	}
}

// ended notes the end of a task's Lua; lost is its error when somebody should hear of
// it: what came of a cancel is no failure of its own.
func (e *entry) ended() (lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	e.elapsed = max(e.clock.Now().Sub(e.started), 1)
	if e.cut != nil {
		e.cut()
	}
	var script *vm.Error // any other error is the cause of a cut
	if !errors.As(e.task.Err, &script) || script == errAborted || script == errCancelled {
		return false
	}
	return !(e.token.cancelled() && script.Kind == "cancelled")
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

// claim takes the one join that a task has.
func (e *entry) claim() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.joined {
		return vm.Errorf("validation", "task already joined")
	}
	e.joined = true
	return nil
}

// join waits for the task's end and gives what it returned, by reference. Its error
// comes back as it was raised. A join that was cancelled may be asked again. Errors:
// validation when it was joined before, cancelled when the task was aborted or the
// caller is cancelled.
func (g *group) join(ctx context.Context, e *entry) ([]vm.Value, error) {
	if err := e.claim(); err != nil {
		return nil, err
	}
	select {
	case <-e.task.Done:
	case <-ctx.Done():
		e.mu.Lock()
		e.joined = false
		e.mu.Unlock()
		return nil, cancelError(context.Cause(ctx))
	}
	g.heard(e)
	e.mu.Lock()
	aborted := e.aborted
	e.mu.Unlock()
	if aborted && e.task.Err != nil {
		return nil, errAborted
	}
	return e.task.Result, e.task.Err
}

// taskClass is the class of task handles.
func taskClass(g *group) *vm.Class {
	of := func(c *vm.Call) *entry { return c.Self.Data.(*entry) }
	return &vm.Class{
		Name: "task",
		Doc:  "A spawned task; its fields are id and name.",
		Fields: func(o *vm.Object) map[string]vm.Value {
			e := o.Data.(*entry)
			return map[string]vm.Value{"id": e.id, "name": e.name}
		},
		Methods: []vm.Function{
			{
				Name:    "join",
				Doc:     "Waits for the end and gives what the function returned, or raises what it raised; once.",
				Results: []vm.Param{{Name: "result", Type: vm.Opaque, Rest: true}},
				Effect:  vm.Pure, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return g.join(ctx, of(c)) },
			},
			{
				Name: "abort", Doc: "Ends the task: it is cancelled, and cut 100 ms later when it still runs.", Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					of(c).abort(AbortGrace)
					return nil, nil
				},
			},
			{
				Name: "is_finished", Doc: "Whether the task has ended.", Effect: vm.Read,
				Results: []vm.Param{{Name: "finished", Type: vm.Boolean}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{of(c).finished()}, nil
				},
			},
			{
				Name: "elapsed", Doc: "Milliseconds since the spawn, up to the end.", Effect: vm.Read,
				Results: []vm.Param{{Name: "ms", Type: vm.Number}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{float64(of(c).since()) / float64(time.Millisecond)}, nil
				},
			},
		},
	}
}
