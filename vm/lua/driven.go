package lua

import (
	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// Driven gives a function that runs fn as the body of a task whose yields are calls of
// the syscall step of namespace ns: outside of the coroutines that the script makes
// itself, coroutine.yield(…) passes what is yielded to step, and gives or raises what
// that does, in callbacks of its syscalls too. A task that sleeps by
// coroutine.yield(ms) is driven so; nothing is suspended for it. Errors: validation
// when fn is no function of this engine.
func (e *Engine) Driven(fn *vm.Func, ns string, step *vm.Function) (*vm.Func, error) {
	body, ok := fn.Bound.(*glua.LFunction)
	if !ok {
		return nil, vm.Errorf("validation", "a task's body must be a function of the script")
	}
	yields := func(s *strand) int { return e.syscall(s, ns, step, nil, 1) }
	driver := e.proto.NewFunction(func(L *glua.LState) int {
		strandOf(L).yields = yields
		n := L.GetTop()
		L.Insert(body, 1)
		L.Call(n, glua.MultRet)
		return L.GetTop()
	})
	return e.newFunc(driver), nil
}
