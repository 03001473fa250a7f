package lua

import (
	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// tableSame is table.same(a, b): whether two values hold the same, tables compared
// by what is in them. It is for histories that are compared at every beat, where a
// loop in Lua would cost more than what it saves.
func tableSame(L *glua.LState) int {
	L.Push(glua.LBool(same(L.Get(1), L.Get(2), 0)))
	return 1
}

// same takes tables that are nested deeper than any value may be for different.
func same(a, b glua.LValue, depth int) bool {
	if a == b {
		return true
	}
	ta, ok := a.(*glua.LTable)
	if !ok {
		return false
	}
	tb, ok := b.(*glua.LTable)
	if !ok || ta.Metatable != tb.Metatable || depth > vm.MaxDepth {
		return false
	}
	equal, n := true, 0
	ta.ForEach(func(k, v glua.LValue) {
		n++
		equal = equal && same(v, tb.RawGet(k), depth+1)
	})
	if equal {
		tb.ForEach(func(glua.LValue, glua.LValue) { n-- })
	}
	return equal && n == 0
}
