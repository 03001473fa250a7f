package ashlar_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"ashlar/embedded"
	"ashlar/vm"
	"ashlar/vm/lua"
)

// TestEmbeddedModulesAreCompiled holds embedded/compiled.bin to the sources. An old
// one is slow, not wrong: each short run compiles the modules again.
func TestEmbeddedModulesAreCompiled(t *testing.T) {
	var want []byte
	for _, name := range embedded.Names() {
		src, ok := embedded.Module(name)
		if !ok {
			t.Fatalf("no module %s", name)
		}
		form, err := lua.Precompile(vm.Chunk{Name: "embedded." + name, Source: src})
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{[]byte(name), form} {
			want = append(binary.AppendUvarint(want, uint64(len(part))), part...)
		}
	}
	const path = "embedded/compiled.bin"
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is older than the modules: go test . -run EmbeddedModulesAreCompiled -update", path)
	}
}
