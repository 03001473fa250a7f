package lua

import (
	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// encodeObject gives the userdata that stands for a host object, the same one each
// time.
func (e *Engine) encodeObject(o *vm.Object) glua.LValue {
	if ud, ok := o.Bound.(*glua.LUserData); ok {
		return ud
	}
	ud := &glua.LUserData{Value: o, Env: e.proto.Env, Metatable: e.classTable(o.Class)}
	o.Bound = ud
	return ud
}

// classTable gives the metatable of a class: its methods, then its fields.
func (e *Engine) classTable(c *vm.Class) *glua.LTable {
	if mt, ok := e.classes[c]; ok {
		return mt
	}
	methods := e.proto.NewTable()
	for i := range c.Methods {
		m := &c.Methods[i]
		methods.RawSetString(m.Name, e.proto.NewFunction(e.bindMethod(c, m)))
	}
	mt := e.proto.NewTable()
	mt.RawSetString("__index", methods)
	if c.Fields != nil {
		mt.RawSetString("__index", e.proto.NewFunction(func(L *glua.LState) int {
			key := L.Get(2)
			if m := methods.RawGet(key); m != glua.LNil {
				L.Push(m)
				return 1
			}
			o, ok := objectOf(L.Get(1), c)
			name, isName := key.(glua.LString)
			if !ok || !isName {
				return 0
			}
			return e.pushField(strandOf(L), c.Fields(o), string(name))
		}))
	}
	mt.RawSetString("__tostring", e.proto.NewFunction(func(L *glua.LState) int {
		L.Push(glua.LString(c.Name))
		return 1
	}))
	mt.RawSetString("__metatable", glua.LString(c.Name))
	e.classes[c] = mt
	return mt
}

func (e *Engine) pushField(s *strand, fields map[string]vm.Value, name string) int {
	v, err := e.toLua(fields[name])
	if err != nil {
		return s.raise(err)
	}
	s.L.Push(v)
	return 1
}

// objectOf gives the host object behind a value when it is of class c.
func objectOf(v glua.LValue, c *vm.Class) (*vm.Object, bool) {
	ud, ok := v.(*glua.LUserData)
	if !ok {
		return nil, false
	}
	o, ok := ud.Value.(*vm.Object)
	return o, ok && o.Class == c
}

// bindMethod binds one method; a call with `.` instead of `:` is told so.
func (e *Engine) bindMethod(c *vm.Class, m *vm.Function) glua.LGFunction {
	return func(L *glua.LState) int {
		s := strandOf(L)
		self, ok := objectOf(L.Get(1), c)
		if !ok {
			return s.raise(&vm.Error{Namespace: c.Namespace(), Function: m.Name, Kind: "validation",
				Message: "call it as a method of its handle: h:" + m.Name + "(…)"})
		}
		return e.syscall(s, c.Namespace(), m, self, 2)
	}
}
