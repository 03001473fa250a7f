package lua

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"weak"

	glua "github.com/yuin/gopher-lua"
)

// coroutine is one coroutine of a script: a goroutine with its own Lua thread that
// runs only while its resumer waits (iter.Pull hands the processor over). So it may
// yield from anywhere, inside pcall, a metamethod or a comparator too, where
// gopher-lua's own threads report a success that is none.
//
// What a script holds is handle, an empty state that serves as an identity of type
// "thread". A coroutine that was abandoned half way is unwound once its handle is
// garbage; one that its own body refers to waits for the end of the run.
type coroutine struct {
	body   *glua.LFunction
	L      *glua.LState
	handle weak.Pointer[glua.LState]
	ctx    *strandContext // of the last resume

	status string
	values []glua.LValue // what the last resume or yield carried
	err    error         // what ended the body, nil when it returned

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// The states of a coroutine, as coroutine.status names them.
const (
	suspended = "suspended"
	active    = "running"
	normal    = "normal" // it resumed another
	dead      = "dead"
)

// errUnwound ends the Lua of a coroutine that nobody will resume.
var errUnwound = errors.New("the coroutine was abandoned")

// newCoroutine makes a coroutine that has not begun, and the handle for it.
func (e *Engine) newCoroutine(fn *glua.LFunction) *glua.LState {
	e.unwindDead()
	co := &coroutine{body: fn, L: e.newThread(), status: suspended}
	handle := &glua.LState{}
	co.handle = weak.Make(handle)
	e.lib.threads[co.handle] = co
	runtime.AddCleanup(handle, e.abandon, co)
	return handle
}

// abandon is called by the garbage collector, so it only leaves a note.
func (e *Engine) abandon(co *coroutine) {
	e.mu.Lock()
	e.dead = append(e.dead, co)
	e.mu.Unlock()
}

// unwindDead ends the coroutines that became garbage; the lock is held.
func (e *Engine) unwindDead() {
	e.mu.Lock()
	dead := e.dead
	e.dead = nil
	e.mu.Unlock()
	for _, co := range dead {
		delete(e.lib.threads, co.handle)
		e.unwind(co)
	}
}

// unwindAll ends every coroutine that is suspended; no Lua runs any more.
func (e *Engine) unwindAll() {
	for co := range e.live {
		e.unwind(co)
	}
}

func (e *Engine) unwind(co *coroutine) {
	if co.status != suspended {
		return
	}
	if co.stop != nil {
		co.stop()
		co.err = nil
	}
	e.bury(co)
}

// resume runs a coroutine until it yields, returns or fails. The error of a
// coroutine that cannot be resumed has no position.
func (s *strand) resume(co *coroutine, args []glua.LValue) ([]glua.LValue, error) {
	e := s.eng
	if co.status != suspended {
		what := "dead"
		if co.status != dead {
			what = "running"
		}
		return nil, errors.New("can not resume a " + what + " thread")
	}
	if s.depth >= MaxResume {
		return nil, errors.New("stack overflow: coroutines are nested too deep")
	}
	if co.next == nil {
		co.next, co.stop = iter.Pull(func(yield func(struct{}) bool) { co.run(yield) })
		e.live[co] = struct{}{}
	}
	inner := e.newStrand(s.ctx.Context, co.L, s.task)
	inner.co, inner.depth = co, s.depth+1
	inner.holds.Store(true)
	co.ctx = inner.ctx
	co.values, co.status = args, active
	if s.co != nil {
		s.co.status = normal
	}
	_, alive := co.next()
	if s.co != nil {
		s.co.status = active
	}
	out := co.values
	co.values = nil
	if alive {
		co.status = suspended
		return out, nil
	}
	if co.err != nil {
		s.raised = inner.raised
	} else {
		e.keepThread(co.L)
	}
	e.bury(co)
	return out, co.err
}

// bury ends a coroutine and drops what it referred to, its own handle perhaps: a
// handle that its coroutine can reach is never garbage.
func (e *Engine) bury(co *coroutine) {
	co.status = dead
	co.body, co.L, co.ctx, co.values = nil, nil, nil, nil
	delete(e.live, co)
}

// run is the goroutine's body.
func (co *coroutine) run(yield func(struct{}) bool) {
	co.yield = yield
	co.values, co.err = co.ctx.strand.protected(co.body, co.values)
}

// suspend is coroutine.yield.
func (s *strand) suspend(L *glua.LState) int {
	co := s.co
	if co == nil && s.yields != nil {
		return s.yields(s)
	}
	if co == nil {
		L.RaiseError("can not yield from outside of a coroutine")
	}
	co.values = stackFrom(L, 1)
	if !co.yield(struct{}{}) {
		// Unwinding: under a context that has ended no Lua instruction runs, so no
		// pcall of the body can go on.
		ended, cancel := context.WithCancelCause(s.ctx.Context)
		cancel(errUnwound)
		L.SetContext(&strandContext{Context: ended, done: ended.Done(), strand: s})
		L.RaiseError("%s", errUnwound.Error())
	}
	for _, v := range co.values {
		L.Push(v)
	}
	return len(co.values)
}

// stackFrom copies the running Go function's arguments from index i on.
func stackFrom(L *glua.LState, i int) []glua.LValue {
	n := L.GetTop() - i + 1
	if n <= 0 {
		return nil
	}
	out := make([]glua.LValue, n)
	for k := range out {
		out[k] = L.Get(i + k)
	}
	return out
}
