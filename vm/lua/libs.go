package lua

import (
	"math/rand/v2"
	"weak"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// libs is what the standard libraries keep; all of it under the lock.
type libs struct {
	tostring *glua.LFunction
	quiet    *glua.LFunction
	cutting  *glua.LFunction
	loaded   *glua.LTable             // package.loaded
	preload  *glua.LTable             // package.preload
	loading  []*moduleLoad            // whose chunks run, outermost first
	awaits   map[*vm.Task]*moduleLoad // who waits for which
	random   *rand.Rand
	threads  map[weak.Pointer[glua.LState]]*coroutine
}

// openLibs makes the globals of a script, one library after the other.
func (e *Engine) openLibs() error {
	e.lib.awaits = map[*vm.Task]*moduleLoad{}
	e.lib.threads = map[weak.Pointer[glua.LState]]*coroutine{}
	e.openBase()
	e.openTable()
	e.openString()
	e.openMath()
	e.openCoroutine()
	e.openUTF8()
	e.openDebug()
	e.openRequire()
	for _, m := range e.systemModules() {
		if err := e.install(m); err != nil {
			return err
		}
		e.lib.loaded.RawSetString(m.Name, e.proto.G.Global.RawGetString(m.Name))
	}
	e.openBridge()
	for _, m := range e.host.Modules {
		if err := e.install(m); err != nil {
			return err
		}
	}
	for name, v := range e.host.Globals {
		lv, err := e.toLua(v)
		if err != nil {
			return err
		}
		e.proto.G.Global.RawSetString(name, lv)
	}
	e.proto.G.Global.RawSetString("_SCRIPT_NAME", glua.LString(e.host.Script))
	return nil
}

// table gives the global table of a name, making it if need be, with funcs in it.
func (e *Engine) table(name string, funcs map[string]glua.LGFunction) *glua.LTable {
	t, ok := e.proto.G.Global.RawGetString(name).(*glua.LTable)
	if !ok {
		t = e.proto.NewTable()
		e.proto.G.Global.RawSetString(name, t)
	}
	e.fill(t, funcs)
	return t
}

// fill puts functions into a table, sorted so that pairs gives them in one order.
func (e *Engine) fill(t *glua.LTable, funcs map[string]glua.LGFunction) {
	for _, name := range sortedKeys(funcs) {
		t.RawSetString(name, e.proto.NewFunction(funcs[name]))
	}
}
