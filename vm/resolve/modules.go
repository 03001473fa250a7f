package resolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ashlar/vm"
)

// Tier is one directory that modules come from.
type Tier struct {
	Name string // "script", "private", "project", "user"
	Dir  string // absolute
}

// Modules finds the source of modules. It implements vm.Loader.
type Modules struct {
	Tiers    []Tier
	Embedded func(name string) ([]byte, bool)
	Compiled func(name string) []byte // of an embedded module; nil func for none
	Sealed   func(name string) bool
}

// prefix is the second name of each embedded module.
const prefix = "embedded."

// Load implements vm.Loader.
func (m *Modules) Load(_ context.Context, name string) (vm.Chunk, error) {
	if err := checkName(name); err != nil {
		return vm.Chunk{}, err
	}
	if base, ok := strings.CutPrefix(name, prefix); ok {
		if src, ok := m.Embedded(base); ok {
			return m.embedded(base, src), nil
		}
		return vm.Chunk{}, vm.Errorf("not_found", "module '%s' is not embedded in this binary", base)
	}
	var tried []string
	if !m.Sealed(name) {
		for _, t := range m.Tiers {
			c, looked, err := t.load(name)
			if err != nil {
				return vm.Chunk{}, err
			}
			if c.Source != nil {
				return c, nil
			}
			tried = append(tried, looked...)
		}
	}
	if src, ok := m.Embedded(name); ok {
		return m.embedded(name, src), nil
	}
	return vm.Chunk{}, vm.Errorf("not_found", "module '%s' not found; looked for\n  %s\n  and in the binary", name, strings.Join(tried, "\n  "))
}

func (m *Modules) embedded(name string, src []byte) vm.Chunk {
	c := vm.Chunk{Name: prefix + name, Source: src}
	if m.Compiled != nil {
		c.Compiled = m.Compiled(name)
	}
	return c
}

// load reads a module of one tier; Source is nil where the tier has none.
func (t Tier) load(name string) (c vm.Chunk, looked []string, err error) {
	rel := strings.ReplaceAll(name, ".", string(filepath.Separator))
	for _, candidate := range []string{rel + ".lua", filepath.Join(rel, "init.lua")} {
		path := filepath.Join(t.Dir, candidate)
		looked = append(looked, path)
		real, err := filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
			continue
		}
		if err != nil {
			return c, looked, vm.Errorf("storage", "%s: %v", path, err)
		}
		root, err := filepath.EvalSymlinks(t.Dir)
		if err != nil {
			return c, looked, vm.Errorf("storage", "%s: %v", t.Dir, err)
		}
		if within, err := filepath.Rel(root, real); err != nil || within == ".." || strings.HasPrefix(within, "../") {
			return c, looked, vm.Errorf("permission", "%s leads out of its tier to %s", path, real)
		}
		st, err := os.Stat(real)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		if st.Size() > vm.MaxSourceBytes {
			return c, looked, vm.Errorf("limit", "%s is larger than %d bytes", path, vm.MaxSourceBytes)
		}
		src, err := os.ReadFile(real)
		if err != nil {
			return c, looked, vm.Errorf("storage", "%s: %v", path, err)
		}
		return vm.Chunk{Name: path, Source: src}, looked, nil
	}
	return c, looked, nil
}

func checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\\\x00") || strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return vm.Errorf("validation", "%q is no module name: parts joined by dots, such as agent or llm_proto.openai", name)
	}
	return nil
}

// Shadowed looks for files in the tiers that bear a sealed name, and names them.
func (m *Modules) Shadowed(names []string) []string {
	var found []string
	for _, name := range names {
		if !m.Sealed(name) {
			continue
		}
		for _, t := range m.Tiers {
			for _, candidate := range []string{name + ".lua", name} {
				path := filepath.Join(t.Dir, candidate)
				if st, err := os.Stat(path); err == nil && (st.Mode().IsRegular() || st.IsDir() && hasLua(path)) {
					found = append(found, fmt.Sprintf("%s (%s)", name, path))
				}
			}
		}
	}
	return found
}

func hasLua(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "init.lua"))
	return err == nil
}
