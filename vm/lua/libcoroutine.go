package lua

import (
	"weak"

	glua "github.com/yuin/gopher-lua"
)

func (e *Engine) openCoroutine() {
	e.table("coroutine", map[string]glua.LGFunction{
		"create":      e.coCreate,
		"resume":      e.coResume,
		"yield":       func(L *glua.LState) int { return strandOf(L).suspend(L) },
		"status":      e.coStatus,
		"running":     e.coRunning,
		"wrap":        e.coWrap,
		"isyieldable": e.coIsYieldable,
		"close":       e.coClose,
	})
}

func (e *Engine) coCreate(L *glua.LState) int {
	L.Push(e.newCoroutine(L.CheckFunction(1)))
	return 1
}

// checkCo gives the coroutine that a handle stands for.
func (e *Engine) checkCo(L *glua.LState, i int) *coroutine {
	return e.lib.threads[weak.Make(L.CheckThread(i))]
}

func (e *Engine) coResume(L *glua.LState) int {
	s := strandOf(L)
	co := e.checkCo(L, 1)
	if co == nil { // the handle of a task's own thread
		L.Push(glua.LFalse)
		L.Push(glua.LString("can not resume a running thread"))
		return 2
	}
	out, err := s.resume(co, stackFrom(L, 2))
	if err != nil {
		L.Push(glua.LFalse)
		L.Push(errorValue(err))
		return 2
	}
	L.Push(glua.LTrue)
	for _, v := range out {
		L.Push(v)
	}
	return len(out) + 1
}

func (e *Engine) coWrap(L *glua.LState) int {
	handle := e.newCoroutine(L.CheckFunction(1))
	co := e.lib.threads[weak.Make(handle)]
	L.Push(L.NewClosure(func(L *glua.LState) int {
		s := strandOf(L)
		out, err := s.resume(co, stackFrom(L, 1))
		if err != nil {
			if _, own := err.(*glua.ApiError); own {
				L.Error(errorValue(err), 0)
			}
			L.RaiseError("%s", err.Error())
		}
		for _, v := range out {
			L.Push(v)
		}
		return len(out)
	}, handle)) // the upvalue keeps the handle, and so the coroutine, alive
	return 1
}

func (e *Engine) coStatus(L *glua.LState) int {
	status := active
	if co := e.checkCo(L, 1); co != nil {
		status = co.status
	}
	L.Push(glua.LString(status))
	return 1
}

// coRunning gives the running coroutine and whether it is a task's own thread; a
// task's own thread is nil, as in Lua 5.1.
func (e *Engine) coRunning(L *glua.LState) int {
	if co := strandOf(L).co; co != nil {
		if handle := co.handle.Value(); handle != nil {
			L.Push(handle)
			L.Push(glua.LFalse)
			return 2
		}
	}
	L.Push(glua.LNil)
	L.Push(glua.LTrue)
	return 2
}

func (e *Engine) coIsYieldable(L *glua.LState) int {
	s := strandOf(L)
	L.Push(glua.LBool(s.co != nil || s.yields != nil))
	return 1
}

func (e *Engine) coClose(L *glua.LState) int {
	co := e.checkCo(L, 1)
	if co == nil || co.status == active || co.status == normal {
		L.RaiseError("cannot close a running coroutine")
	}
	e.unwind(co)
	if co.err != nil {
		L.Push(glua.LFalse)
		L.Push(errorValue(co.err))
		return 2
	}
	L.Push(glua.LTrue)
	return 1
}
