package lua

import (
	"context"
	"sync/atomic"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// MaxResume bounds how deep coroutines may resume one another: each level is a
// goroutine that waits for the next.
const MaxResume = 190

// The states of a strand. Only its own goroutine moves it between running and
// calling; a callback takes it from calling to lent and gives it back.
const (
	running int32 = iota // executing Lua
	calling              // inside a syscall: its Lua thread may be borrowed
	lent                 // a callback of that syscall runs on its Lua thread
)

// strand is one activation of Lua: a Lua thread, the task that it runs for, and
// the context that stops it. A task begins with one; a coroutine and a callback
// have their own, so that a context always says exactly which Lua it belongs to.
type strand struct {
	eng       *Engine
	L         *glua.LState
	task      *vm.Task
	ctx       *strandContext
	co        *coroutine // the coroutine whose body this is, nil elsewhere
	depth     int        // coroutines below
	pcalls    int        // protected calls that are open
	callbacks int        // calls by the host within calls of the host

	// yields, where it is set, is what a yield outside of any coroutine does: its
	// arguments and its results are those of the yield.
	yields func(*strand) int

	raised *vm.Error // the last error that a syscall raised here

	holds atomic.Bool // the lock is held on behalf of this strand
	state atomic.Int32
}

// strandContext is what a Lua thread runs under. gopher-lua asks Done before every
// instruction, so the channel is kept instead of being looked up through parents.
type strandContext struct {
	context.Context
	done   <-chan struct{}
	strand *strand
}

type strandKey struct{}

func (c *strandContext) Done() <-chan struct{} { return c.done }

func (c *strandContext) Value(key any) any {
	if _, ok := key.(strandKey); ok {
		return c.strand
	}
	return c.Context.Value(key)
}

// newStrand makes the strand of a task's Lua on thread L under ctx, which carries
// the task.
func (e *Engine) newStrand(ctx context.Context, L *glua.LState, task *vm.Task) *strand {
	s := &strand{eng: e, L: L, task: task}
	s.ctx = &strandContext{Context: ctx, done: ctx.Done(), strand: s}
	L.SetContext(s.ctx)
	return s
}

// strandOf gives the strand whose Lua runs on L.
func strandOf(L *glua.LState) *strand { return L.Context().(*strandContext).strand }

// strandIn gives the strand that ctx descends from, nil when there is none here.
func (e *Engine) strandIn(ctx context.Context) *strand {
	if c, ok := ctx.(*strandContext); ok && c.strand.eng == e {
		return c.strand
	}
	if s, _ := ctx.Value(strandKey{}).(*strand); s != nil && s.eng == e {
		return s
	}
	return nil
}

// Release gives the lock away for the strand in ctx.
func (e *Engine) Release(ctx context.Context) {
	if s := e.strandIn(ctx); s != nil && s.holds.CompareAndSwap(true, false) {
		e.sched.release()
	}
}

// Acquire takes the lock for the strand in ctx, behind those who already wait. A
// callback that still runs on the strand's thread is waited for first.
func (e *Engine) Acquire(ctx context.Context) {
	s := e.strandIn(ctx)
	if s == nil || s.holds.Load() {
		return
	}
	s.reclaim()
	e.sched.acquire(s.task.ID)
	s.holds.Store(true)
}

// beginCall and endCall bracket a syscall: between them callbacks may borrow the
// strand's Lua thread.
func (s *strand) beginCall() { s.state.Store(calling) }

func (s *strand) endCall() {
	if !s.state.CompareAndSwap(calling, running) {
		s.reclaim()
		s.state.Store(running)
	}
}

// reclaim waits until a callback that borrowed the thread has given it back, which
// a syscall that left a goroutine behind makes necessary.
func (s *strand) reclaim() {
	if s.state.Load() != lent {
		return
	}
	e := s.eng
	e.idleMu.Lock()
	defer e.idleMu.Unlock()
	for s.state.Load() == lent {
		e.idle.Wait()
	}
}

// borrow makes a strand for a callback under ctx. It runs on the thread of the
// syscall's strand when nobody else does, else on a thread and as a task of its
// own; leave must be called when it has ended. ok is false when the engine is
// closed.
func (e *Engine) borrow(ctx context.Context) (s *strand, leave func(reuse bool), ok bool) {
	p := e.strandIn(ctx)
	if p == nil || !p.state.CompareAndSwap(calling, lent) {
		return e.guest(ctx)
	}
	took := !p.holds.Load()
	if took {
		e.sched.acquire(p.task.ID)
	}
	s = e.newStrand(ctx, p.L, p.task)
	s.depth, s.yields, s.callbacks = p.depth, p.yields, p.callbacks+1
	s.holds.Store(true)
	return s, func(bool) {
		p.L.SetContext(p.ctx)
		s.holds.Store(false)
		if took {
			e.sched.release()
		}
		e.idleMu.Lock()
		p.state.Store(calling)
		e.idleMu.Unlock()
		e.idle.Broadcast()
	}, true
}

// guest makes a strand for a goroutine that no Lua of its own waits for.
func (e *Engine) guest(ctx context.Context) (*strand, func(bool), bool) {
	task, ok := e.newTask(ctx, "", true)
	if !ok {
		return nil, nil, false
	}
	e.sched.acquire(task.ID)
	s := e.newStrand(task.Ctx, e.newThread(), task)
	s.holds.Store(true)
	return s, func(reuse bool) {
		e.retire(s, reuse)
		e.endTask(task)
	}, true
}

// retire ends a strand that owns its thread, and releases the lock.
func (e *Engine) retire(s *strand, reuse bool) {
	if reuse {
		e.keepThread(s.L)
	}
	s.holds.Store(false)
	e.sched.release()
}
