package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/vm"
)

func newAPI(p *process) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "api [NAME | limits]",
		Short: "The reference of what scripts can call",
		Long: `The reference of what scripts can call. NAME is a namespace (std.fs), a handle that
one gives (session, task, file), or a Lua module of the binary (agent, knl.device):
of a module, the comment that is its contract.`,
		Example: "  ashlar api\n  ashlar api std.fs\n  ashlar api session\n  ashlar api agent\n  ashlar api limits",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("api takes one name, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && args[0] == "limits":
				return printLimits(p.stdout, asJSON)
			case len(args) == 1:
				return printOne(p.stdout, args[0], asJSON)
			}
			return printAll(p.stdout, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printAll prints every signature: namespaces, handles, then the Lua modules.
func printAll(w io.Writer, asJSON bool) error {
	var list []any
	for _, m := range ashlar.Namespaces() {
		list = append(list, moduleObject(m))
		if asJSON {
			continue
		}
		fmt.Fprintf(w, "%-12s %s\n", m.Name, m.Doc)
		for _, f := range m.Funcs {
			fmt.Fprintf(w, "  %s\n", signature(m.Name+".", f))
		}
		for _, c := range m.Classes {
			fmt.Fprintf(w, "  %s: %s\n", c.Name, c.Doc)
			for _, f := range c.Methods {
				fmt.Fprintf(w, "    %s\n", signature(c.Name+":", f))
			}
		}
	}
	if !asJSON {
		fmt.Fprintf(w, "\nLua modules, for require (ashlar api NAME prints the contract):\n")
	}
	for _, m := range ashlar.LuaModules() {
		list = append(list, luaObject(m))
		if !asJSON {
			fmt.Fprintf(w, "  %-28s %s\n", m.Name, m.Doc)
		}
	}
	if asJSON {
		return writeJSON(w, list)
	}
	return nil
}

// printOne prints all that bears a name: knl is a module and a namespace.
func printOne(w io.Writer, name string, asJSON bool) error {
	var list []any
	var words []string
	known := func(n string) bool {
		words = append(words, n)
		return n == name
	}
	begin := func(o map[string]any) bool {
		if list = append(list, o); len(list) > 1 && !asJSON {
			fmt.Fprintln(w)
		}
		return !asJSON
	}
	modules := ashlar.LuaModules()
	for _, m := range modules {
		if m.Name == name && begin(luaObject(m)) {
			fmt.Fprintf(w, "require(%q)\n\n%s\n", m.Name, m.Contract)
		}
	}
	for _, m := range ashlar.Namespaces() {
		if known(m.Name) && begin(moduleObject(m)) {
			printModule(w, m)
		}
		for _, c := range m.Classes {
			if known(c.Name) && begin(classObject(c)) {
				printClass(w, c)
			}
		}
	}
	for _, m := range modules {
		if m.Name != "knl" {
			known(m.Name)
		}
	}
	switch {
	case len(list) == 0:
		words = append(words, "limits")
		if near := nearest(name, words); near != "" {
			return usagef("unknown name %q; did you mean %q?", name, near)
		}
		return usagef("unknown name %q; there are %s", name, strings.Join(words, ", "))
	case asJSON:
		return writeJSON(w, list)
	}
	return nil
}

func printModule(w io.Writer, m *vm.Module) {
	fmt.Fprintf(w, "%s: %s\n", m.Name, m.Doc)
	for _, f := range m.Funcs {
		printFunction(w, signature(m.Name+".", f), f)
	}
	for _, c := range m.Classes {
		fmt.Fprintln(w)
		printClass(w, c)
	}
}

func printClass(w io.Writer, c *vm.Class) {
	fmt.Fprintf(w, "%s: %s\n", c.Name, c.Doc)
	for _, f := range c.Methods {
		printFunction(w, signature(c.Name+":", f), f)
	}
}

func printFunction(w io.Writer, sig string, f vm.Function) {
	fmt.Fprintf(w, "\n%s\n    %s\n", sig, f.Doc)
	for _, p := range f.Params {
		for _, o := range p.Fields {
			fmt.Fprintf(w, "    %s.%s  %s%s\n", p.Name, o.Name, typeOf(o), docOf(o))
		}
	}
}

func docOf(p vm.Param) string {
	if p.Doc == "" {
		return ""
	}
	return "  " + p.Doc
}

// signature writes a function as a script calls it.
func signature(before string, f vm.Function) string {
	var in, out []string
	for _, p := range f.Params {
		s := p.Name + ": " + typeOf(p)
		if p.Rest {
			s = strings.TrimSuffix(p.Name, "…") + "…: " + typeOf(p)
		}
		in = append(in, s)
	}
	for _, p := range f.Results {
		out = append(out, typeOf(p))
	}
	s := before + f.Name + "(" + strings.Join(in, ", ") + ")"
	if len(out) > 0 {
		s += " -> " + strings.Join(out, ", ")
	}
	return s
}

func typeOf(p vm.Param) string {
	t := string(p.Type)
	if p.Type == vm.Handle && p.Class != "" {
		t = p.Class
	}
	for _, also := range p.Also {
		t += "|" + string(also)
	}
	if p.Optional {
		t += "?"
	}
	return t
}

func moduleObject(m *vm.Module) map[string]any {
	classes := []any{}
	for _, c := range m.Classes {
		classes = append(classes, classObject(c))
	}
	return map[string]any{"type": "namespace", "name": m.Name, "doc": m.Doc, "functions": functions(m.Funcs), "classes": classes}
}

func classObject(c *vm.Class) map[string]any {
	return map[string]any{"type": "handle", "name": c.Name, "doc": c.Doc, "methods": functions(c.Methods)}
}

func luaObject(m ashlar.LuaModule) map[string]any {
	return map[string]any{"type": "module", "name": m.Name, "doc": m.Doc, "sealed": m.Sealed, "contract": m.Contract}
}

func functions(list []vm.Function) []any {
	out := []any{}
	for _, f := range list {
		out = append(out, map[string]any{
			"name": f.Name, "doc": f.Doc, "params": params(f.Params), "results": params(f.Results),
			"effect": string(f.Effect), "capability": f.Capability, "waits": f.Waits,
		})
	}
	return out
}

func params(list []vm.Param) []any {
	out := []any{}
	for _, p := range list {
		o := map[string]any{"name": p.Name, "type": typeOf(p), "optional": p.Optional}
		if p.Doc != "" {
			o["doc"] = p.Doc
		}
		if len(p.Fields) > 0 {
			o["fields"] = params(p.Fields)
		}
		out = append(out, o)
	}
	return out
}

func printLimits(w io.Writer, asJSON bool) error {
	limits := ashlar.Limits()
	if asJSON {
		var list []any
		for _, l := range limits {
			list = append(list, map[string]any{"name": l.Name, "value": l.Value, "unit": l.Unit, "what": l.What})
		}
		return writeJSON(w, list)
	}
	for _, l := range limits {
		fmt.Fprintf(w, "%-18s %12d %-8s %s\n", l.Name, l.Value, l.Unit, l.What)
	}
	return nil
}
