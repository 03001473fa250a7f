package lua_test

import (
	"reflect"
	"testing"

	"ashlar/vm"
	"ashlar/vm/lua"
)

const precompiledSource = `
local t, n = { a = 1, "x", 2.5, f = function(...) return select("#", ...) end }, 0
for k, v in pairs(t) do n = n + 1 end
local function up() n = n + 1 return n end
up()
local ok, e = pcall(function() error({ code = 7 }) end)
return { n = n, s = ("é\0"):rep(2), code = e.code, args = t.f(1, nil, 3), g = tostring(math.floor(2.9)), neg = -0.5, big = 1e300 }`

func TestAPrecompiledChunkIsTheSameChunk(t *testing.T) {
	chunk := vm.Chunk{Name: "embedded.x", Source: []byte(precompiledSource)}
	form, err := lua.Precompile(chunk)
	if err != nil {
		t.Fatal(err)
	}
	runChunk := func(c vm.Chunk) (vm.Value, error) {
		host, _ := testHost(t)
		e, err := lua.New(host, lua.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return e.Run(t.Context(), c)
	}
	want, err := runChunk(chunk)
	if err != nil {
		t.Fatal(err)
	}
	chunk.Compiled = form
	if got, err := runChunk(chunk); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("compiled before it gives %v, %v; want %v", got, err, want)
	}
	other := vm.Chunk{Name: chunk.Name, Source: []byte(`return "other"`), Compiled: form}
	if got, err := runChunk(other); err != nil || got != "other" {
		t.Errorf("another source gives %v, %v", got, err)
	}
	other = vm.Chunk{Name: chunk.Name, Source: chunk.Source}
	for cut := range len(form) {
		other.Compiled = form[:cut]
		if cut%97 != 0 {
			continue
		}
		if got, err := runChunk(other); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d it gives %v, %v", cut, got, err)
		}
	}
}

// TestAPrecompiledErrorNamesItsLine: positions survive.
func TestAPrecompiledErrorNamesItsLine(t *testing.T) {
	chunk := vm.Chunk{Name: "embedded.y", Source: []byte("local x\n\nlocal y = x.field\n")}
	form, err := lua.Precompile(chunk)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, compiled := range [][]byte{nil, form} {
		chunk.Compiled = compiled
		host, _ := testHost(t)
		e, err := lua.New(host, lua.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = e.Run(t.Context(), chunk)
		texts = append(texts, err.Error())
	}
	if texts[0] != texts[1] {
		t.Errorf("%q and %q", texts[0], texts[1])
	}
}
