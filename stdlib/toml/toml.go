// Package toml is the namespace std.toml: TOML text to and from a script's values.
package toml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"ashlar/vm"
)

// MaxBytes is the longest text that is decoded.
const MaxBytes = 8 << 20

// Module declares the namespace.
func Module() *vm.Module {
	return &vm.Module{
		Name: "std.toml",
		Doc:  "TOML. Dates and times are their text; null has no TOML.",
		Funcs: []vm.Function{
			{
				Name: "decode", Doc: "The table of TOML text; raises where it is none, with the line.",
				Params: []vm.Param{{Name: "text", Type: vm.String}}, Results: []vm.Param{{Name: "value", Type: vm.Map}}, Effect: vm.Pure, Impl: decode,
			},
			{
				Name: "encode", Doc: "A table with named fields as TOML text, keys sorted.",
				Params: []vm.Param{{Name: "value", Type: vm.Map}}, Results: []vm.Param{{Name: "text", Type: vm.String}}, Effect: vm.Pure, Impl: encode,
			},
		},
	}
}

func decode(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	text := c.Str(0)
	if len(text) > MaxBytes {
		return nil, vm.Errorf("limit", "the text is longer than %d bytes", MaxBytes)
	}
	v := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &v); err != nil {
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, _ := bad.Position()
			return nil, vm.Errorf("validation", "not TOML: line %d: %s", line, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return nil, vm.Errorf("validation", "not TOML: %v", err)
	}
	out, err := vm.Tree(v, neutral)
	return []vm.Value{out}, err
}

// neutral gives a value that the library made as scripts have it.
func neutral(path string, v any) (any, error) {
	switch x := v.(type) {
	case bool, int64, string:
		return x, nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, vm.Errorf("validation", "%s is %v, which has no value here", path, x)
		}
		return x, nil
	case time.Time:
		return x.Format(time.RFC3339Nano), nil
	case fmt.Stringer: // a local date or time
		return x.String(), nil
	}
	return nil, vm.Errorf("validation", "%s is a %T, which has no value here", path, v)
}

func encode(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	v, err := vm.Tree(map[string]any(c.Map(0)), plain)
	if err != nil {
		return nil, err
	}
	b, err := toml.Marshal(v)
	if err != nil {
		return nil, vm.Errorf("validation", "%s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	return []vm.Value{string(b)}, nil
}

// plain gives a script's value as the library writes it.
func plain(path string, v any) (any, error) {
	switch x := v.(type) {
	case bool, int64, float64, string:
		return x, nil
	case nil:
		return nil, vm.Errorf("validation", "%s is null, which has no TOML", path)
	case json.Number:
		return nil, vm.Errorf("validation", "%s is %s, beyond the integers of TOML", path, x)
	}
	return nil, vm.Errorf("validation", "%s is a %s, which has no TOML", path, vm.TypeName(v))
}
