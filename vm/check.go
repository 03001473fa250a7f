package vm

import (
	"encoding/json"
	"math"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// checkArgs holds arguments to their declaration and gives one value for each
// parameter. Its wording is the only one for argument errors in any language.
func checkArgs(params []Param, args []Value) ([]Value, error) {
	out := make([]Value, len(params), max(len(params), len(args)))
	for i, p := range params {
		if p.Rest {
			out = out[:i]
			for _, a := range args[min(i, len(args)):] {
				v, err := p.check(p.Name, a)
				if err != nil {
					return nil, err
				}
				out = append(out, v)
			}
			return out, nil
		}
		var a Value
		if i < len(args) {
			a = args[i]
		}
		v, err := p.check(p.Name, a)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	for i := len(params); i < len(args); i++ {
		if args[i] != nil {
			return nil, Errorf("validation", "takes %d arguments, got %d", len(params), len(args))
		}
	}
	return out, nil
}

// check holds one value to its declaration and gives it in its declared shape: an
// empty table, which no script language can call a list or an object, becomes what
// the parameter asks for.
func (p Param) check(path string, v Value) (Value, error) {
	if v == nil {
		if p.Optional || p.Type == Any || p.Type == Opaque {
			return nil, nil
		}
		return nil, Errorf("validation", "%s is required (a %s)", path, p.wants())
	}
	as := p.Type
	if !p.takes(as, v) {
		as = ""
		for _, t := range p.Also {
			if p.takes(t, v) {
				as = t
				break
			}
		}
		if as == "" {
			return nil, Errorf("validation", "%s: got %s, want %s", path, TypeName(v), p.wants())
		}
	}
	switch as {
	case List:
		if _, isMap := v.(map[string]any); isMap {
			return []any{}, nil
		}
	case Map, Options:
		if _, isList := v.([]any); isList {
			return map[string]any{}, nil
		}
		if as == Options {
			return v, p.checkFields(path, v.(map[string]any))
		}
	}
	return v, nil
}

// checkFields checks an options table in place: its values in their declared shape
// replace those that came.
func (p Param) checkFields(path string, opts map[string]any) error {
	known := 0
	for _, f := range p.Fields {
		given, present := opts[f.Name]
		if present {
			known++
		}
		v, err := f.check(path+"."+f.Name, given)
		if err != nil {
			return err
		}
		if present {
			opts[f.Name] = v
		}
	}
	if known == len(opts) {
		return nil
	}
	var unknown []string
	for k := range opts {
		if !slices.ContainsFunc(p.Fields, func(f Param) bool { return f.Name == k }) {
			unknown = append(unknown, k)
		}
	}
	sort.Strings(unknown)
	return Errorf("validation", "%s: unknown option %q; it takes %s", path, unknown[0], names(p.Fields))
}

func (p Param) takes(t Type, v Value) bool {
	switch t {
	case Any, Opaque:
		return true
	case String:
		s, ok := v.(string)
		return ok && utf8.ValidString(s)
	case Bytes:
		_, ok := v.(string)
		return ok
	case Number:
		switch n := v.(type) {
		case int64, json.Number:
			return true
		case float64:
			return !math.IsNaN(n) && !math.IsInf(n, 0)
		}
	case Integer:
		switch n := v.(type) {
		case int64, json.Number:
			return true
		case float64:
			return n == math.Trunc(n) && math.Abs(n) < 1<<63
		}
	case Boolean:
		_, ok := v.(bool)
		return ok
	case List:
		if m, isMap := v.(map[string]any); isMap {
			return len(m) == 0
		}
		_, ok := v.([]any)
		return ok
	case Map, Options:
		if l, isList := v.([]any); isList {
			return len(l) == 0
		}
		_, ok := v.(map[string]any)
		return ok
	case Table:
		switch v.(type) {
		case []any, map[string]any:
			return true
		}
	case Callable:
		_, ok := v.(*Func)
		return ok
	case Handle:
		o, ok := v.(*Object)
		return ok && (p.Class == "" || o.Class.Name == p.Class)
	}
	return false
}

func (p Param) wants() string {
	all := []string{string(p.Type)}
	if p.Type == Handle && p.Class != "" {
		all[0] = p.Class
	}
	if p.Type == Options {
		all[0] = "table of options"
	}
	for _, t := range p.Also {
		all = append(all, string(t))
	}
	return strings.Join(all, " or ")
}

func names(fields []Param) string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

// TypeName names a neutral value's type as messages do.
func TypeName(v Value) string {
	switch n := v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case int64, json.Number:
		return "integer"
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return "a number that is not finite"
		}
		return "number"
	case string:
		if !utf8.ValidString(n) {
			return "string that is not UTF-8"
		}
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	case *Func:
		return "function"
	case *Object:
		return n.Class.Name
	case *Ref:
		return "value"
	}
	return "host value"
}
