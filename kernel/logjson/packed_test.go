package logjson_test

import (
	"testing"

	"ashlar/kernel/logjson"
)

func TestAPackedValueIsWrittenAsItself(t *testing.T) {
	t.Parallel()
	v := map[string]any{"b": []any{"é", int64(1)}, "a": nil}
	p, err := logjson.Pack(v)
	if err != nil {
		t.Fatal(err)
	}
	plain, _ := logjson.Marshal([]any{v, v})
	packed, err := logjson.Marshal([]any{p, v})
	if err != nil || string(plain) != string(packed) {
		t.Errorf("%s\n%s %v", plain, packed, err)
	}
	calls := 0
	of := func(prev, hash [32]byte) [32]byte { calls++; prev[0]++; return prev }
	a, b := p.Link([32]byte{1}, of), p.Link([32]byte{1}, of)
	if c := p.Link([32]byte{7}, of); a != b || calls != 2 || c != [32]byte{8} {
		t.Errorf("%v %v %v after %d calls", a, b, c, calls)
	}
}
