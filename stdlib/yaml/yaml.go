// Package yaml is the namespace std.yaml: YAML text to and from a script's values.
package yaml

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"ashlar/vm"
)

// MaxBytes is the longest text that is decoded.
const MaxBytes = 8 << 20

// Module declares the namespace.
func Module() *vm.Module {
	return &vm.Module{
		Name: "std.yaml",
		Doc:  "YAML. Values are those of std.json; a time is its text, a key that is no text is written as one.",
		Funcs: []vm.Function{
			{
				Name: "decode", Doc: "The value of one YAML document; raises where it is none, or more than one. A null member is nil, a null in a list std.json.null.",
				Params: []vm.Param{{Name: "text", Type: vm.String}, {Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
					{Name: "null", Type: vm.String, Optional: true, Doc: "\"keep\": a null member is std.json.null, not nil"},
				}}},
				Results: []vm.Param{{Name: "value", Type: vm.Any}}, Effect: vm.Pure, Impl: decode,
			},
			{
				Name: "encode", Doc: "A value as YAML text, keys sorted.",
				Params: []vm.Param{{Name: "value", Type: vm.Any}}, Results: []vm.Param{{Name: "text", Type: vm.String}}, Effect: vm.Pure, Impl: encode,
			},
		},
	}
}

func decode(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	text := c.Str(0)
	if len(text) > MaxBytes {
		return nil, vm.Errorf("limit", "the text is longer than %d bytes", MaxBytes)
	}
	keep := c.Map(1).Str("null", "")
	if keep != "" && keep != "keep" {
		return nil, vm.Errorf("validation", "opts.null is %q; it may be \"keep\"", keep)
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	var v any
	if err := d.Decode(&v); errors.Is(err, io.EOF) {
		return []vm.Value{nil}, nil
	} else if err != nil {
		return nil, fault(err)
	}
	var more any
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, fault(err)
		}
		return nil, vm.Errorf("validation", "the text holds more than one document")
	}
	v, err := named(v, "$", 0)
	if err != nil {
		return nil, err
	}
	if v, err = vm.Tree(v, neutral); err == nil && keep == "" {
		vm.DropNulls(v)
	}
	return []vm.Value{v}, err
}

// fault gives an error of the library its kind.
func fault(err error) error {
	return vm.Errorf("validation", "not YAML: %s", strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
}

// named gives the library's value with keys that are text: it keeps a mapping with other
// keys as one of its own.
func named(v any, path string, depth int) (any, error) {
	if depth > vm.MaxDepth {
		return nil, vm.Errorf("validation", "%s is nested deeper than %d", path, vm.MaxDepth)
	}
	var err error
	switch x := v.(type) {
	case []any:
		for i := range x {
			if x[i], err = named(x[i], fmt.Sprintf("%s[%d]", path, i+1), depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range x {
			if x[key], err = named(x[key], path+"."+key, depth+1); err != nil {
				return nil, err
			}
		}
	case map[any]any:
		out := make(map[string]any, len(x))
		for key, e := range x {
			name, err := keyOf(key, path)
			if err != nil {
				return nil, err
			}
			if _, twice := out[name]; twice {
				return nil, vm.Errorf("validation", "%s.%s occurs twice", path, name)
			}
			if out[name], err = named(e, path+"."+name, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

func keyOf(key any, path string) (string, error) {
	switch key.(type) {
	case nil:
		return "null", nil
	case []any, map[string]any, map[any]any:
		return "", vm.Errorf("validation", "%s has a key that is a table", path)
	}
	k, err := neutral(path, key)
	return fmt.Sprint(k), err
}

// neutral gives a value that the library made as scripts have it.
func neutral(path string, v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64:
		return x, nil
	case string:
		if !utf8.ValidString(x) {
			return nil, vm.Errorf("validation", "%s holds bytes that are no text", path)
		}
		return x, nil
	case int:
		return int64(x), nil
	case uint64:
		return json.Number(fmt.Sprint(x)), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, vm.Errorf("validation", "%s is %v, which has no value here", path, x)
		}
		return x, nil
	case time.Time:
		if x.Equal(x.Truncate(24*time.Hour)) && x.Location() == time.UTC {
			return x.Format(time.DateOnly), nil
		}
		return x.Format(time.RFC3339Nano), nil
	}
	return nil, vm.Errorf("validation", "%s is a %T, which has no value here", path, v)
}

func encode(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	v, err := vm.Tree(c.Args[0], plain)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(v); err != nil {
		return nil, vm.Errorf("validation", "%v", err)
	}
	if err := e.Close(); err != nil {
		return nil, err
	}
	return []vm.Value{out.String()}, nil
}

// plain gives a script's value as the library writes it.
func plain(path string, v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64, float64, string:
		return x, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: string(x)}, nil
	}
	return nil, vm.Errorf("validation", "%s is a %s, which has no YAML", path, vm.TypeName(v))
}
