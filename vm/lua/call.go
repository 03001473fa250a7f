package lua

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// maxCallbacks bounds what calls the host, which calls back, which calls the host: Lua's
// own bound for C. The traceback that an error collects at each level makes thousands of
// them take minutes to unwind.
const maxCallbacks = 200

// call runs a Lua function on the strand's thread, which holds the lock, and gives
// what it returns. Errors are *vm.Error; a Go panic on the way is one of kind
// internal.
func (s *strand) call(fn glua.LValue, args []glua.LValue) ([]glua.LValue, error) {
	if s.callbacks > maxCallbacks {
		return nil, vm.Errorf("limit", "stack overflow: more than %d calls through the host are nested", maxCallbacks)
	}
	rets, err := s.protected(fn, args)
	if err != nil {
		return nil, s.toError(err)
	}
	return rets, nil
}

// protected is call with the error as Lua has it.
func (s *strand) protected(fn glua.LValue, args []glua.LValue) (rets []glua.LValue, err error) {
	L := s.L
	top := L.GetTop()
	defer func() {
		if p := recover(); p != nil { // PCall itself failed, the stack is not to be trusted
			rets, err = nil, panicError(p)
		}
	}()
	n, was := len(args), shares(L)
	if _, below := L.GetStack(0); below {
		share(L, true)
		L.Push(s.eng.lib.cutting)
		n++
	}
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	err = L.PCall(n, glua.MultRet, nil)
	share(L, was)
	if err != nil {
		L.SetTop(top)
		return nil, err
	}
	rets = stackFrom(L, top+1)
	L.SetTop(top)
	return rets, nil
}

// callNeutral is call with neutral values on both sides; byRef leaves the results
// in Lua's own form. When the strand's context ended it, the error is its cause.
func (s *strand) callNeutral(fn *glua.LFunction, byRef bool, args []vm.Value) ([]vm.Value, error) {
	e := s.eng
	in := make([]glua.LValue, len(args))
	for i, a := range args {
		v, err := e.toLua(a)
		if err != nil {
			return nil, err
		}
		in[i] = v
	}
	rets, err := s.call(fn, in)
	if err != nil {
		if s.ctx.Err() != nil {
			if e.root.Err() == nil {
				e.dispat.Cut(s.task, funcName(fn))
			}
			return nil, context.Cause(s.ctx)
		}
		return nil, err
	}
	out := make([]vm.Value, len(rets))
	for i, r := range rets {
		if byRef {
			out[i] = &vm.Ref{Value: r}
			continue
		}
		if out[i], err = e.fromLua(s, r, false); err != nil {
			return nil, vm.Errorf("validation", "result %d of %s: %s", i+1, funcName(fn), err.Error())
		}
	}
	return out, nil
}

// newFunc gives the host's handle for a Lua function.
func (e *Engine) newFunc(fn *glua.LFunction) *vm.Func {
	f := vm.NewFunc(funcName(fn), func(ctx context.Context, byRef bool, args []vm.Value) ([]vm.Value, error) {
		s, leave, ok := e.borrow(ctx)
		if !ok {
			return nil, vm.Errorf("closed", "the script engine was closed")
		}
		clean := false
		defer func() { leave(clean) }()
		out, err := s.callNeutral(fn, byRef, args)
		clean = err == nil
		return out, err
	})
	f.Bound = fn
	return f
}

// funcName says where a function was defined.
func funcName(fn *glua.LFunction) string {
	if fn.IsG {
		return "[builtin]"
	}
	return fmt.Sprintf("%s:%d", fn.Proto.SourceName, fn.Proto.LineDefined)
}

// raise raises a host error into the Lua that runs on the strand: the text of its
// kind, or the very value that a script raised before. What must end the run also
// cancels it.
func (s *strand) raise(err error) int {
	var exit *vm.Exit
	var fault *vm.Fault
	if errors.As(err, &exit) || errors.As(err, &fault) {
		s.eng.fault(err)
		s.L.Error(glua.LString(err.Error()), 0)
	}
	var e *vm.Error
	if !errors.As(err, &e) {
		kind, msg := s.eng.opts.KindOf(err)
		e = &vm.Error{Kind: kind, Message: msg, Cause: err}
	}
	s.raised = e
	if ref, ok := e.Value.(*vm.Ref); ok {
		if v, ok := ref.Value.(glua.LValue); ok {
			s.L.Error(v, 0)
		}
	}
	s.L.Error(glua.LString(e.Error()), 0)
	return 0
}

