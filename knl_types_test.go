package ashlar_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ashlar"
	"ashlar/vm"
)

// typesHead opens both files that are written from the declarations of knl.
const typesHead = `-- %s
-- Written from the declarations that 'ashlar api knl' prints; do not edit it:
-- 'go test . -run KnlTypes -update' writes it anew, and the same test holds it to them.
`

// namedTypes are the types that have a name of their own, each where it is declared:
// a parameter or a result, counted from 1, of a function or a session's method.
var namedTypes = []struct {
	name, of, where string
	n               int
}{
	{"AppendEvent", "session:append", "param", 1}, {"Amount", "session:reserve", "param", 1}, {"ApiReport", "knl.api", "result", 1},
	{"BeatId", "knl.new_beat_id", "result", 1}, {"Count", "session:len", "result", 1}, {"ErrorTable", "knl.error", "result", 1},
	{"EventsResult", "session:events", "results", 0}, {"OpenOpts", "knl.open", "param", 1}, {"Owner", "session:owner", "result", 1},
	{"QueryOpts", "session:query", "param", 3}, {"Remaining", "session:remaining", "result", 1}, {"ResumeOpts", "knl.resume", "param", 1},
	{"ScopeId", "session:scope_id", "result", 1}, {"Seq", "session:append", "result", 1}, {"SessionId", "session:id", "result", 1},
	{"ViewName", "session:view", "param", 1}, {"ViewOpts", "session:view", "param", 2},
}

// lshapeOf writes a declared value as an lshape expression.
func lshapeOf(p vm.Param) string {
	s := bareShape(p)
	if p.Doc != "" && s != "t.any" {
		s += fmt.Sprintf(":describe(%q)", p.Doc)
	}
	if p.Optional {
		s += ":is_optional()"
	}
	return s
}

func bareShape(p vm.Param) string {
	all := []string{shapeOfType(p.Type, p)}
	for _, also := range p.Also {
		all = append(all, shapeOfType(also, p))
	}
	if len(all) > 1 {
		return "t.any_of({ " + strings.Join(all, ", ") + " })"
	}
	return all[0]
}

func shapeOfType(typ vm.Type, p vm.Param) string {
	switch typ {
	case vm.String, vm.Bytes:
		return "t.string"
	case vm.Number:
		return "t.number"
	case vm.Integer:
		return "t.integer"
	case vm.Boolean:
		return "t.boolean"
	case vm.List:
		return "t.array_of(t.any)"
	case vm.Map, vm.Options:
		if len(p.Fields) == 0 {
			return "t.table"
		}
		var fields []string
		for _, f := range p.Fields {
			fields = append(fields, f.Name+" = "+lshapeOf(f))
		}
		open := ""
		if typ == vm.Map {
			open = ", { open = true }"
		}
		return "t.shape({ " + strings.Join(fields, ", ") + " }" + open + ")"
	case vm.Table:
		return "t.table"
	case vm.Callable:
		return "t.fn"
	case vm.Handle:
		return fmt.Sprintf("t.any:describe(%q)", "a handle: "+p.Class)
	}
	return "t.any"
}

// catsOf writes a declared value as LuaCATS does.
func catsOf(p vm.Param) string {
	var all []string
	for _, typ := range append([]vm.Type{p.Type}, p.Also...) {
		all = append(all, catsType(typ, p))
	}
	return strings.Join(all, "|")
}

func catsType(typ vm.Type, p vm.Param) string {
	switch typ {
	case vm.String, vm.Bytes:
		return "string"
	case vm.Number, vm.Integer, vm.Boolean:
		return string(typ)
	case vm.List:
		return "any[]"
	case vm.Map, vm.Options:
		if len(p.Fields) == 0 {
			return "table"
		}
		var fields []string
		for _, f := range p.Fields {
			q := ""
			if f.Optional {
				q = "?"
			}
			fields = append(fields, f.Name+q+": "+catsOf(f))
		}
		return "{ " + strings.Join(fields, ", ") + " }"
	case vm.Table:
		return "table"
	case vm.Callable:
		return "function"
	case vm.Handle:
		return "knl." + p.Class
	}
	return "any"
}

type declared struct {
	module *vm.Module
	funcs  map[string]vm.Function // "knl.open", "session:append"
}

func knlDeclared(t *testing.T) declared {
	t.Helper()
	d := declared{funcs: map[string]vm.Function{}}
	for _, m := range ashlar.Namespaces() {
		if m.Name != "knl" {
			continue
		}
		d.module = m
		for _, f := range m.Funcs {
			d.funcs["knl."+f.Name] = f
		}
		for _, c := range m.Classes {
			for _, f := range c.Methods {
				d.funcs[c.Name+":"+f.Name] = f
			}
		}
	}
	if d.module == nil {
		t.Fatal("no namespace knl")
	}
	return d
}

