package lua_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	glua "github.com/yuin/gopher-lua"
	layeh "layeh.com/gopher-json"

	"ashlar/vm"
	"ashlar/vm/lua"
)

// crosser gives a function that takes a value into a script and out again.
func crosser(t testing.TB) func(vm.Value) (vm.Value, error) {
	var in, out vm.Value
	host, _ := testHost(t, &vm.Module{Name: "cross", Funcs: []vm.Function{
		{Name: "give", Effect: vm.Pure, Impl: func(context.Context, *vm.Call) ([]vm.Value, error) { return []vm.Value{in}, nil }},
		{Name: "take", Effect: vm.Pure, Params: []vm.Param{{Name: "v", Type: vm.Any, Optional: true}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { out = c.Args[0]; return nil, nil }},
		{Name: "loop", Effect: vm.Pure, Params: []vm.Param{{Name: "fn", Type: vm.Callable}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return []vm.Value{c.Args[0]}, nil }},
	}})
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close(context.Background()) })
	fn, err := e.Run(context.Background(), vm.Chunk{Name: "cross.lua", Source: []byte(
		`return function() cross.take(cross.give()) end`)})
	if err != nil {
		t.Fatal(err)
	}
	return func(v vm.Value) (vm.Value, error) {
		in, out = v, "unset"
		_, err := fn.(*vm.Func).Call(context.Background())
		return out, err
	}
}

// randomValue makes a neutral value.
func randomValue(r *rand.Rand, depth int) vm.Value {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64())
	case 3:
		return int64(r.IntN(1000) - 500)
	case 4:
		return json.Number(fmt.Sprintf("%d%018d", 1+r.IntN(1e9), r.Int64N(1e18)))
	case 5:
		return r.NormFloat64()
	case 6:
		return []string{"", "a", "ä€😀", "with \"quotes\"", strings.Repeat("x", 100)}[r.IntN(5)]
	case 7:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(5) {
		m[fmt.Sprintf("k%d", r.IntN(100))] = randomValue(r, depth-1)
	}
	return m
}

func TestValuesCrossUnchanged(t *testing.T) {
	cross := crosser(t)
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		v := randomValue(r, 4)
		got, err := cross(v)
		if err != nil {
			t.Fatalf("%#v: %v", v, err)
		}
		if !reflect.DeepEqual(got, v) {
			t.Fatalf("%#v came back as %#v", v, got)
		}
	}
}

func FuzzJSONCrosses(f *testing.F) {
	f.Add(`{"a":[1,null,{}],"b":[],"c":9007199254740993,"d":-0.5e-3}`)
	f.Fuzz(func(t *testing.T, text string) {
		dec := json.NewDecoder(strings.NewReader(text))
		var v any
		if dec.Decode(&v) != nil {
			return
		}
		got, err := crosser(t)(v)
		if err != nil {
			return // too deep
		}
		a, _ := json.Marshal(v)
		b, _ := json.Marshal(got)
		var x, y any
		if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil || !reflect.DeepEqual(x, y) {
			t.Fatalf("%s came back as %s", a, b)
		}
	})
}

// plain makes a value that gopher-json represents rightly: no null, no empty
// container, no integer beyond 2^53.
func plain(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n == 0:
		return r.IntN(2) == 0
	case n == 1:
		return float64(r.IntN(1 << 30))
	case n == 2:
		return math.Round(r.NormFloat64()*1e6) / 1e3
	case n == 3 || depth == 0:
		return "text ä"
	case n == 4:
		list := make([]any, 1+r.IntN(4))
		for i := range list {
			list[i] = plain(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for i := range 1 + r.IntN(4) {
		m[fmt.Sprint("k", i)] = plain(r, depth-1)
	}
	return m
}

func TestBridgeAgreesWithGopherJSON(t *testing.T) {
	cross := crosser(t)
	L := glua.NewState()
	defer L.Close()
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		text, _ := json.Marshal(plain(r, 4))
		lv, err := layeh.Decode(L, text)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := layeh.Encode(lv)
		if err != nil {
			t.Fatal(err)
		}
		var in any
		if err := json.Unmarshal(text, &in); err != nil {
			t.Fatal(err)
		}
		out, err := cross(in)
		if err != nil {
			t.Fatal(err)
		}
		ours, _ := json.Marshal(out)
		var a, b any
		if json.Unmarshal(theirs, &a) != nil || json.Unmarshal(ours, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: ours %s, theirs %s", text, ours, theirs)
		}
	}
}
