package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// openTable takes insert, remove and sort from gopher-lua; the rest is bounded or
// of a later Lua.
func (e *Engine) openTable() {
	L := e.proto
	glua.OpenTable(L)
	L.SetTop(0)
	e.table("table", map[string]glua.LGFunction{
		"concat": e.tableConcat,
		"pack":   tablePack,
		"unpack": unpack,
		"move":   tableMove,
		"same":   tableSame,
	})
}

func (e *Engine) tableConcat(L *glua.LState) int {
	t := L.CheckTable(1)
	sep := ""
	if L.Get(2) != glua.LNil {
		sep = L.CheckString(2)
	}
	first, last := toInt(L, 3, 1), toInt(L, 4, t.Len())
	var b strings.Builder
	for i := first; i <= last; i++ {
		switch v := t.RawGet(glua.LNumber(i)).(type) {
		case glua.LString:
			b.WriteString(string(v))
		case glua.LNumber:
			b.WriteString(v.String())
		case *glua.LUserData:
			if _, ok := v.Value.(exact); !ok {
				badConcat(L, v, i)
			}
			b.WriteString(exactText(v))
		default:
			badConcat(L, v, i)
		}
		if i < last {
			b.WriteString(sep)
		}
		e.sizeCheck(L, b.Len())
	}
	return pushString(L, b.String())
}

func badConcat(L *glua.LState, v glua.LValue, i int) {
	L.RaiseError("invalid value (%s) at index %d in table for concat", v.Type(), i)
}

func tablePack(L *glua.LState) int {
	n := L.GetTop()
	t := L.CreateTable(n, 1)
	for i := 1; i <= n; i++ {
		t.RawSetInt(i, L.Get(i))
	}
	t.RawSetString("n", glua.LNumber(n))
	L.Push(t)
	return 1
}

// maxMove bounds the items that one table.move copies.
const maxMove = 1 << 24

func tableMove(L *glua.LState) int {
	from, first, last, at := L.CheckTable(1), L.CheckInt(2), L.CheckInt(3), L.CheckInt(4)
	to := from
	if L.Get(5) != glua.LNil {
		to = L.CheckTable(5)
	}
	if last >= first {
		if last-first < 0 || last-first >= maxMove {
			L.ArgError(3, "too many elements to move")
		}
		if at > last || at <= first || to != from {
			for i := 0; i <= last-first; i++ {
				to.RawSet(glua.LNumber(at+i), from.RawGet(glua.LNumber(first+i)))
			}
		} else {
			for i := last - first; i >= 0; i-- {
				to.RawSet(glua.LNumber(at+i), from.RawGet(glua.LNumber(first+i)))
			}
		}
	}
	L.Push(to)
	return 1
}
