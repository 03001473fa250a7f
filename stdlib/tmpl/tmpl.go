// Package tmpl is the namespace std.tmpl: text from a template, in the language of
// Go's text/template over plain data. A template reaches nothing but its data, and
// ends: its steps and its output are bounded.
package tmpl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"text/template/parse"

	"ashlar/kernel/logjson"
	"ashlar/vm"
)

// Bounds of one rendering.
const (
	MaxSteps       = 1_000_000 // turns of loops, and templates that are called
	MaxCalls       = 100       // templates that call one another, at a time
	MaxNesting     = 50        // loops inside of one another, in one template
	MaxSourceBytes = 1 << 20
)

// Module declares the namespace.
func Module() *vm.Module {
	return &vm.Module{
		Name: "std.tmpl",
		Doc:  "Text from templates, in the language of Go's text/template: {{.name}}, {{range .list}}…{{end}}, {{if}}, {{define}}.",
		Funcs: []vm.Function{{
			Name: "render",
			Doc: "The text that a template makes of data. A field that is missing is an error that names it, with missing = \"empty\" it is nothing. " +
				"Beside the language's own functions there are json, upper, lower, trim, join, indent and default.",
			Params: []vm.Param{{Name: "template", Type: vm.String}, {Name: "data", Type: vm.Any, Optional: true}, {Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
				{Name: "missing", Type: vm.String, Optional: true, Doc: "\"error\" (the default) or \"empty\""},
			}}},
			Results: []vm.Param{{Name: "text", Type: vm.String}}, Effect: vm.Pure, Impl: render,
		}},
	}
}

// The names of the functions that bound a rendering: tick stands first in every block,
// enter first and leave last in every template. They write nothing. The depth is bounded
// because an error goes up through each loop by a panic of its own, in quadratic time.
const (
	tick  = "__tick"
	enter = "__enter"
	leave = "__leave"
)

func render(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	if len(c.Str(0)) > MaxSourceBytes {
		return nil, vm.Errorf("limit", "the template is longer than %d bytes", MaxSourceBytes)
	}
	missing := c.Map(2).Str("missing", "error")
	if missing != "error" && missing != "empty" {
		return nil, vm.Errorf("validation", "opts.missing is %q; it is \"error\" or \"empty\"", missing)
	}
	steps, depth := 0, 0
	funcs := functions()
	funcs[tick] = func() (string, error) {
		if steps++; steps > MaxSteps {
			return "", vm.Errorf("limit", "the template took more than %d steps", MaxSteps)
		}
		return "", context.Cause(ctx)
	}
	funcs[enter] = func() (string, error) {
		if depth++; depth > MaxCalls {
			return "", vm.Errorf("limit", "more than %d templates call one another", MaxCalls)
		}
		return "", nil
	}
	funcs[leave] = func() string {
		depth--
		return ""
	}
	t, err := template.New("template").Option("missingkey=" + map[string]string{"error": "error", "empty": "zero"}[missing]).Funcs(funcs).Parse(c.Str(0))
	if err != nil {
		return nil, fault(err)
	}
	if err := bounded(t, funcs); err != nil {
		return nil, err
	}
	out := &output{}
	if err := t.Execute(out, data(c.Args[1])); err != nil {
		return nil, fault(err)
	}
	return []vm.Value{out.String()}, nil
}

// fault keeps an error of ours and says of any other where in the template it is.
func fault(err error) error {
	var own *vm.Error
	if errors.As(err, &own) {
		return own
	}
	return vm.Errorf("validation", "%s", strings.TrimPrefix(err.Error(), "template: "))
}

// bounded puts the calls that bound a rendering into every template and every block.
func bounded(t *template.Template, funcs template.FuncMap) error {
	nodes := map[string]parse.Node{}
	for _, name := range []string{tick, enter, leave} {
		trees, err := parse.Parse(name, "{{"+name+"}}", "", "", funcs)
		if err != nil {
			return err
		}
		nodes[name] = trees[name].Root.Nodes[0]
	}
	for _, one := range t.Templates() {
		if one.Tree == nil || one.Root == nil {
			continue
		}
		if err := insert(one.Root, nodes[tick], 0); err != nil {
			return err
		}
		one.Root.Nodes = append(append([]parse.Node{nodes[enter]}, one.Root.Nodes...), nodes[leave])
	}
	return nil
}

