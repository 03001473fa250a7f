// Package string is the namespace std.string: text by characters, not by patterns.
package string

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"ashlar/vm"
)

// Module declares the namespace. Positions and lengths are in characters (code
// points), and nothing in it is a pattern.
func Module() *vm.Module {
	in := vm.Param{Name: "text", Type: vm.String}
	text := func(name string) vm.Param { return vm.Param{Name: name, Type: vm.String} }
	count := func(name string) vm.Param { return vm.Param{Name: name, Type: vm.Integer} }
	optional := func(p vm.Param, doc string) vm.Param { p.Optional, p.Doc = true, doc; return p }
	m := &vm.Module{Name: "std.string", Doc: "Text by characters. Nothing here is a pattern; for those there is std.re."}
	fn := func(name, doc string, result vm.Type, impl func(c *vm.Call) (vm.Value, error), params ...vm.Param) {
		m.Funcs = append(m.Funcs, vm.Function{
			Name: name, Doc: doc, Params: append([]vm.Param{in}, params...), Results: []vm.Param{{Name: "result", Type: result}}, Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				v, err := impl(c)
				return []vm.Value{v}, err
			},
		})
	}
	plain := func(name, doc string, f func(s string) vm.Value, result vm.Type) {
		fn(name, doc, result, func(c *vm.Call) (vm.Value, error) { return f(c.Str(0)), nil })
	}
	plain("trim", "Without white space at both ends.", func(s string) vm.Value { return strings.TrimSpace(s) }, vm.String)
	plain("trim_start", "Without white space at the start.", func(s string) vm.Value { return strings.TrimLeftFunc(s, isSpace) }, vm.String)
	plain("trim_end", "Without white space at the end.", func(s string) vm.Value { return strings.TrimRightFunc(s, isSpace) }, vm.String)
	plain("upper", "In upper case.", func(s string) vm.Value { return strings.ToUpper(s) }, vm.String)
	plain("lower", "In lower case.", func(s string) vm.Value { return strings.ToLower(s) }, vm.String)
	plain("chars", "Its characters, a list.", func(s string) vm.Value { return chars(s) }, vm.List)
	plain("char_count", "How many characters it has.", func(s string) vm.Value { return int64(utf8.RuneCountInString(s)) }, vm.Integer)
	plain("reverse", "Its characters in the other order.", func(s string) vm.Value {
		r := []rune(s)
		slices.Reverse(r)
		return string(r)
	}, vm.String)
	fn("split", "The parts between separators, a list; with limit at most so many, the last one whole.", vm.List, split, text("separator"), optional(count("limit"), "at most so many parts"))
	fn("starts_with", "Whether it begins with a text.", vm.Boolean, func(c *vm.Call) (vm.Value, error) { return strings.HasPrefix(c.Str(0), c.Str(1)), nil }, text("prefix"))
	fn("ends_with", "Whether it ends with a text.", vm.Boolean, func(c *vm.Call) (vm.Value, error) { return strings.HasSuffix(c.Str(0), c.Str(1)), nil }, text("suffix"))
	fn("contains", "Whether it holds a text.", vm.Boolean, func(c *vm.Call) (vm.Value, error) { return strings.Contains(c.Str(0), c.Str(1)), nil }, text("part"))
	fn("replace", "With the first occurrence of a text replaced.", vm.String, func(c *vm.Call) (vm.Value, error) { return replace(c, 1) }, text("old"), text("new"))
	fn("replace_all", "With every occurrence of a text replaced.", vm.String, func(c *vm.Call) (vm.Value, error) { return replace(c, -1) }, text("old"), text("new"))
	fn("pad_start", "Filled up at the start to so many characters.", vm.String, func(c *vm.Call) (vm.Value, error) {
		fill, err := padding(c)
		return fill + c.Str(0), err
	}, count("width"), optional(text("fill"), "default a space"))
	fn("pad_end", "Filled up at the end to so many characters.", vm.String, func(c *vm.Call) (vm.Value, error) {
		fill, err := padding(c)
		return c.Str(0) + fill, err
	}, count("width"), optional(text("fill"), "default a space"))
	fn("truncate", "At most so many characters, the suffix among them where something was cut.", vm.String, truncate, count("width"), optional(text("suffix"), "default ..."))
	return m
}

func isSpace(r rune) bool { return strings.TrimSpace(string(r)) == "" }

func chars(s string) []any {
	out := make([]any, 0, len(s))
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

func split(c *vm.Call) (vm.Value, error) {
	if c.Str(1) == "" {
		return nil, vm.Errorf("validation", "the separator is empty; std.string.chars gives the characters")
	}
	limit := c.Int(2, -1)
	if c.Args[2] != nil && limit < 1 {
		return nil, vm.Errorf("validation", "limit must be at least 1, got %d", limit)
	}
	parts := strings.SplitN(c.Str(0), c.Str(1), int(limit))
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out, nil
}

// tooLong is the error of a text that would pass the bound of one string.
func tooLong() error {
	return vm.Errorf("limit", "the text would be longer than %d bytes", vm.MaxStringBytes)
}

func replace(c *vm.Call, n int) (vm.Value, error) {
	s, old, fresh := c.Str(0), c.Str(1), c.Str(2)
	if old == "" {
		return nil, vm.Errorf("validation", "old is empty")
	}
	if grows := len(fresh) - len(old); grows > 0 && n < 0 && len(s)+grows*strings.Count(s, old) > vm.MaxStringBytes {
		return nil, tooLong()
	}
	return strings.Replace(s, old, fresh, n), nil
}

func padding(c *vm.Call) (string, error) {
	fill, width := " ", c.Int(1, 0)
	if c.Args[2] != nil {
		fill = c.Str(2)
	}
	if fill == "" {
		return "", vm.Errorf("validation", "fill is empty")
	}
	missing := width - int64(utf8.RuneCountInString(c.Str(0)))
	if missing <= 0 {
		return "", nil
	}
	if missing > vm.MaxStringBytes/utf8.UTFMax {
		return "", tooLong()
	}
	whole, rest := missing/int64(utf8.RuneCountInString(fill)), missing%int64(utf8.RuneCountInString(fill))
	return strings.Repeat(fill, int(whole)) + string([]rune(fill)[:rest]), nil
}

func truncate(c *vm.Call) (vm.Value, error) {
	suffix, width := "...", c.Int(1, 0)
	if c.Args[2] != nil {
		suffix = c.Str(2)
	}
	if width < 0 {
		return nil, vm.Errorf("validation", "width must not be negative, got %d", width)
	}
	s := c.Str(0)
	if int64(utf8.RuneCountInString(s)) <= width {
		return s, nil
	}
	room := max(0, width-int64(utf8.RuneCountInString(suffix)))
	return string([]rune(s)[:room]) + string([]rune(suffix)[:min(width, int64(utf8.RuneCountInString(suffix)))]), nil
}
