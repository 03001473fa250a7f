package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/stdlib"
	"ashlar/vm"
)

func newAPI(p *process) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "api [NAMESPACE | limits]",
		Short:   "The syscall reference: what scripts can call",
		Example: "  ashlar api\n  ashlar api std.fs\n  ashlar api limits",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("api takes one namespace, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			if name == "limits" {
				return printLimits(p.stdout, asJSON)
			}
			return printAPI(p.stdout, name, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printAPI(w io.Writer, name string, asJSON bool) error {
	modules := stdlib.Modules(stdlib.Needs{})
	var names []string
	var list []any
	found := false
	for _, m := range modules {
		names = append(names, m.Name)
		if name != "" && m.Name != name {
			continue
		}
		found = true
		if asJSON {
			list = append(list, moduleObject(m))
			continue
		}
		if name == "" {
			fmt.Fprintf(w, "%-12s %s\n", m.Name, m.Doc)
			for _, f := range m.Funcs {
				fmt.Fprintf(w, "  %s\n", signature(m.Name, f))
			}
			continue
		}
		printModule(w, m)
	}
	if !found {
		if near := nearest(name, names); near != "" {
			return usagef("unknown namespace %q; did you mean %q?", name, near)
		}
		return usagef("unknown namespace %q; there are %s", name, strings.Join(names, ", "))
	}
	if asJSON {
		return writeJSON(w, list)
	}
	return nil
}

func printModule(w io.Writer, m *vm.Module) {
	fmt.Fprintf(w, "%s: %s\n", m.Name, m.Doc)
	for _, f := range m.Funcs {
		printFunction(w, signature(m.Name, f), f)
	}
	for _, c := range m.Classes {
		fmt.Fprintf(w, "\n%s: %s\n", c.Name, c.Doc)
		for _, f := range c.Methods {
			printFunction(w, strings.Replace(signature(c.Name, f), c.Name+".", c.Name+":", 1), f)
		}
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
func signature(module string, f vm.Function) string {
	var in, out []string
	for _, p := range f.Params {
		s := p.Name + ": " + typeOf(p)
		if p.Rest {
			s = p.Name + "…: " + typeOf(p)
		}
		in = append(in, s)
	}
	for _, p := range f.Results {
		out = append(out, typeOf(p))
	}
	s := module + "." + f.Name + "(" + strings.Join(in, ", ") + ")"
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
	funcs := func(list []vm.Function) []any {
		out := []any{}
		for _, f := range list {
			out = append(out, map[string]any{
				"name": f.Name, "doc": f.Doc, "params": params(f.Params), "results": params(f.Results),
				"effect": string(f.Effect), "capability": f.Capability, "waits": f.Waits,
			})
		}
		return out
	}
	classes := []any{}
	for _, c := range m.Classes {
		classes = append(classes, map[string]any{"name": c.Name, "doc": c.Doc, "methods": funcs(c.Methods)})
	}
	return map[string]any{"name": m.Name, "doc": m.Doc, "functions": funcs(m.Funcs), "classes": classes}
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
