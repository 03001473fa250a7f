package lua

import (
	"reflect"
	"sync"
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// When gopher-lua raises an error, it cuts every function that is running loose from
// the locals that it shares with its enclosing function, also those below the pcall
// that catches the error: what a closure writes to such a local afterwards is lost.
// It leaves them alone while a thread says that it has an error handler, but then the
// functions that do end by the error are not cut loose either. So a thread says so
// within a protected call, which itself cuts those above it, before they are unwound.

// closeUpvalues cuts the functions whose registers lie at idx and above loose.
//
//go:linkname closeUpvalues github.com/yuin/gopher-lua.(*LState).closeUpvalues
func closeUpvalues(L *glua.LState, idx int)

// stateFields are the places of gopher-lua's own fields (TestLocalsAreSharedAfterAnError
// fails when they are not what they were).
type stateFields struct{ handler, registers, top uintptr }

var fields = sync.OnceValue(func() stateFields {
	state := reflect.TypeFor[glua.LState]()
	handler, _ := state.FieldByName("hasErrorFunc")
	registers, _ := state.FieldByName("reg")
	top, _ := registers.Type.Elem().FieldByName("top")
	return stateFields{handler.Offset, registers.Offset, top.Offset}
})

// shares reports whether errors of a thread leave the functions below the protected
// call alone, and share sets it. gopher-lua's PCall takes it back when it returns, so
// whoever calls it puts back what was.
func shares(L *glua.LState) bool {
	return *(*bool)(unsafe.Add(unsafe.Pointer(L), fields().handler))
}

func share(L *glua.LState, yes bool) {
	*(*bool)(unsafe.Add(unsafe.Pointer(L), fields().handler)) = yes
}

// cutting calls its first argument with the others, and cuts what ends by an error
// above it loose: for a call from Go with Lua functions below it on the thread.
func cutting(L *glua.LState) int {
	base, plain := frameBase(L), L.Panic
	L.Panic = func(L *glua.LState) {
		closeUpvalues(L, base)
		plain(L)
	}
	L.Call(L.GetTop()-1, glua.MultRet)
	return L.GetTop()
}

// frameBase is the register at which the running function's frame begins.
func frameBase(L *glua.LState) int {
	registers := *(*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(L), fields().registers))
	return *(*int)(unsafe.Add(registers, fields().top)) - L.GetTop()
}