// toError gives an error that left Lua its engine-neutral form. The *vm.Error that
// was raised last on this strand is found again by its text, so that its kind and
// cause survive a pcall and a second error().
func (s *strand) toError(err error) error {
	api, ok := err.(*glua.ApiError)
	if !ok {
		return err
	}
	trace := strings.TrimSpace(api.StackTrace)
	text, isText := api.Object.(glua.LString)
	if api.Type == glua.ApiErrorPanic {
		e := panicError(string(text))
		e.Position, e.Traceback = traceTop(trace), trace
		return e
	}
	if !isText {
		if known := s.raised; known != nil {
			if ref, ok := known.Value.(*vm.Ref); ok && ref.Value == any(api.Object) {
				return known
			}
		}
		return &vm.Error{Message: s.describe(api.Object), Value: &vm.Ref{Value: api.Object}, Traceback: trace}
	}
	msg := clearText(string(text))
	pos, rest := splitPosition(msg)
	if known := s.raised; known != nil && (known.Error() == msg || known.Error() == rest) {
		e := *known
		e.Position, e.Traceback = firstOf(e.Position, pos, traceTop(trace)), firstOf(e.Traceback, trace)
		return &e
	}
	return &vm.Error{Message: msg, Position: pos, Traceback: trace}
}

// describe is the text of an error value that is no string.
func (s *strand) describe(v glua.LValue) string {
	if t, ok := v.(*glua.LTable); ok {
		if m, ok := t.RawGetString("message").(glua.LString); ok {
			return string(m)
		}
	}
	if _, ok := s.L.GetMetaField(v, "__tostring").(*glua.LFunction); ok {
		top := s.L.GetTop()
		defer s.L.SetTop(top)
		s.L.Push(s.eng.lib.tostring)
		s.L.Push(v)
		was := shares(s.L)
		err := s.L.PCall(1, 1, nil)
		share(s.L, was)
		if err == nil {
			return s.L.Get(-1).String()
		}
	}
	return fmt.Sprintf("(error object is a %s value)", v.Type())
}

// panicError is the error of a Go panic inside Lua or a syscall.
func panicError(p any) *vm.Error {
	text := fmt.Sprint(p)
	if strings.Contains(text, "callstack overflow") {
		return vm.Errorf("limit", "stack overflow: calls are nested too deep")
	}
	e := vm.Errorf("internal", "the host failed inside this call: %s", text)
	e.Cause = fmt.Errorf("panic: %s\n%s", text, debug.Stack())
	return e
}

// clearText says in words what gopher-lua says in its own terms.
func clearText(msg string) string {
	const overflow = "registry overflow"
	if strings.HasSuffix(msg, overflow) {
		return strings.TrimSuffix(msg, overflow) +
			fmt.Sprintf("stack overflow: more than %d values are live in one thread", maxRegistry)
	}
	return msg
}

// splitPosition takes "agent.lua:12: text" apart; pos is "" when there is none.
func splitPosition(msg string) (pos, rest string) {
	end := strings.Index(msg, ": ")
	if end < 0 {
		return "", msg
	}
	colon := strings.LastIndexByte(msg[:end], ':')
	if colon <= 0 || colon+1 == end {
		return "", msg
	}
	for _, c := range msg[colon+1 : end] {
		if c < '0' || c > '9' {
			return "", msg
		}
	}
	return msg[:end], msg[end+2:]
}

// traceTop gives the position of the innermost Lua frame of a traceback.
func traceTop(trace string) string {
	for line := range strings.SplitSeq(trace, "\n") {
		where, _, ok := strings.Cut(strings.TrimSpace(line), ": in ")
		if ok && where != "[G]" {
			return where
		}
	}
	return ""
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// redacted is err as it may leave the VM.
func (e *Engine) redacted(err error) error {
	var ve *vm.Error
	if !errors.As(err, &ve) {
		return err
	}
	clean := *ve
	clean.Message = e.host.Redact(clean.Message)
	clean.Traceback = e.host.Redact(clean.Traceback)
	return &clean
}

// errorValue is what a script sees of an error that a protected call gave.
func errorValue(err error) glua.LValue {
	api, ok := err.(*glua.ApiError)
	switch {
	case !ok:
		return glua.LString(err.Error())
	case api.Type == glua.ApiErrorPanic:
		return glua.LString(panicError(api.Object.String()).Error())
	}
	if text, ok := api.Object.(glua.LString); ok {
		return glua.LString(clearText(string(text)))
	}
	return api.Object
}
