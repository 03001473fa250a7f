package embedded

import (
	"embed"
	"io/fs"
	"path"
	"sort"
	"strings"
)

//go:embed knl knl_adapter llm_proto agent
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
	case "knl", "knl_adapter":
		return true
	}
	return false
}
