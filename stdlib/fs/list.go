package fs

import (
	"context"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"ashlar/vm"
)

func listFuncs(a Area) []vm.Function {
	test := func(name, doc string, f func(os.FileInfo) bool) vm.Function {
		return vm.Function{Name: name, Doc: doc, Params: pathParam, Results: boolOut, Effect: vm.Read, Capability: "fs.read",
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				abs, err := a.resolve(c.Str(0))
				if err != nil {
					return nil, err
				}
				st, err := os.Stat(abs)
				return []vm.Value{err == nil && f(st)}, nil
			}}
	}
	return []vm.Function{
		test("exists", "Whether something is at the path, links followed.", func(os.FileInfo) bool { return true }),
		test("is_file", "Whether a regular file is at the path.", func(st os.FileInfo) bool { return st.Mode().IsRegular() }),
		test("is_dir", "Whether a directory is at the path.", os.FileInfo.IsDir),
		{
			Name: "glob", Doc: "The paths that match, sorted; * stays within one part of a path, ** crosses parts.",
			Params: []vm.Param{{Name: "pattern", Type: vm.String}}, Results: listOut, Effect: vm.Read, Capability: "fs.read", Waits: true,
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return a.glob(ctx, c.Str(0)) },
		},
		{
			Name: "walk", Doc: "Every file below a directory, sorted; links are not followed. At most 256 levels and 10,000 files.",
			Params: pathParam, Results: listOut, Effect: vm.Read, Capability: "fs.read", Waits: true,
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return a.walk(ctx, c.Str(0)) },
		},
		{
			Name:   "inspect",
			Doc:    "What is at a path, the last link not followed: {kind = file, dir, symlink, other or missing, dangling?, canonical?, dev?, ino?}.",
			Params: pathParam, Results: []vm.Param{{Name: "facts", Type: vm.Map}}, Effect: vm.Read, Capability: "fs.read",
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return a.inspect(c.Str(0)) },
		},
	}
}

func (a Area) glob(ctx context.Context, pattern string) ([]vm.Value, error) {
	if !doublestar.ValidatePattern(pattern) {
		return nil, vm.Errorf("validation", "pattern %q is malformed", pattern)
	}
	base, rest := doublestar.SplitPattern(pattern)
	root, err := a.resolve(base)
	if err != nil {
		return nil, err
	}
	found := []any{}
	err = doublestar.GlobWalk(watched{os.DirFS(root), ctx}, rest, func(p string, _ iofs.DirEntry) error {
		full := filepath.Join(base, p)
		if _, err := a.resolve(full); err != nil {
			return nil // what lies in the control plane is not listed
		}
		if len(found) == MaxWalkEntries {
			return vm.Errorf("limit", "more than %d paths match %q; narrow the pattern", MaxWalkEntries, pattern)
		}
		found = append(found, full)
		return nil
	}, doublestar.WithNoFollow())
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	sortPaths(found)
	return []vm.Value{found}, nil
}

// watched is a file system that opens nothing more once its context has ended: a
// pattern may match little and look at much.
type watched struct {
	iofs.FS
	ctx context.Context
}

// Open implements fs.FS.
func (w watched) Open(name string) (iofs.File, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	return w.FS.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (w watched) ReadDir(name string) ([]iofs.DirEntry, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	return iofs.ReadDir(w.FS, name)
}

// Stat implements fs.StatFS.
func (w watched) Stat(name string) (iofs.FileInfo, error) { return iofs.Stat(w.FS, name) }

func (a Area) walk(ctx context.Context, dir string) ([]vm.Value, error) {
	root, err := a.resolve(dir)
	if err != nil {
		return nil, err
	}
	root = realPath(root) // the directory that was named, also by a link
	home := ""
	if a.Home != "" {
		home = realPath(a.Home)
	}
	found := []any{}
	err = filepath.WalkDir(root, func(p string, d iofs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if p == root {
				return fault(dir, err)
			}
			return nil // a directory that cannot be read is passed over, like one that vanished
		}
		if p == root && !d.IsDir() {
			return vm.Errorf("validation", "%s is no directory", dir)
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() {
			if home != "" && p == home {
				return iofs.SkipDir
			}
			if strings.Count(rel, string(filepath.Separator)) >= MaxWalkDepth {
				return vm.Errorf("limit", "%s is nested deeper than %d", dir, MaxWalkDepth)
			}
			return nil
		}
		if len(found) == MaxWalkEntries {
			return vm.Errorf("limit", "%s holds more than %d files; walk a part of it", dir, MaxWalkEntries)
		}
		found = append(found, filepath.Join(dir, rel))
		return nil
	})
	if err != nil {
		return nil, err
	}
	sortPaths(found)
	return []vm.Value{found}, nil
}

func (a Area) inspect(path string) ([]vm.Value, error) {
	abs, err := a.resolve(path)
	if err != nil {
		return nil, err
	}
	st, err := os.Lstat(abs)
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return []vm.Value{map[string]any{"kind": "missing"}}, nil
	}
	if err != nil {
		return nil, fault(path, err)
	}
	facts := map[string]any{"kind": "other"}
	switch {
	case st.Mode().IsRegular():
		facts["kind"] = "file"
	case st.IsDir():
		facts["kind"] = "dir"
	case st.Mode()&os.ModeSymlink != 0:
		facts["kind"] = "symlink"
	}
	if canonical, err := filepath.EvalSymlinks(abs); err == nil {
		facts["canonical"] = canonical
	} else if facts["kind"] == "symlink" {
		facts["dangling"] = true
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		facts["dev"], facts["ino"] = int64(sys.Dev), int64(sys.Ino)
	}
	return []vm.Value{facts}, nil
}

func sortPaths(paths []any) {
	sort.Slice(paths, func(i, j int) bool { return paths[i].(string) < paths[j].(string) })
}
