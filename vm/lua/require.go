package lua

import (
	"context"
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// openRequire makes require and package. A name is served from package.loaded, then
// package.preload, then the host's loader, which is the only one that knows places.
func (e *Engine) openRequire() {
	L := e.proto
	e.lib.loaded, e.lib.preload = L.NewTable(), L.NewTable()
	pkg := e.table("package", nil)
	pkg.RawSetString("loaded", e.lib.loaded)
	pkg.RawSetString("preload", e.lib.preload)
	e.table("_G", map[string]glua.LGFunction{"require": e.require})
	for _, name := range []string{"_G", "string", "table", "math", "coroutine", "utf8", "debug", "package"} {
		e.lib.loaded.RawSetString(name, L.G.Global.RawGetString(name))
	}
	e.lib.preload.RawSetString("json", L.NewFunction(e.openJSON))
}

// moduleLoad is a module whose chunk runs.
type moduleLoad struct {
	name string
	task *vm.Task
	done chan struct{} // closed when it has ended
}

func (e *Engine) require(L *glua.LState) int {
	arg, ok := L.Get(1).(glua.LString)
	if !ok {
		got := "no value"
		if L.GetTop() > 0 {
			got = L.Get(1).Type().String()
		}
		L.RaiseError("bad argument #1 to 'require' (string expected, got %s)", got)
	}
	name, s := string(arg), strandOf(L)
	for {
		if v := e.lib.loaded.RawGetString(name); glua.LVAsBool(v) {
			L.Push(v)
			return 1
		}
		open := e.openLoad(name)
		if open == nil {
			break
		}
		if circle := e.circle(s.task, open); circle != "" {
			L.RaiseError("circular require: %s", circle)
		}
		e.awaitLoad(s, open) // another task loads it; look again when it has ended
	}
	load := &moduleLoad{name: name, task: s.task, done: make(chan struct{})}
	e.lib.loading = append(e.lib.loading, load)
	defer func() {
		e.lib.loading = slices.DeleteFunc(e.lib.loading, func(l *moduleLoad) bool { return l == load })
		close(load.done)
	}()
	chunk := e.lib.preload.RawGetString(name)
	if chunk == glua.LNil {
		chunk = e.loadModule(s, name)
	}
	v := e.runModule(L, name, chunk)
	e.lib.loaded.RawSetString(name, v)
	L.Push(v)
	return 1
}

func (e *Engine) openLoad(name string) *moduleLoad {
	for _, l := range e.lib.loading {
		if l.name == name {
			return l
		}
	}
	return nil
}

// circle says along which modules a require of open by task would wait for itself,
// through other tasks too; "" when it would not.
func (e *Engine) circle(task *vm.Task, open *moduleLoad) string {
	var names []string
	for l := open; l != nil; l = e.lib.awaits[l.task] {
		for _, own := range e.lib.loading[slices.Index(e.lib.loading, l):] {
			if own.task == l.task {
				names = append(names, own.name)
			}
		}
		if l.task == task {
			return strings.Join(append(names, open.name), " requires ")
		}
	}
	return ""
}

// awaitLoad waits, with the lock released, until another task's load has ended.
func (e *Engine) awaitLoad(s *strand, open *moduleLoad) {
	e.lib.awaits[s.task] = open
	defer delete(e.lib.awaits, s.task)
	wait := &vm.Function{
		Name: "require", Effect: vm.Pure, Waits: true,
		Impl: func(ctx context.Context, _ *vm.Call) ([]vm.Value, error) {
			select {
			case <-open.done:
				return nil, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		},
	}
	if _, err := e.dispatch(s, "", wait, nil, nil); err != nil {
		s.raise(err)
	}
}

// loadModule compiles what the host's loader gives. It is a syscall, so that the
// lock is free while files are read and so that a failure has its kind.
func (e *Engine) loadModule(s *strand, name string) *glua.LFunction {
	var chunk vm.Chunk
	fn := &vm.Function{
		Name:   "require",
		Params: []vm.Param{{Name: "name", Type: vm.String}},
		Effect: vm.Pure, // the run's record holds the digests of what it loaded
		Waits:  true,
		Impl: func(ctx context.Context, c *vm.Call) (_ []vm.Value, err error) {
			chunk, err = c.Host.Loader.Load(ctx, c.Str(0))
			return nil, err
		},
	}
	if _, err := e.dispatch(s, "", fn, nil, []vm.Value{name}); err != nil {
		s.raise(err)
	}
	compiled, err := e.compile(chunk)
	if err != nil {
		s.raise(err)
	}
	return compiled
}

// runModule runs a module's chunk; what it returns is its value, true when that is
// nil and the chunk left nothing in package.loaded.
func (e *Engine) runModule(L *glua.LState, name string, chunk glua.LValue) glua.LValue {
	L.Push(chunk)
	L.Push(glua.LString(name))
	L.Call(1, 1)
	v := L.Get(-1)
	L.Pop(1)
	if v != glua.LNil {
		return v
	}
	if v := e.lib.loaded.RawGetString(name); v != glua.LNil {
		return v
	}
	return glua.LTrue
}
