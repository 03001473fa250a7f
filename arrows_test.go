package ashlar_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// room gives the top-level room of a package of this module: "kernel", "vm", …;
// "ashlar" for the root.
func room(path string) string {
	rest, ok := strings.CutPrefix(path, "ashlar/")
	if !ok {
		return "ashlar"
	}
	top, _, _ := strings.Cut(rest, "/")
	return top
}

// TestImportsPointOneWay holds the arrows of the house: cmd → surface → ashlar →
// {stdlib, vm, embedded, vendor-cmd} → kernel, and the few that are allowed inside
// the braces. A test's own imports are held too, except that the root's tests may
// use any room.
func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	allowed := map[string][]string{
		"cmd":        {"surface", "ashlar", "stdlib", "vm", "embedded", "vendor-cmd", "kernel"},
		"bench":      {"surface", "ashlar", "stdlib", "vm", "embedded", "kernel"},
		"crash":      {"surface", "ashlar", "stdlib", "vm", "embedded", "kernel"},
		"surface":    {"ashlar", "stdlib", "vm", "embedded", "kernel"},
		"ashlar":     {"stdlib", "vm", "embedded", "vendor-cmd", "kernel"},
		"stdlib":     {"vm", "kernel"},
		"vendor-cmd": {"vm", "embedded", "kernel"},
		"vm":         {},
		"embedded":   {},
		"kernel":     {},
	}
	for _, p := range packages(t) {
		from := room(p.ImportPath)
		may, known := allowed[from]
		if !known {
			t.Errorf("%s lies in a room that the house does not have: %s", p.ImportPath, from)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, "ashlar/") && imp != "ashlar" {
				continue
			}
			to := room(imp)
			if to != from && !slices.Contains(may, to) {
				t.Errorf("%s imports %s: the arrow from %s to %s points the wrong way", p.ImportPath, imp, from, to)
			}
			if from == "vm" && engine(p.ImportPath) != "" && engine(imp) != "" && engine(imp) != engine(p.ImportPath) {
				t.Errorf("%s imports %s: no engine imports another", p.ImportPath, imp)
			}
			if from == "stdlib" && to == "stdlib" && p.ImportPath != "ashlar/stdlib" && namespace(imp) != namespace(p.ImportPath) && !shared(imp) {
				t.Errorf("%s imports %s: namespaces do not import one another", p.ImportPath, imp)
			}
		}
	}
}

func engine(path string) string {
	rest, ok := strings.CutPrefix(path, "ashlar/vm/")
	if !ok {
		return ""
	}
	top, _, _ := strings.Cut(rest, "/")
	if top == "resolve" {
		return ""
	}
	return top
}

func namespace(path string) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(path, "ashlar/stdlib/"), "/")
	return top
}

// shared names what several namespaces use: the one decoder of server-sent events.
func shared(path string) bool { return path == "ashlar/stdlib/http/sse" }

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