// shapes writes embedded/knl_types/init.lua.
func (d declared) shapes(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, typesHead, "knl_types: the types of knl's native half, as lshape schemas. Sealed.")
	b.WriteString(`--
--   types.<Name>                     a type that has a name: SessionId, OpenOpts, Remaining, …
--   types.module.<function>          {doc, args = {{name, schema}, …}, returns = {…}}
--   types.session.<method>           the same
--
-- In LuaCATS it is knl_types.luacats.

local t = require("lshape.t")

local M = {}

`)
	for _, n := range namedTypes {
		f, ok := d.funcs[n.of]
		if !ok {
			continue // not declared yet
		}
		var s string
		switch n.where {
		case "param":
			s = bareShape(f.Params[n.n-1])
		case "result":
			p := f.Results[n.n-1]
			p.Doc = ""
			s = lshapeOf(p)
		case "results":
			var items []string
			for _, p := range f.Results {
				items = append(items, lshapeOf(p))
			}
			s = "t.tuple({ " + strings.Join(items, ", ") + " })"
		}
		if n.name == "ViewName" {
			s = `t.literal("tail")`
		}
		fmt.Fprintf(&b, "M.%s = %s\n", n.name, s)
	}
	list := func(title string, funcs []vm.Function) {
		fmt.Fprintf(&b, "\nM.%s = {\n", title)
		for _, f := range funcs {
			fmt.Fprintf(&b, "  %s = {\n    doc = %q,\n    args = {", f.Name, f.Doc)
			write := func(params []vm.Param) {
				for _, p := range params {
					fmt.Fprintf(&b, "\n      { name = %q, schema = %s },", p.Name, lshapeOf(p))
				}
				if len(params) > 0 {
					b.WriteString("\n    ")
				}
			}
			write(f.Params)
			b.WriteString("},\n    returns = {")
			write(f.Results)
			b.WriteString("},\n  },\n")
		}
		b.WriteString("}\n")
	}
	list("module", d.module.Funcs)
	for _, c := range d.module.Classes {
		list(c.Name, c.Methods)
	}
	b.WriteString("\nreturn M\n")
	return b.String()
}

// cats writes embedded/knl_types/luacats.lua.
func (d declared) cats() string {
	var b strings.Builder
	fmt.Fprintf(&b, typesHead, "knl_types.luacats: the types of knl's native half, for editors. Sealed; it does nothing.")
	b.WriteString("\n---@meta\n")
	write := func(title, doc, sep string, funcs []vm.Function) {
		fmt.Fprintf(&b, "\n---%s\n---@class %s\nlocal %s = {}\n", line(doc), title, strings.ReplaceAll(title, ".", "_"))
		for _, f := range funcs {
			fmt.Fprintf(&b, "\n---%s\n", line(f.Doc))
			var names []string
			for _, p := range f.Params {
				q := ""
				if p.Optional {
					q = "?"
				}
				names = append(names, p.Name)
				fmt.Fprintf(&b, "---@param %s%s %s%s\n", p.Name, q, catsOf(p), spaced(p.Doc))
			}
			for _, r := range f.Results {
				q := ""
				if r.Optional {
					q = "?"
				}
				fmt.Fprintf(&b, "---@return %s%s %s\n", catsOf(r), q, r.Name)
			}
			fmt.Fprintf(&b, "function %s%s%s(%s) end\n", strings.ReplaceAll(title, ".", "_"), sep, f.Name, strings.Join(names, ", "))
		}
	}
	for _, c := range d.module.Classes {
		write("knl."+c.Name, c.Doc, ":", c.Methods)
	}
	write("knl", d.module.Doc, ".", d.module.Funcs)
	b.WriteString("\nreturn {}\n")
	return b.String()
}

func line(s string) string { return strings.Join(strings.Fields(s), " ") }

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return " " + line(s)
}

// TestKnlTypesAreTheDeclarations holds the shipped type files to the syscall table.
func TestKnlTypesAreTheDeclarations(t *testing.T) {
	d := knlDeclared(t)
	for path, want := range map[string]string{"embedded/knl_types/init.lua": d.shapes(t), "embedded/knl_types/luacats.lua": d.cats()} {
		if *update {
			if err := os.MkdirAll("embedded/knl_types", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != want {
			t.Errorf("%s is older than the declarations: go test . -run KnlTypes -update, then -run EmbeddedModulesAreCompiled -update", path)
		}
	}
}
