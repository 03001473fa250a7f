package embedded

import (
	"bytes"
	"strings"
	"testing"
)

func TestEveryModuleOpensWithItsContract(t *testing.T) {
	t.Parallel()
	if len(Roots()) == 0 {
		t.Fatal("no module is embedded")
	}
	for _, root := range Roots() {
		src, ok := Module(root)
		if !ok {
			t.Errorf("%s has no init.lua", root)
			continue
		}
		if !bytes.HasPrefix(src, []byte("-- "+root)) {
			t.Errorf("%s does not open with a comment that names it", root)
		}
	}
}

func TestNamesLeadToModulesAlone(t *testing.T) {
	t.Parallel()
	if src, ok := Module("knl.fold"); !ok || !strings.Contains(string(src), "knl.fold") {
		t.Error("a sub-module is not found by its dotted name")
	}
	for _, name := range []string{"", ".", "knl.", ".knl", "../embedded", "knl/init", "nosuch", "knl.nosuch"} {
		if _, ok := Module(name); ok {
			t.Errorf("%q gives a module", name)
		}
	}
}

func TestTheKernelsOwnHalfIsSealed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"knl": true, "knl.beat": true, "knl_adapter": true, "agent": false, "llm_proto": false} {
		if Sealed(name) != want {
			t.Errorf("Sealed(%q) = %v", name, !want)
		}
	}
}