func insert(list *parse.ListNode, node parse.Node, depth int) error {
	if list == nil {
		return nil
	}
	if depth > MaxNesting {
		return vm.Errorf("limit", "the template nests loops more than %d deep", MaxNesting)
	}
	list.Nodes = append([]parse.Node{node}, list.Nodes...)
	for _, n := range list.Nodes {
		var branch *parse.BranchNode
		below := depth
		switch x := n.(type) {
		case *parse.RangeNode:
			branch = &x.BranchNode
			below++
		case *parse.IfNode:
			branch = &x.BranchNode
		case *parse.WithNode:
			branch = &x.BranchNode
		default:
			continue
		}
		for _, list := range []*parse.ListNode{branch.List, branch.ElseList} {
			if err := insert(list, node, below); err != nil {
				return err
			}
		}
	}
	return nil
}

// output ends a rendering that would pass the bound of one string. What has no value
// is written as nothing.
type output struct{ strings.Builder }

func (o *output) Write(b []byte) (int, error) {
	if string(b) == "<no value>" { // what the language writes for null, in a write of its own
		return len(b), nil
	}
	if o.Len()+len(b) > vm.MaxStringBytes {
		return 0, tooLong()
	}
	return o.Builder.Write(b)
}

func tooLong() error {
	return vm.Errorf("limit", "the text would be longer than %d bytes", vm.MaxStringBytes)
}

// data gives a template values without methods: what it may do with them is its
// language's alone.
func data(v any) any {
	switch x := v.(type) {
	case json.Number:
		return string(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = data(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = data(e)
		}
		return out
	case nil, bool, int64, float64, string:
		return x
	}
	return vm.TypeName(v)
}

func short(text string) (string, error) {
	if len(text) > vm.MaxStringBytes {
		return "", tooLong()
	}
	return text, nil
}

func functions() template.FuncMap {
	return template.FuncMap{
		"upper": strings.ToUpper,
		"lower": strings.ToLower,
		"trim":  strings.TrimSpace,
		"json": func(v any) (string, error) {
			b, err := logjson.Marshal(v)
			return string(b), err
		},
		"join": func(sep string, list []any) (string, error) {
			parts, size := make([]string, len(list)), 0
			for i, v := range list {
				parts[i] = fmt.Sprint(v)
				if size += len(parts[i]) + len(sep); size > vm.MaxStringBytes {
					return "", tooLong()
				}
			}
			return strings.Join(parts, sep), nil
		},
		// The language's own, which would let a text double in a loop without an end.
		"print":    func(args ...any) (string, error) { return short(fmt.Sprint(args...)) },
		"println":  func(args ...any) (string, error) { return short(fmt.Sprintln(args...)) },
		"printf":   func(format string, args ...any) (string, error) { return short(fmt.Sprintf(format, args...)) },
		"html":     func(args ...any) (string, error) { return short(template.HTMLEscaper(args...)) },
		"js":       func(args ...any) (string, error) { return short(template.JSEscaper(args...)) },
		"urlquery": func(args ...any) (string, error) { return short(template.URLQueryEscaper(args...)) },
		"indent": func(n int, text string) (string, error) {
			if n < 0 || n > 1000 {
				return "", vm.Errorf("validation", "indent takes 0 to 1000, got %d", n)
			}
			margin := strings.Repeat(" ", n)
			if len(text)+n*(strings.Count(text, "\n")+1) > vm.MaxStringBytes {
				return "", tooLong()
			}
			return margin + strings.ReplaceAll(text, "\n", "\n"+margin), nil
		},
		"default": func(def, v any) any {
			if v == nil || v == "" {
				return def
			}
			return v
		},
	}
}
