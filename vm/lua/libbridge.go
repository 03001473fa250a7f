package lua

import (
	"encoding/json"
	"math/big"
	"strconv"

	glua "github.com/yuin/gopher-lua"
)

// openBridge makes the values of the bridge and puts what scripts need of them
// into std.json: null, is_null, array and int. The rest of std.json is a module of
// the host.
func (e *Engine) openBridge() {
	L := e.proto
	e.bridge.null = &glua.LUserData{Env: L.Env, Metatable: e.named("null")}
	e.bridge.list = L.NewTable()
	e.bridge.list.RawSetString("__jsontype", glua.LString("array"))
	e.bridge.number = e.exactTable()

	std := e.table("std", nil)
	mod := L.NewTable()
	std.RawSetString("json", mod)
	mod.RawSetString("null", e.bridge.null)
	e.fill(mod, map[string]glua.LGFunction{
		"array": func(L *glua.LState) int {
			t := L.NewTable()
			if L.GetTop() > 0 {
				t = L.CheckTable(1)
			}
			t.Metatable = e.bridge.list
			L.Push(t)
			return 1
		},
		"is_null": func(L *glua.LState) int {
			L.Push(glua.LBool(L.Get(1) == e.bridge.null))
			return 1
		},
		"int": e.makeExact,
	})
}

// named gives a metatable whose values print as text.
func (e *Engine) named(text string) *glua.LTable {
	mt := e.proto.NewTable()
	mt.RawSetString("__tostring", e.proto.NewFunction(func(L *glua.LState) int {
		L.Push(glua.LString(text))
		return 1
	}))
	mt.RawSetString("__metatable", glua.LString(text))
	return mt
}

// makeExact is std.json.int(text): the exact integer, a plain number when it fits.
func (e *Engine) makeExact(L *glua.LState) int {
	if ud, ok := L.Get(1).(*glua.LUserData); ok {
		if _, ok := ud.Value.(exact); ok {
			L.Push(ud)
			return 1
		}
	}
	text := L.CheckString(1)
	if !isDigits(text) {
		L.ArgError(1, "decimal digits expected")
	}
	if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		lv, _ := e.toLua(v)
		L.Push(lv)
		return 1
	}
	L.Push(e.newExact(json.Number(text)))
	return 1
}

// exactTable is the metatable of exact integers: they print, join and compare.
func (e *Engine) exactTable() *glua.LTable {
	mt := e.named("integer")
	compare := func(ok func(int) bool) glua.LGFunction {
		return func(L *glua.LState) int {
			a, isA := exactOf(L.Get(1))
			b, isB := exactOf(L.Get(2))
			if !isA || !isB {
				L.RaiseError("attempt to compare an exact integer with a %s", L.Get(2).Type())
			}
			L.Push(glua.LBool(ok(a.Cmp(b))))
			return 1
		}
	}
	e.fill(mt, map[string]glua.LGFunction{
		"__eq": compare(func(c int) bool { return c == 0 }),
		"__lt": compare(func(c int) bool { return c < 0 }),
		"__le": compare(func(c int) bool { return c <= 0 }),
		"__tostring": func(L *glua.LState) int {
			L.Push(glua.LString(exactText(L.Get(1))))
			return 1
		},
		"__concat": func(L *glua.LState) int {
			L.Push(glua.LString(exactText(L.Get(1)) + exactText(L.Get(2))))
			return 1
		},
	})
	for _, op := range []string{"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm"} {
		mt.RawSetString(op, e.proto.NewFunction(func(L *glua.LState) int {
			L.RaiseError("an integer beyond 2^53 takes no part in arithmetic; it prints, compares and crosses exactly")
			return 0
		}))
	}
	return mt
}

// exactText is the text of either side of a concatenation.
func exactText(v glua.LValue) string {
	if ud, ok := v.(*glua.LUserData); ok {
		if x, ok := ud.Value.(exact); ok {
			return x.String()
		}
	}
	return glua.LVAsString(v)
}

// exactOf gives a value as an exact integer, when it is one.
func exactOf(v glua.LValue) (*big.Int, bool) {
	switch x := v.(type) {
	case *glua.LUserData:
		if n, ok := x.Value.(exact); ok {
			return new(big.Int).SetString(n.String(), 10)
		}
	case glua.LNumber:
		return new(big.Int).SetString(x.String(), 10)
	}
	return nil, false
}
