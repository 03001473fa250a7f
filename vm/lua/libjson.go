package lua

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// openJSON is the loader of require("json"), the module that many Lua scripts
// expect beside gopher-lua: encode and decode that give nil and a message where
// std.json raises.
func (e *Engine) openJSON(L *glua.LState) int {
	t := L.NewTable()
	e.fill(t, map[string]glua.LGFunction{"encode": e.jsonEncode, "decode": e.jsonDecode})
	L.Push(t)
	return 1
}

func (e *Engine) jsonEncode(L *glua.LState) int {
	v, err := e.fromLua(strandOf(L), L.CheckAny(1), false)
	if err != nil {
		return fail(L, err.Error())
	}
	if !isData(v) {
		return fail(L, "a function or handle has no JSON form")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fail(L, err.Error())
	}
	e.sizeCheck(L, b.Len())
	return pushString(L, string(bytes.TrimRight(b.Bytes(), "\n")))
}

func (e *Engine) jsonDecode(L *glua.LState) int {
	dec := json.NewDecoder(bytes.NewReader([]byte(L.CheckString(1))))
	dec.UseNumber()
	var v vm.Value
	err := dec.Decode(&v)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("text after the value")
		}
	}
	if err != nil {
		return fail(L, err.Error())
	}
	lv, err := e.toLua(v)
	if err != nil {
		return fail(L, err.Error())
	}
	L.Push(lv)
	return 1
}

// isData reports whether a value is JSON throughout.
func isData(v vm.Value) bool {
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			if !isData(item) {
				return false
			}
		}
	case map[string]any:
		for _, item := range x {
			if !isData(item) {
				return false
			}
		}
	case *vm.Func, *vm.Object, *vm.Ref:
		return false
	}
	return true
}
