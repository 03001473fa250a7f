// Package path is the namespace std.path: path arithmetic that touches no disk,
// except absolute, which resolves a path that must exist.
package path

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"ashlar/vm"
)

// Module declares the namespace.
func Module() *vm.Module {
	one := func(name, doc string, f func(string) vm.Value) vm.Function {
		return vm.Function{
			Name: name, Doc: doc, Effect: vm.Pure,
			Params:  []vm.Param{{Name: "path", Type: vm.String}},
			Results: []vm.Param{{Name: "value", Type: vm.Any}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				return []vm.Value{f(c.Str(0))}, nil
			},
		}
	}
	filename := func(p string) vm.Value {
		if b := filepath.Base(p); p != "" && b != "." && b != ".." && b != "/" {
			return b
		}
		return nil
	}
	parent := func(p string) vm.Value {
		clean := filepath.Clean(p) // a separator at the end is no part
		if d := filepath.Dir(clean); p != "" && d != clean {
			return d
		}
		return nil
	}
	return &vm.Module{
		Name: "std.path",
		Doc:  "Paths as text. A part that a path does not have is nil.",
		Funcs: []vm.Function{
			{
				Name: "join", Doc: "Joins parts with the separator and cleans the result; an absolute part starts anew.", Effect: vm.Pure,
				Params:  []vm.Param{{Name: "part", Type: vm.String, Rest: true}},
				Results: []vm.Param{{Name: "path", Type: vm.String}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					joined := ""
					for i := range c.Args {
						if p := c.Str(i); filepath.IsAbs(p) {
							joined = p
						} else {
							joined = filepath.Join(joined, p)
						}
					}
					return []vm.Value{joined}, nil
				},
			},
			one("parent", "The directory part, nil at a root.", parent),
			one("dirname", "The same as parent.", parent),
			one("filename", "The last part, nil where there is none.", filename),
			one("basename", "The same as filename.", filename),
			one("stem", "The last part without its extension, nil where there is none.", func(p string) vm.Value {
				name, ok := filename(p).(string)
				if !ok {
					return nil
				}
				if i := strings.LastIndexByte(name, '.'); i > 0 {
					return name[:i]
				}
				return name
			}),
			one("ext", "The extension without its dot, nil where there is none.", func(p string) vm.Value {
				name, _ := filename(p).(string)
				if i := strings.LastIndexByte(name, '.'); i > 0 && i < len(name)-1 {
					return name[i+1:]
				}
				return nil
			}),
			one("is_absolute", "Whether the path starts at a root.", func(p string) vm.Value { return filepath.IsAbs(p) }),
			{
				Name: "absolute", Doc: "The path with every link resolved; raises where nothing is there.", Effect: vm.Read,
				Params:  []vm.Param{{Name: "path", Type: vm.String}},
				Results: []vm.Param{{Name: "path", Type: vm.String}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					p := c.Str(0)
					if !filepath.IsAbs(p) {
						p = filepath.Join(c.Host.Dir, p)
					}
					real, err := filepath.EvalSymlinks(p)
					switch {
					case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
						return nil, vm.Errorf("not_found", "%s does not exist", c.Str(0))
					case errors.Is(err, os.ErrPermission):
						return nil, vm.Errorf("permission", "%s cannot be looked up", c.Str(0))
					case err != nil:
						return nil, vm.Errorf("validation", "%s leads nowhere", c.Str(0))
					}
					return []vm.Value{real}, nil
				},
			},
		},
	}
}
