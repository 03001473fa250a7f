package lua

import (
	"context"
	"errors"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// install makes the globals of a module. Dotted names nest, and a module may be
// declared below another that is not there.
func (e *Engine) install(m *vm.Module) error {
	t := e.proto.G.Global
	for part := range strings.SplitSeq(m.Name, ".") {
		next, ok := t.RawGetString(part).(*glua.LTable)
		if !ok {
			if t.RawGetString(part) != glua.LNil {
				return vm.Errorf("validation", "module %s: %s is no table", m.Name, part)
			}
			next = e.proto.NewTable()
			t.RawSetString(part, next)
		}
		t = next
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		if t.RawGetString(f.Name) != glua.LNil {
			return vm.Errorf("validation", "module %s declares %s twice", m.Name, f.Name)
		}
		t.RawSetString(f.Name, e.proto.NewFunction(e.bind(m.Name, f)))
	}
	for name, v := range m.Values {
		lv, err := e.encode(v, 0)
		if err != nil {
			return vm.Errorf("validation", "module %s: %s: %s", m.Name, name, err.Error())
		}
		t.RawSetString(name, lv)
	}
	return nil
}

// bind gives the Lua function of a syscall.
func (e *Engine) bind(ns string, fn *vm.Function) glua.LGFunction {
	return func(L *glua.LState) int { return e.syscall(strandOf(L), ns, fn, nil, 1) }
}

// syscall calls a syscall with the Lua arguments from index first on. It is the
// only way from Lua to the dispatcher.
func (e *Engine) syscall(s *strand, ns string, fn *vm.Function, self *vm.Object, first int) int {
	args, err := e.arguments(s, fn.Params, first)
	if err != nil {
		err.Namespace, err.Function = ns, fn.Name
		return s.raise(err)
	}
	out, callErr := e.dispatch(s, ns, fn, self, args)
	if callErr != nil {
		return s.raise(callErr)
	}
	return e.pushAll(s, out)
}

// dispatch calls the dispatcher; a panic of the implementation becomes the call's
// error.
func (e *Engine) dispatch(s *strand, ns string, fn *vm.Function, self *vm.Object, args []vm.Value) (out []vm.Value, err error) {
	s.beginCall()
	defer s.endCall()
	defer func() {
		if p := recover(); p != nil {
			pe := panicError(p)
			pe.Namespace, pe.Function = ns, fn.Name
			out, err = nil, pe
		}
	}()
	out, err = e.dispat.Call(context.Context(s.ctx), ns, fn, self, args)
	var fault *vm.Fault
	if errors.As(err, &fault) {
		e.locate(s, fault)
	}
	return out, err
}

// locate tells a fault where in the script it came up, if it wants to know.
func (e *Engine) locate(s *strand, fault *vm.Fault) {
	var placed interface {
		At(position, traceback string)
	}
	if errors.As(fault.Err, &placed) {
		trace := traceback(s.L)
		placed.At(traceTop(trace), trace)
	}
}

// arguments converts the arguments of the running Go function from index first on,
// each as its parameter asks. params may be nil: then all are plain values.
func (e *Engine) arguments(s *strand, params []vm.Param, first int) ([]vm.Value, *vm.Error) {
	n := s.L.GetTop() - first + 1
	if n <= 0 {
		return nil, nil
	}
	args := make([]vm.Value, n)
	for i := range args {
		p := paramAt(params, i)
		v, err := e.argument(s, p, s.L.Get(first+i))
		if err != nil {
			ve, _ := err.(*vm.Error)
			if p != nil && ve != nil {
				return nil, vm.Errorf("validation", "%s: %s", p.Name, ve.Message)
			}
			return nil, vm.Errorf("validation", "argument %d: %s", i+1, err.Error())
		}
		args[i] = v
	}
	return args, nil
}

func (e *Engine) argument(s *strand, p *vm.Param, v glua.LValue) (vm.Value, error) {
	if p == nil {
		return e.fromLua(s, v, false)
	}
	switch p.Type {
	case vm.Opaque:
		if v == glua.LNil {
			return nil, nil
		}
		if ud, ok := v.(*glua.LUserData); ok {
			if o, ok := ud.Value.(*vm.Object); ok {
				return o, nil // a handle is the host's own, and keeps its identity
			}
		}
		return &vm.Ref{Value: v}, nil
	case vm.Options:
		if t, ok := v.(*glua.LTable); ok {
			return e.optionsFromLua(s, t)
		}
	}
	return e.fromLua(s, v, p.Mixed)
}

// paramAt gives the parameter that argument i belongs to, nil when there is none.
func paramAt(params []vm.Param, i int) *vm.Param {
	if i < len(params) {
		return &params[i]
	}
	if n := len(params); n > 0 && params[n-1].Rest {
		return &params[n-1]
	}
	return nil
}

// pushAll pushes results, top level: nil is nil.
func (e *Engine) pushAll(s *strand, out []vm.Value) int {
	for _, v := range out {
		lv, err := e.toLua(v)
		if err != nil {
			return s.raise(vm.Errorf("internal", "a result cannot enter the script: %s", err.Error()))
		}
		s.L.Push(lv)
	}
	return len(out)
}
