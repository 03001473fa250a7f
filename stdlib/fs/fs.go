package fs

import (
	"context"
	"os"
	"path/filepath"

	"ashlar/vm"
)

// Bounds of one call.
const (
	MaxFileBytes   = vm.MaxStringBytes // a file read whole
	MaxWalkDepth   = 256
	MaxWalkEntries = 10_000
)

var (
	pathParam = []vm.Param{{Name: "path", Type: vm.String}}
	boolOut   = []vm.Param{{Name: "yes", Type: vm.Boolean}}
	listOut   = []vm.Param{{Name: "paths", Type: vm.List}}
)

// Module declares the namespace over an area.
func Module(a Area) *vm.Module {
	return &vm.Module{
		Name:  "std.fs",
		Doc:   "Files. Relative paths start at the project's directory; failures raise; nothing under ASHLAR_HOME can be reached.",
		Funcs: append(append(contentFuncs(a), placeFuncs(a)...), listFuncs(a)...),
	}
}

func contentFuncs(a Area) []vm.Function {
	write := func(name, doc string, typ vm.Type) vm.Function {
		return vm.Function{
			Name: name, Doc: doc, Effect: vm.Write, Capability: "fs.write",
			Params: []vm.Param{{Name: "path", Type: vm.String}, {Name: "content", Type: typ}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				return nil, a.writeFile(c.Str(0), []byte(c.Str(1)))
			},
		}
	}
	return []vm.Function{
		{
			Name: "read", Doc: "A text file's content. Bytes that are not UTF-8 raise: read_binary takes them.",
			Params: pathParam, Results: []vm.Param{{Name: "content", Type: vm.String}}, Effect: vm.Read, Capability: "fs.read",
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				text, err := a.ReadText(c.Str(0))
				return []vm.Value{text}, err
			},
		},
		{
			Name: "read_binary", Doc: "A file's bytes.",
			Params: pathParam, Results: []vm.Param{{Name: "content", Type: vm.Bytes}}, Effect: vm.Read, Capability: "fs.read",
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				b, err := a.readFile(c.Str(0))
				return []vm.Value{string(b)}, err
			},
		},
		write("write", "Replaces a file's content with text, all of it or nothing.", vm.String),
		write("write_binary", "Replaces a file's content with bytes, all of it or nothing.", vm.Bytes),
		{
			Name: "copy", Doc: "Copies one file's content and mode over another.", Effect: vm.Write, Capability: "fs.write",
			Params: []vm.Param{{Name: "from", Type: vm.String}, {Name: "to", Type: vm.String}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				b, err := a.readFile(c.Str(0))
				if err != nil {
					return nil, err
				}
				if err := a.writeFile(c.Str(1), b); err != nil {
					return nil, err
				}
				from, _ := a.resolve(c.Str(0))
				to, _ := a.resolve(c.Str(1))
				if st, err := os.Stat(from); err == nil {
					if err := os.Chmod(to, st.Mode().Perm()); err != nil {
						return nil, fault(c.Str(1), err)
					}
				}
				return nil, nil
			},
		},
	}
}

func placeFuncs(a Area) []vm.Function {
	act := func(name, doc, capability string, params []vm.Param, f func(c *vm.Call) error) vm.Function {
		return vm.Function{Name: name, Doc: doc, Params: params, Effect: vm.Write, Capability: capability,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return nil, f(c) }}
	}
	two := []vm.Param{{Name: "from", Type: vm.String}, {Name: "to", Type: vm.String}}
	return []vm.Function{
		act("mkdir", "Makes a directory and those above it; one that is there is fine.", "fs.write", pathParam, func(c *vm.Call) error {
			abs, err := a.resolve(c.Str(0))
			if err != nil {
				return err
			}
			if err := os.MkdirAll(abs, 0o755); err != nil {
				return fault(c.Str(0), err)
			}
			return nil
		}),
		act("remove", "Removes a file, or a directory with all in it; raises where nothing is there.", "fs.delete", pathParam, func(c *vm.Call) error {
			abs, err := a.removable(c.Str(0))
			if err != nil {
				return err
			}
			if _, err := os.Lstat(abs); err != nil {
				return fault(c.Str(0), err)
			}
			if err := os.RemoveAll(abs); err != nil {
				return fault(c.Str(0), err)
			}
			return nil
		}),
		act("rename", "Moves a file or directory; what is at the new place is replaced.", "fs.write", two, func(c *vm.Call) error {
			return a.Rename(c.Str(0), c.Str(1))
		}),
		act("symlink", "Makes a symbolic link at link that leads to target.", "fs.write",
			[]vm.Param{{Name: "target", Type: vm.String}, {Name: "link", Type: vm.String}}, func(c *vm.Call) error {
				abs, err := a.resolve(c.Str(1))
				if err != nil {
					return err
				}
				target := c.Str(0)
				if !filepath.IsAbs(target) {
					target = filepath.Join(realPath(filepath.Dir(abs)), target)
				}
				if _, err := a.resolve(target); err != nil {
					return err
				}
				if err := os.Symlink(c.Str(0), abs); err != nil {
					return fault(c.Str(1), err)
				}
				return nil
			}),
	}
}
