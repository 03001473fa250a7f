package lua

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// maxExact is the greatest integer up to which every integer is a Lua number.
const maxExact = 1 << 53

// bridge holds the values that stand for what Lua 5.1 cannot say.
type bridge struct {
	null   *glua.LUserData // std.json.null
	list   *glua.LTable    // metatable of every table that was made from a list
	number *glua.LTable    // metatable of std.json.int values
}

// exact is the value of a std.json.int: an int64 beyond 2^53, or a json.Number
// beyond int64.
type exact struct{ n vm.Value }

func (x exact) String() string { return fmt.Sprint(x.n) }

// toLua gives a neutral value as a script receives it at top level: nil is nil.
// The lock is held, except where v holds no object of the host.
func (e *Engine) toLua(v vm.Value) (glua.LValue, error) {
	if v == nil {
		return glua.LNil, nil
	}
	return e.encode(v, 0)
}

// encode gives a neutral value as a script finds it inside a table.
func (e *Engine) encode(v vm.Value, depth int) (glua.LValue, error) {
	switch x := v.(type) {
	case nil:
		return e.bridge.null, nil
	case bool:
		return glua.LBool(x), nil
	case string:
		return glua.LString(x), nil
	case int64:
		if x >= -maxExact && x <= maxExact {
			return glua.LNumber(x), nil
		}
		return e.newExact(x), nil
	case int:
		return e.encode(int64(x), depth)
	case float64:
		return glua.LNumber(x), nil
	case json.Number:
		return e.encodeNumber(x)
	case []any:
		if depth >= vm.MaxDepth {
			return nil, tooDeep()
		}
		t := e.proto.CreateTable(len(x), 0)
		for i, item := range x {
			lv, err := e.encode(item, depth+1)
			if err != nil {
				return nil, at(err, index(i+1))
			}
			t.RawSetInt(i+1, lv)
		}
		t.Metatable = e.bridge.list
		return t, nil
	case map[string]any:
		if depth >= vm.MaxDepth {
			return nil, tooDeep()
		}
		return e.encodeMap(x, depth)
	case *vm.Func:
		return e.encodeFunc(x), nil
	case *vm.Object:
		return e.encodeObject(x), nil
	case *vm.Ref:
		if lv, ok := x.Value.(glua.LValue); ok {
			return lv, nil
		}
	}
	return nil, bad("a host value of type %T cannot enter a script", v)
}

// encodeMap inserts keys sorted, since pairs gives them in the order of insertion
// and Go's own order would make a script's run differ from its replay.
func (e *Engine) encodeMap(m map[string]any, depth int) (glua.LValue, error) {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	t := e.proto.CreateTable(0, len(m))
	for _, k := range keys {
		lv, err := e.encode(m[k], depth+1)
		if err != nil {
			return nil, at(err, field(k))
		}
		t.RawSetString(k, lv)
	}
	return t, nil
}

func (e *Engine) encodeNumber(n json.Number) (glua.LValue, error) {
	if i, err := n.Int64(); err == nil {
		return e.encode(i, 0)
	}
	if isDigits(string(n)) {
		return e.newExact(n), nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, bad("%q is no number that a script can hold", string(n))
	}
	return glua.LNumber(f), nil
}

func isDigits(s string) bool {
	if len(s) > 0 && s[0] == '-' {
		s = s[1:]
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func (e *Engine) newExact(n vm.Value) *glua.LUserData {
	return &glua.LUserData{Value: exact{n}, Env: e.proto.Env, Metatable: e.bridge.number}
}

// encodeFunc gives the script's own function back, or wraps one of the host's.
func (e *Engine) encodeFunc(f *vm.Func) glua.LValue {
	if fn, ok := f.Bound.(*glua.LFunction); ok {
		return fn
	}
	fn := e.proto.NewFunction(func(L *glua.LState) int {
		s := strandOf(L)
		args, err := e.arguments(s, nil, 1)
		if err != nil {
			return s.raise(err)
		}
		s.beginCall()
		out, callErr := f.Call(s.ctx, args...)
		s.endCall()
		if callErr != nil {
			return s.raise(callErr)
		}
		return e.pushAll(s, out)
	})
	f.Bound = fn
	return fn
}

// number gives a Lua number its neutral form.
func number(n glua.LNumber) (vm.Value, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, bad("%s is no value that can cross (numbers must be finite)", n.String())
	}
	if f == math.Trunc(f) && math.Abs(f) <= maxExact {
		return int64(f), nil // -0 becomes 0
	}
	return f, nil
}
