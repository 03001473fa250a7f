package ashlar

import (
	"strings"

	"ashlar/embedded"
	"ashlar/stdlib"
	"ashlar/vm"
	"ashlar/vm/lua"
)

// Namespaces declares what scripts can call, in the order of the reference; each with
// the classes of the handles that it gives.
func Namespaces() []*vm.Module {
	return append(stdlib.Modules(stdlib.Needs{}), lua.IO())
}

// LuaModule is one module of the binary, as the reference shows it.
type LuaModule struct {
	Name     string // what require takes: "agent", "knl.fold"
	Sealed   bool   // no project may replace it
	Doc      string // the first line of its contract
	Contract string // the comment that its source opens with
}

// LuaModules lists the modules of the binary by name.
func LuaModules() []LuaModule {
	var all []LuaModule
	for _, name := range embedded.Names() {
		src, _ := embedded.Module(name)
		m := LuaModule{Name: name, Sealed: embedded.Sealed(name), Contract: leadingComment(string(src))}
		first, _, _ := strings.Cut(m.Contract, "\n")
		m.Doc = strings.TrimPrefix(first, name+": ")
		all = append(all, m)
	}
	return all
}

// leadingComment gives the comment that Lua source opens with, without its dashes.
func leadingComment(src string) string {
	var lines []string
	for line := range strings.Lines(src) {
		text, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "--")
		if !ok {
			break
		}
		lines = append(lines, strings.TrimPrefix(text, " "))
	}
	return strings.Join(lines, "\n")
}
