package vm

import (
	"context"
	"sync/atomic"
)

// Engine runs scripts of one language for one run. It is made by the language's
// own package and closed when the run ends.
type Engine interface {
	// Run loads the chunk, runs it as the block's main task and returns the one
	// value that it returns (nil when nothing). It ends early with ctx; the error
	// is then ctx's cause. A script's failure is *Error, os.exit and job.defer are
	// *Exit.
	Run(ctx context.Context, chunk Chunk) (Value, error)

	// Spawn starts fn as a new task of the calling task. The engine owns its
	// goroutine: Close waits for it.
	Spawn(ctx context.Context, name string, fn *Func, args ...Value) (*Task, error)

	// Release gives the VM's lock away on behalf of the task in ctx, and Acquire
	// takes it again, behind those who already wait. The dispatcher calls them
	// around a syscall that waits; one that calls a script's function first and waits
	// then calls them itself.
	Release(ctx context.Context)
	Acquire(ctx context.Context)

	// Close cancels every task and waits until each has ended, or until ctx does.
	// abandoned counts the tasks that could not be stopped.
	Close(ctx context.Context) (abandoned int)
}

// Task is one thread of a script. Its id is deterministic: the order of spawns.
type Task struct {
	ID     int
	Name   string
	Ctx    context.Context         // carries the task; ends when the task is to stop
	Cancel context.CancelCauseFunc // stops the task
	Done   chan struct{}           // closed when it has ended
	// Result and Err are set before Done is closed; Result is by reference.
	Result []Value
	Err    error
	// Ended, when set, is called once before Done is closed, without the lock. It is
	// set by the caller of Spawn before it gives the lock away.
	Ended func()
	// Begun is set when its Lua begins to run.
	Begun atomic.Bool

	calls int64 // recorded syscalls so far; guarded by the lock
}

type taskKey struct{}

// WithTask puts a task into the context that its Lua runs under.
func WithTask(ctx context.Context, t *Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// TaskOf gives the task that ctx runs for, nil outside any.
func TaskOf(ctx context.Context) *Task {
	t, _ := ctx.Value(taskKey{}).(*Task)
	return t
}

type toolKey struct{}

// InTool marks the context of a tool's handler, whose calls a replay may be asked to
// carry out.
func InTool(ctx context.Context) context.Context { return context.WithValue(ctx, toolKey{}, true) }

func inTool(ctx context.Context) bool { return ctx.Value(toolKey{}) != nil }
