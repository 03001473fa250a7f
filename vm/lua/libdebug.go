package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// traceLevels bounds a traceback to this many innermost calls.
const traceLevels = 40

// openDebug makes debug with traceback alone: the rest of debug reaches into other
// functions' locals and metatables.
func (e *Engine) openDebug() {
	e.table("debug", map[string]glua.LGFunction{"traceback": e.traceback})
}

// traceback is debug.traceback([thread,] [message [, level]]).
func (e *Engine) traceback(L *glua.LState) int {
	at, i := L, 1
	if _, ok := L.Get(1).(*glua.LState); ok {
		i = 2
		if co := e.checkCo(L, 1); co != nil {
			at = co.L
		}
	}
	msg := L.Get(i)
	if msg != glua.LNil && msg.Type() != glua.LTString && msg.Type() != glua.LTNumber {
		L.Push(msg)
		return 1
	}
	def := 1
	if at != L {
		def = 0
	}
	var b strings.Builder
	if msg != glua.LNil {
		b.WriteString(msg.String() + "\n")
	}
	b.WriteString("stack traceback:")
	if at != nil {
		writeStack(&b, at, L.OptInt(i+1, def))
	}
	return pushString(L, b.String())
}

// traceback is the stack of a thread, innermost call first.
func traceback(L *glua.LState) string {
	var b strings.Builder
	writeStack(&b, L, 0)
	return strings.TrimSpace(b.String())
}

func writeStack(b *strings.Builder, L *glua.LState, level int) {
	for n := 0; n < traceLevels; n++ {
		dbg, ok := L.GetStack(level + n)
		if !ok {
			return
		}
		if _, err := L.GetInfo("nSl", dbg, glua.LNil); err != nil {
			return
		}
		fmt.Fprintf(b, "\n\t%s in %s", strings.TrimSuffix(L.Where(level+n), " "), frameName(dbg))
	}
	b.WriteString("\n\t...")
}

func frameName(dbg *glua.Debug) string {
	switch {
	case dbg.What == "main":
		return "main chunk"
	case dbg.Name == "" || strings.HasPrefix(dbg.Name, "<") || strings.HasPrefix(dbg.Name, "("):
		return "function " + dbg.Name
	}
	return "function '" + dbg.Name + "'"
}
