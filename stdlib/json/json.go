// Package json is the namespace std.json: JSON text to and from a script's values,
// without loss. The engine adds null, is_null, array and int, which are its own
// values.
package json

import (
	"bytes"
	"context"
	"encoding/json"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/vm"
)

// Files reads and writes text files as std.fs does.
type Files interface {
	ReadText(path string) (string, error)
	WriteText(path, text string) error
}

// Module declares the namespace.
func Module(files Files) *vm.Module {
	value := vm.Param{Name: "value", Type: vm.Any, Mixed: true}
	textOut := []vm.Param{{Name: "text", Type: vm.String}}
	valueOut := []vm.Param{{Name: "value", Type: vm.Any}}
	nulls := vm.Param{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
		{Name: "null", Type: vm.String, Optional: true, Doc: "\"keep\": a null member is std.json.null, not nil"},
	}}
	return &vm.Module{
		Name: "std.json",
		Doc:  "JSON. Keys are written sorted; an empty array stays one; integers beyond 2^53 keep every digit.",
		Funcs: []vm.Function{
			{
				Name: "encode", Doc: "A value as JSON text. A table with list and named parts is written as an object, whole.",
				Params: []vm.Param{value}, Results: textOut, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return encode(c.Args[0], "") },
			},
			{
				Name: "encode_pretty", Doc: "The same over several lines, indented by two spaces.",
				Params: []vm.Param{value}, Results: textOut, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return encode(c.Args[0], "  ") },
			},
			{
				Name: "decode", Doc: "The value of JSON text; raises where it is none. A null member is nil, a null in an array std.json.null.",
				Params: []vm.Param{{Name: "text", Type: vm.Bytes}, nulls}, Results: valueOut, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return decode(c.Str(0), c.Map(1)) },
			},
			{
				Name: "read_file", Doc: "The value of a JSON file.", Effect: vm.Read, Capability: "fs.read",
				Params: []vm.Param{{Name: "path", Type: vm.String}, nulls}, Results: valueOut,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					text, err := files.ReadText(c.Str(0))
					if err != nil {
						return nil, err
					}
					return decode(text, c.Map(1))
				},
			},
			{
				Name: "write_file", Doc: "Writes a value to a file as JSON over several lines.", Effect: vm.Write, Capability: "fs.write",
				Params: []vm.Param{{Name: "path", Type: vm.String}, value},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					out, err := encode(c.Args[1], "  ")
					if err != nil {
						return nil, err
					}
					return nil, files.WriteText(c.Str(0), out[0].(string)+"\n")
				},
			},
		},
	}
}

func encode(v vm.Value, indent string) ([]vm.Value, error) {
	b, err := logjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	if indent == "" {
		return []vm.Value{string(b)}, nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", indent); err != nil {
		return nil, err
	}
	return []vm.Value{out.String()}, nil
}

func decode(text string, o vm.Opts) ([]vm.Value, error) {
	keep := o.Str("null", "")
	if keep != "" && keep != "keep" {
		return nil, vm.Errorf(string(kernel.Validation), "opts.null is %q; it may be \"keep\"", keep)
	}
	v, err := logjson.Unmarshal([]byte(text))
	if err != nil {
		return nil, err
	}
	if keep == "" {
		vm.DropNulls(v)
	}
	return []vm.Value{v}, nil
}
