package lua

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"
)

// instructions is gopher-lua's table of what each opcode does; the last parameter
// of an entry is a call frame, which nothing here looks into. The type must stay
// that of the variable in its package (TestBombsEndAtTheirBound fails when not).
//
//go:linkname instructions github.com/yuin/gopher-lua.jumpTable
var instructions [glua.OP_NOP + 1]func(L *glua.LState, inst uint32, frame unsafe.Pointer) int

// The operator `..` is an instruction, not a builtin, so it needs its own bound: a
// string of a gigabyte is one copy that nothing can preempt, the collector and
// with it every other goroutine waits for it, the watchdog too, and the memory is
// taken before anyone could say no. Wrapping the instruction costs less than a
// nanosecond; the alternative is a fork of gopher-lua. States that are not ours
// are left alone.
var _ = boundConcat()

func boundConcat() bool {
	plain := instructions[glua.OP_CONCAT]
	instructions[glua.OP_CONCAT] = func(L *glua.LState, inst uint32, frame unsafe.Pointer) int {
		first, last := int(inst&0x1ff), int(inst>>9)&0x1ff
		size := 0
		for i := first; i <= last; i++ {
			if s, ok := L.Get(i + 1).(glua.LString); ok { // Get counts registers from 1
				size += len(s)
			}
		}
		if size > concatFree {
			if c, ok := L.Context().(*strandContext); ok {
				c.strand.eng.sizeCheck(L, size)
			}
		}
		return plain(L, inst, frame)
	}
	return true
}

// concatFree is what is concatenated without asking whose state it is.
const concatFree = 1 << 20
