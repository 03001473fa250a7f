package lua

import (
	"io"
	"maps"
	"runtime/metrics"
	"slices"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// openBase takes gopher-lua's base library, without what reaches the process, and
// with print, load and xpcall of our own.
func (e *Engine) openBase() {
	L := e.proto
	glua.OpenBase(L)
	L.SetTop(0)
	g := L.G.Global
	for _, name := range []string{"dofile", "loadfile", "module", "newproxy", "_printregs", "_GOPHER_LUA_VERSION"} {
		g.RawSetString(name, glua.LNil)
	}
	e.fill(g, map[string]glua.LGFunction{
		"error":          raiseError,
		"print":          e.print,
		"load":           e.load,
		"loadstring":     e.load,
		"pcall":          e.pcall,
		"xpcall":         e.xpcall,
		"unpack":         unpack,
		"collectgarbage": collectGarbage,
	})
	e.lib.quiet = L.NewFunction(quiet)
	e.lib.cutting = L.NewFunction(cutting)
	e.lib.tostring = g.RawGetString("tostring").(*glua.LFunction)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// print writes its arguments to the run's standard output, redacted.
func (e *Engine) print(L *glua.LState) int {
	var b strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(L.ToStringMeta(L.Get(i)).String())
	}
	b.WriteByte('\n')
	if _, err := io.WriteString(e.host.Stdout, e.host.Redact(b.String())); err != nil {
		L.RaiseError("print: %s", e.host.Redact(err.Error()))
	}
	return 0
}

// raiseError is error, which may be called without a value. gopher-lua takes level 2
// for level 1: it counts error itself.
func raiseError(L *glua.LState) int {
	level := L.OptInt(2, 1)
	if level > 0 {
		level++
	}
	L.Error(L.Get(1), level)
	return 0
}

// pcall and xpcall are gopher-lua's, except that a panic of the host has our words.
// Arguments follow xpcall's handler, as in 5.2.
func (e *Engine) pcall(L *glua.LState) int {
	L.CheckAny(1)
	return e.protect(L, 2, nil)
}

func (e *Engine) xpcall(L *glua.LState) int {
	L.CheckAny(1)
	return e.protect(L, 3, L.CheckFunction(2))
}

// maxPcalls bounds protected calls within one another: each is a stretch of the Go
// stack, and each must be unwound at a cancel.
const maxPcalls = 1000

// protect calls argument 1 with the arguments from index first on.
func (e *Engine) protect(L *glua.LState, first int, handler *glua.LFunction) int {
	fn, top := L.Get(1), L.GetTop()
	if _, callable := fn.(*glua.LFunction); !callable && L.GetMetaField(fn, "__call").Type() != glua.LTFunction {
		L.Push(glua.LFalse)
		L.Push(glua.LString("attempt to call a " + fn.Type().String() + " value"))
		return 2
	}
	s := strandOf(L)
	if s.pcalls >= maxPcalls {
		L.RaiseError("stack overflow: more than %d protected calls are nested", maxPcalls)
	}
	s.pcalls++
	defer func() { s.pcalls-- }()
	L.Push(e.lib.quiet)
	L.Push(fn)
	for i := first; i <= top; i++ {
		L.Push(L.Get(i))
	}
	was := shares(L)
	share(L, true)
	err := L.PCall(L.GetTop()-top-1, glua.MultRet, handler)
	share(L, was)
	if err != nil {
		L.Push(glua.LFalse)
		L.Push(errorValue(err))
		return 2
	}
	L.Insert(glua.LTrue, top+1)
	return L.GetTop() - top
}

// maxUnpack bounds the values that one call of unpack returns.
const maxUnpack = 250_000

func unpack(L *glua.LState) int {
	t := L.CheckTable(1)
	first := L.OptInt(2, 1)
	last := L.OptInt(3, t.Len())
	if last < first {
		return 0
	}
	if last-first < 0 || last-first >= maxUnpack {
		L.RaiseError("too many results to unpack (the limit is %d)", maxUnpack)
	}
	for i := first; i <= last; i++ {
		L.Push(t.RawGet(glua.LNumber(i)))
	}
	return last - first + 1
}

// collectGarbage only reads: a script must not make the host collect.
func collectGarbage(L *glua.LState) int {
	switch what := L.OptString(1, "collect"); what {
	case "count":
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		L.Push(glua.LNumber(float64(sample[0].Value.Uint64()) / 1024))
	case "isrunning":
		L.Push(glua.LTrue)
	case "collect", "step", "stop", "restart", "setpause", "setstepmul", "incremental", "generational":
		L.Push(glua.LNumber(0))
	default:
		L.ArgError(1, "invalid option '"+what+"'")
	}
	return 1
}

// quiet calls its first argument with the others, and makes errors on the way carry
// no traceback. Without it PCall writes the whole stack down for each error that it
// catches: thousands of nested pcalls would take minutes to unwind at a cancel.
func quiet(L *glua.LState) int {
	base := frameBase(L)
	L.Panic = func(L *glua.LState) {
		closeUpvalues(L, base)
		panic(&glua.ApiError{Type: glua.ApiErrorRun, Object: L.Get(-1), StackTrace: noTrace})
	}
	L.Call(L.GetTop()-1, glua.MultRet)
	return L.GetTop()
}

// noTrace stands where gopher-lua would otherwise put a traceback.
const noTrace = "-"
