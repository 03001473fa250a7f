package embedded

import (
	"embed"
	"encoding/binary"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
)

//go:embed knl knl_adapter llm_proto agent supervisor policy lshape knl_types
var sources embed.FS

// Module gives the source of an embedded module by its dotted name: "knl",
// "knl.fold". ok is false where there is none.
func Module(name string) (source []byte, ok bool) {
	root, sub, dotted := strings.Cut(name, ".")
	if !dotted {
		sub = "init"
	}
	if root == "" || sub == "" || strings.ContainsAny(root+sub, "/\\") {
		return nil, false
	}
	b, err := sources.ReadFile(path.Join(root, strings.ReplaceAll(sub, ".", "/")+".lua"))
	return b, err == nil
}

// compiled holds what the engine's compiler makes of each module: name, form, name,
// form, …, each behind its length. `go test . -run EmbeddedModulesAreCompiled -update`
// writes it anew; a form that is older than its source is not used.
//
//go:embed compiled.bin
var compiled []byte

// Compiled gives a module's compiled form, nil where there is none.
func Compiled(name string) []byte { return forms()[name] }

var forms = sync.OnceValue(func() map[string][]byte {
	out := map[string][]byte{}
	next := func(b []byte) (item, rest []byte) {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, nil
		}
		return b[size : size+int(n)], b[size+int(n):]
	}
	for b := compiled; len(b) > 0; {
		var name, form []byte
		name, b = next(b)
		form, b = next(b)
		out[string(name)] = form
	}
	return out
})

// Names lists every module with its sub-modules, sorted.
func Names() []string {
	var names []string
	_ = fs.WalkDir(sources, ".", func(file string, d fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(file, ".lua"); ok && err == nil {
			names = append(names, strings.TrimSuffix(strings.ReplaceAll(name, "/", "."), ".init"))
		}
		return err
	})
	sort.Strings(names)
	return names
}

// Roots lists the modules, without their sub-modules, sorted.
func Roots() []string {
	entries, err := fs.ReadDir(sources, ".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return names
}

// Sealed reports whether no tier may replace a module: what the kernel's own
// promises rest on.
func Sealed(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	switch root {
	case "knl", "knl_adapter", "knl_types", "lshape":
		return true
	}
	return false
}
