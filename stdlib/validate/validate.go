// Package validate is the namespace std.validate: a quick check of a table's fields.
package validate

import (
	"context"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"ashlar/vm"
)

// types are the names that a field's type may have.
var types = []string{"string", "number", "integer", "boolean", "table", "list", "object", "function", "any"}

// Module declares the namespace. For nested data there is lshape, for tools JSON
// Schema.
func Module() *vm.Module {
	return &vm.Module{
		Name: "std.validate",
		Doc:  "A quick check of the fields of one table. For nested data there is lshape.",
		Funcs: []vm.Function{{
			Name: "check",
			Doc: "true where data fits; else false and a list of what does not, one message for each field. A field of schema is the name of a type, or " +
				"{type, required, min, max, min_len, max_len, one_of}; fields that schema does not name are not looked at.",
			Params:  []vm.Param{{Name: "data", Type: vm.Any}, {Name: "schema", Type: vm.Map}},
			Results: []vm.Param{{Name: "ok", Type: vm.Boolean}, {Name: "messages", Type: vm.List, Optional: true}},
			Effect:  vm.Pure,
			Impl:    check,
		}},
	}
}

// rule is one field of a schema, read.
type rule struct {
	typ            string
	required       bool
	min, max       *float64
	minLen, maxLen *float64
	oneOf          []any
}

func check(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	rules := map[string]rule{}
	for name, v := range c.Map(1) {
		r, err := read(name, v)
		if err != nil {
			return nil, err
		}
		rules[name] = r
	}
	data, ok := c.Args[0].(map[string]any)
	if list, empty := c.Args[0].([]any); empty && len(list) == 0 {
		data, ok = map[string]any{}, true
	}
	if !ok {
		return []vm.Value{false, []any{"data is " + vm.TypeName(c.Args[0]) + ", not a table with fields"}}, nil
	}
	messages := []any{}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if m := rules[name].fault(data[name]); m != "" {
			messages = append(messages, name+" "+m)
		}
	}
	if len(messages) > 0 {
		return []vm.Value{false, messages}, nil
	}
	return []vm.Value{true}, nil
}

func read(name string, v any) (rule, error) {
	var r rule
	if s, ok := v.(string); ok {
		v = map[string]any{"type": s}
	}
	m, ok := v.(map[string]any)
	if !ok {
		return r, vm.Errorf("validation", "schema.%s: got %s, want the name of a type or a table", name, vm.TypeName(v))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		bad := func(want string) (rule, error) {
			return r, vm.Errorf("validation", "schema.%s.%s: got %s, want %s", name, key, vm.TypeName(v), want)
		}
		switch key {
		case "type":
			if r.typ, ok = v.(string); !ok || !slices.Contains(types, r.typ) {
				return r, vm.Errorf("validation", "schema.%s.type is %v; it is one of %s", name, v, strings.Join(types, ", "))
			}
		case "required":
			if r.required, ok = v.(bool); !ok {
				return bad("boolean")
			}
		case "min", "max", "min_len", "max_len":
			n, ok := number(v)
			if !ok {
				return bad("number")
			}
			*map[string]**float64{"min": &r.min, "max": &r.max, "min_len": &r.minLen, "max_len": &r.maxLen}[key] = &n
		case "one_of":
			if r.oneOf, ok = v.([]any); !ok || len(r.oneOf) == 0 {
				return bad("a list with values")
			}
		default:
			return r, vm.Errorf("validation", "schema.%s: unknown key %q; it takes type, required, min, max, min_len, max_len, one_of", name, key)
		}
	}
	return r, nil
}

// fault says what is wrong with a value, "" when nothing is.
func (r rule) fault(v any) string {
	if v == nil {
		if r.required {
			return "is required"
		}
		return ""
	}
	if r.typ != "" && !is(r.typ, v) {
		return "is " + vm.TypeName(v) + ", not " + r.typ
	}
	if n, ok := number(v); ok {
		if r.min != nil && n < *r.min {
			return fmt.Sprintf("is %v, less than %v", v, *r.min)
		}
		if r.max != nil && n > *r.max {
			return fmt.Sprintf("is %v, more than %v", v, *r.max)
		}
	}
	if n, ok := length(v); ok {
		if r.minLen != nil && n < *r.minLen {
			return fmt.Sprintf("has length %v, less than %v", n, *r.minLen)
		}
		if r.maxLen != nil && n > *r.maxLen {
			return fmt.Sprintf("has length %v, more than %v", n, *r.maxLen)
		}
	}
	if r.oneOf != nil && !slices.ContainsFunc(r.oneOf, func(want any) bool { return same(want, v) }) {
		return fmt.Sprintf("is none of %s", join(r.oneOf))
	}
	return ""
}

func is(typ string, v any) bool {
	_, isNumber := number(v)
	_, isList := v.([]any)
	_, isObject := v.(map[string]any)
	switch typ {
	case "string":
		_, ok := v.(string)
		return ok
	case "number":
		return isNumber
	case "integer":
		n, _ := number(v)
		return isNumber && n == math.Trunc(n)
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "table":
		return isList || isObject
	case "list":
		return isList || isObject && reflect.ValueOf(v).Len() == 0
	case "object":
		return isObject || isList && reflect.ValueOf(v).Len() == 0
	case "function":
		_, ok := v.(*vm.Func)
		return ok
	}
	return true
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case interface{ Float64() (float64, error) }:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

// length is that of text in characters, and of tables in entries.
func length(v any) (float64, bool) {
	switch x := v.(type) {
	case string:
		return float64(utf8.RuneCountInString(x)), true
	case []any:
		return float64(len(x)), true
	case map[string]any:
		return float64(len(x)), true
	}
	return 0, false
}

func same(a, b any) bool {
	x, isX := number(a)
	y, isY := number(b)
	if isX && isY {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func join(list []any) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = fmt.Sprint(v)
	}
	return strings.Join(parts, ", ")
}
