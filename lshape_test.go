package ashlar_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"ashlar/embedded"
	"ashlar/stdlib/json"
	"ashlar/vm"
	"ashlar/vm/lua"
	"ashlar/vm/resolve"
)

type wallClock struct{}

func (wallClock) Now() time.Time                                   { return time.Now() }
func (wallClock) Sleep(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }

// bareEnv is an environment of its own.
type bareEnv map[string]string

func (e bareEnv) Get(name string) (string, bool) { v, ok := e[name]; return v, ok }
func (e bareEnv) Set(name, value string)         { e[name] = value }

// pureLua runs a script on an engine with the embedded modules and std.json, and with
// nothing behind it.
func pureLua(env bareEnv, src string) (vm.Value, error) {
	host := &vm.Host{
		Script: "test", Clock: wallClock{}, Rand: strings.NewReader("12345678"), Env: env, Stdin: strings.NewReader(""),
		Stdout: io.Discard, Stderr: io.Discard, Redact: func(s string) string { return s }, Log: func(string, string, map[string]any) {},
		Loader: &resolve.Modules{Embedded: embedded.Module, Compiled: embedded.Compiled, Sealed: embedded.Sealed},
	}
	host.Modules = []*vm.Module{json.Module(nil)}
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	v, err := e.Run(ctx, vm.Chunk{Name: "test.lua", Source: []byte(src)})
	e.Close(ctx)
	return v, err
}

const shapely = `local L = require("lshape") local t, check = L.t, L.check
local function eq(got, want, what) if got ~= want then error((what or "value") .. ": got " .. tostring(got) .. ", want " .. tostring(want), 2) end end
local function fails(f, ...) local ok, e = pcall(f, ...) if ok then error("it did not raise", 2) end return tostring(e) end
local function fits(v, s, o) local ok, why = check(v, s, o) if not ok then error(why, 2) end end
local function breaks(want, v, s, o) local ok, why = check.check(v, s, o) if ok then error("it fits", 2) end
  if why ~= "shape violation at " .. want then error("got " .. why .. ", want " .. want, 2) end end
`

func TestLshape(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"primitives": `
fits("x", t.string) fits(1.5, t.number) fits(2, t.integer) fits(false, t.boolean) fits({}, t.table) fits(print, t.fn) fits(nil, t.any)
fits(std.json.int("9007199254740993"), t.integer) fits(std.json.int("9007199254740993"), t.number) fits(1, nil)
breaks("$: expected string, got number", 1, t.string)
breaks("$: expected integer, got 1.5", 1.5, t.integer)
for _, n in ipairs({ math.huge, -math.huge, 0/0 }) do assert(not check(n, t.integer)) end
breaks("$: expected integer, got string", "1", t.integer)
breaks("$: expected boolean, got nil", nil, t.boolean)
breaks("$: expected function, got table", {}, t.fn)
fits(3, t.integer:min(3)) breaks("$: expected at least 3, got 2", 2, t.integer:min(3))`,
		"shapes": `
local s = t.shape({ a = t.string, b = t.array_of(t.shape({ c = t.integer:is_optional() })), d = t.number:is_optional():describe("a word") })
fits({ a = "x", b = {} }, s) fits({ a = "x", b = { {}, { c = 1 } }, d = 2 }, s)
breaks("$: expected table, got string", "x", s)
breaks("$.a: expected string, got nil", {}, s)
breaks("$.b[2].c: expected integer, got string", { a = "x", b = { {}, { c = "1" } } }, s)
breaks("$.e: unexpected field", { a = "x", b = {}, f = 1, e = 1 }, s)
breaks('$["odd key"]: unexpected field', { a = "x", b = {}, ["odd key"] = 1 }, s)
fits({ a = "x", b = {}, 1, 2 }, s)
fits({ a = 1, more = 2 }, t.shape({ a = t.integer }, { open = true }))
local p = t.partial({ a = t.string, b = t.integer:is_optional() })
fits({}, p) eq(p.fields.b.inner.kind, "prim") breaks("$.a: expected string, got number", { a = 1 }, p)
fits({ more = 1 }, t.partial({}, { open = true }))
-- inherited fields count
fits(setmetatable({}, { __index = { a = 1 } }), t.shape({ a = t.integer }))
breaks("$.a: expected integer, got nil", setmetatable({}, { __index = function() error("no") end }), t.shape({ a = t.integer }))`,
		"lists, tuples and maps": `
local l = t.array_of(t.integer)
fits({}, l) fits({ 1, 2 }, l) breaks("$[2]: expected integer, got string", { 1, "x" }, l)
breaks('$: expected a list, got the key "a"', { 1, a = 1, b = 2 }, l)
breaks("$: expected a list, got the key 0", { [0] = 1, a = 2 }, l)
breaks("$[2]: the list has a hole here", { 1, nil, 3 }, l)
breaks("$: expected a list, got a key of type table", { [{}] = 1 }, l)
local tu = t.tuple({ t.string, t.integer:is_optional() })
fits({ "a" }, tu) fits({ "a", 1 }, tu) breaks("$: expected 2 items, got 3", { "a", 1, 2 }, tu) breaks("$[1]: expected string, got nil", {}, tu)
local m = t.map_of(t.string, t.integer)
fits({}, m) fits({ a = 1 }, m) breaks("$.b: expected integer, got boolean", { a = 1, b = true, c = true }, m)
breaks("$[1]: the key: expected string, got number", { 5, x = 1 }, m)
breaks("$: expected keys that are strings, numbers or booleans, got a key of type table", { [{}] = 1 }, t.map_of(t.any, t.any))`,
		"choices": `
local o = t.one_of({ "a", 1, true })
fits("a", o) fits(1, o) fits(true, o) breaks('$: expected one of "a", 1, true, got "1"', "1", o) breaks('$: expected one of "a", 1, true, got table', {}, o)
fits("x", t.literal("x")) breaks('$: expected "x", got "y"', "y", t.literal("x"))
local d = t.discriminated("kind", { num = t.shape({ kind = t.literal("num"), n = t.integer }), txt = t.shape({ kind = t.string, s = t.string }):describe("text") })
fits({ kind = "num", n = 1 }, d) fits({ kind = "txt", s = "" }, d)
breaks("$.n: expected integer, got nil", { kind = "num" }, d)
breaks('$.kind: expected one of "num", "txt", got "x"', { kind = "x" }, d)
breaks('$.kind: expected one of "num", "txt", got nil', {}, d)
fits("ab1", t.pattern("^%a+%d$")) breaks('$: "1" does not match the pattern "^%a+$"', "1", t.pattern("^%a+$")) breaks("$: expected string, got number", 1, t.pattern("."))
local a = t.any_of({ t.string, t.shape({ n = t.integer }) })
fits("x", a) fits({ n = 1 }, a) breaks("$: fits none of 2 alternatives (the first: expected string, got number)", 1, a)`,
		"names": `
local tree = t.shape({ v = t.integer, kids = t.array_of(t.ref("tree")) })
fits({ v = 1, kids = { { v = 2, kids = {} } } }, tree, { registry = { tree = tree } })
breaks("$.kids[1].v: expected integer, got nil", { v = 1, kids = { { kids = {} } } }, tree, { registry = { tree = tree } })
breaks('$: no registry is bound to look up the shape "x"', 1, t.ref("x"))
breaks('$: the registry has no shape "x"', 1, t.ref("x"), { registry = {} })
check.default_registry = function() return { x = t.integer } end
fits(1, t.ref("x")) eq(check.assert(1, "x"), 1)
assert(fails(check.assert, "1", "x", "here"):find("shape violation at $: expected integer, got string (ctx: here)", 1, true))
check.default_registry = nil
eq(check.assert("v", "any"), "v") assert(fails(check.assert, 1, nil, "h"):find("the schema is nil (ctx: h)", 1, true))
assert(fails(check.check, 1, t.any, { registri = {} }):find("unknown option 'registri'", 1, true))`,
		"the depth has a cap": `
local loop = {} loop.kids = { loop }
local tree = t.shape({ kids = t.array_of(t.ref("tree")) })
assert(fails(check, loop, tree, { registry = { tree = tree } }):find("nests deeper than 256", 1, true))
-- Two ways to read each level double the steps of the one above.
local two, nested = { two = t.any_of({ t.shape({ k = t.ref("two") }), t.shape({ k = t.ref("two") }, { open = true }) }) }, 1
for _ = 1, 40 do nested = { k = nested } end
assert(fails(check, nested, t.ref("two"), { registry = two }):find("limit: the check took more than 1000000 steps", 1, true))
local deep, at = {}, nil at = deep for _ = 1, 80 do at.kids = { {} } at = at.kids[1] end at.kids = {}
fits(deep, tree, { registry = { tree = tree } })`,
		"a schema is data": `
local function strip(v) if type(v) ~= "table" then return v end local out = {} for k, x in pairs(v) do out[k] = strip(x) end return out end
local s = t.shape({ a = t.string:describe("d"), b = t.array_of(t.one_of({ 1, "1" })), c = t.integer:min(2):is_optional() })
local plain = std.json.decode(std.json.encode(strip(s)))
for _, v in ipairs({ { a = "x", b = { 1 } }, { a = 1, b = {} }, { a = "x", b = { "1", 2 } }, { a = "x", b = {}, c = 1 }, { a = "x", b = {}, z = 1 }, {} }) do
  local ok, why = check(v, s)
  for _, other in ipairs({ strip(s), plain }) do local ok2, why2 = check(v, other) eq(ok2, ok) eq(why2, why) end
end
-- and nobody's table is part of it
local fields, values = { a = t.string }, { "x" }
local one, two = t.shape(fields), t.one_of(values)
fields.a, fields.b, values[1] = t.integer, t.string, "y"
fits({ a = "x" }, one) fits("x", two)
local inner = t.shape({ a = t.string })
local outer = t.array_of(inner)
inner.fields.a = t.integer
fits({ { a = "x" } }, outer)
eq(t.string:is_optional():is_optional().inner.kind, "prim")
-- what is no schema is a violation and does not raise
for _, bad in ipairs({ 1, "x", {}, { kind = "nosuch" }, { kind = "shape" }, { kind = "array_of" }, { kind = "tuple" }, { kind = "any_of" }, { kind = "one_of" },
  { kind = "discriminated" }, { kind = "prim" }, { kind = "pattern", pattern = "%" }, { kind = "map_of" }, { kind = "optional" } }) do
  for _, v in ipairs({ { 1 }, "x", { a = 1 }, 5 }) do local ok, why = check.check(v, bad) eq(ok, false) assert(why:find("^shape violation at ")) end
end`,
		"mistakes of constructors": `
for what, f in pairs({
  shape = function() t.shape({ a = "string" }) end, name = function() t.shape({ t.string }) end, option = function() t.shape({}, { closed = true }) end,
  element = function() t.array_of(t.string:is_optional():describe("x")) end, none = function() t.array_of() end,
  empty = function() t.one_of({}) end, twice = function() t.one_of({ 1, 2, 1 }) end, hole = function() t.one_of({ 1, nil, 3 }) end, tbl = function() t.one_of({ {} }) end,
  literal = function() t.literal(nil) end, nan = function() t.literal(0/0) end, tag = function() t.discriminated("k", { a = t.shape({}) }) end,
  variant = function() t.discriminated("k", { a = t.string }) end, pattern = function() t.pattern("") end, broken = function() t.pattern("[") end,
  ref = function() t.ref("") end, one = function() t.any_of({ t.string }) end, map = function() t.map_of(t.string) end, optmap = function() t.map_of(t.string, t.any:is_optional()) end,
  min = function() t.string:min(1) end, half = function() t.integer:min(1.5) end, doc = function() t.string:describe() end,
}) do assert(fails(f):find("lshape: %a[%a_]*: validation: "), what .. ": " .. fails(f)) end`,
		"reflection": `
local s = t.shape({ b = t.array_of(t.any_of({ t.string, t.integer })), a = t.string:is_optional():describe("first\nword"), c = t.ref("other_one"),
  d = t.map_of(t.string, t.shape({ x = t.boolean, ["y z"] = t.fn:is_optional() })), e = t.tuple({ t.string, t.number:is_optional() }), f = t.one_of({ "x", 2 }), g = t.pattern("."), h = t.literal(true) })
local got = {}
for i, f in ipairs(L.reflect.fields(s:describe("whole"))) do got[i] = f.name .. (f.optional and "?" or "") .. ":" .. f.type .. (f.doc and "#" .. f.doc or "") end
eq(table.concat(got, " ; "), 'a?:string#first\nword ; b:(string|integer)[] ; c:other_one ; d:table<string, { x: boolean, ["y z"]?: function }> ; e:[string, number|nil] ; f:"x"|2 ; g:string ; h:true')
local seen = {}
L.reflect.walk(s, function(node, path) seen[#seen + 1] = path .. ":" .. node.kind if path == "$.d" then return false end end)
eq(table.concat(seen, " "), "$:shape $.a:described $.a:optional $.a:prim $.b:array_of $.b[]:any_of $.b[]|1:prim $.b[]|2:prim $.c:ref $.d:map_of $.e:tuple $.e[1]:prim $.e[2]:optional $.e[2]:prim $.f:one_of $.g:pattern $.h:literal")
assert(fails(L.reflect.fields, t.string):find("takes a shape"))
eq(L.luacats.gen({ b_c = t.shape({ a = t.string:is_optional():describe("first\n  word"), ["o k"] = t.ref("tool-spec") }, { open = true }):describe("A class."), ["tool-spec"] = t.one_of({ "x", "y" }),
  a = t.integer:is_optional(), nothing = 5, v = t.discriminated("k", { p = t.shape({ k = t.literal("p") }), q = t.shape({ k = t.literal("q") }) }) }, "Knl"), [==[
---@meta

---@alias KnlA integer|nil

---A class.
---@class KnlBC
---@field a? string first word
---@field ["o k"] KnlToolSpec
---@field [string] any

---@alias KnlToolSpec "x"|"y"

---@alias KnlV { k: "p" }|{ k: "q" }
]==])`,
		"dev mode": `
eq(L.is_dev_mode(), false) eq(check.assert_dev(1, t.string), 1)
check.dev_env_var = "OTHER" eq(L.is_dev_mode(), true) assert(fails(check.assert_dev, 1, t.string, "h"):find("(ctx: h)", 1, true))
check.dev_env_var = "LSHAPE_CHECK" eq(L.is_dev_mode(), false)
eq(L.VERSION, "0.3.0")`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := pureLua(bareEnv{"OTHER": "1"}, shapely+src); err != nil {
				t.Error(err)
			}
		})
	}
}

// dice reads choices from a fuzzer's bytes; at their end every choice is 0.
type dice struct{ bytes []byte }

func (d *dice) roll(n int) int {
	if len(d.bytes) == 0 {
		return 0
	}
	b := int(d.bytes[0])
	d.bytes = d.bytes[1:]
	return b % n
}

// schema writes the Lua expression of a schema, whatever the bytes say.
func (d *dice) schema(depth int) string {
	n := 18
	if depth <= 0 {
		n = 9
	}
	sub := func() string { return d.schema(depth - 1) }
	switch d.roll(n) {
	case 0:
		return "t.any"
	case 1:
		return "t.string"
	case 2:
		return "t.integer:min(1)"
	case 3:
		return "t.number"
	case 4:
		return `t.one_of({"a", 1, "1", true})`
	case 5:
		return `t.pattern("^%a*[^%d]?$")`
	case 6:
		return "t.fn"
	case 7:
		return `t.ref("r")`
	case 8:
		return `t.ref("none")`
	case 9, 10:
		fields := ""
		for i := range d.roll(4) {
			fields += fmt.Sprintf("%c = %s,", 'a'+i, sub())
		}
		return fmt.Sprintf("t.shape({%s}, {open = %v})", fields, d.roll(2) == 0)
	case 11:
		return fmt.Sprintf("list_of(%s)", sub())
	case 12:
		return fmt.Sprintf("t.tuple({%s, %s})", sub(), sub())
	case 13:
		return fmt.Sprintf(`t.discriminated("a", {a = t.shape({a = t.any, b = %s}), b = t.shape({a = %s})})`, sub(), sub())
	case 14:
		return fmt.Sprintf("t.any_of({%s, %s})", sub(), sub())
	case 15:
		return fmt.Sprintf("map_of(%s, %s)", sub(), sub())
	case 16:
		return sub() + ":is_optional()"
	default:
		return sub() + `:describe("d")`
	}
}

// value writes a value twice, its keys inserted in two orders.
func (d *dice) value(depth int) (forth, back string) {
	scalars := []string{"nil", "1", "0", "1.5", `"a"`, `"1"`, `""`, "true", "print", "0/0", "1/0", "std.json.null", "std.json.int('9007199254740993')", `"\255x"`, "hostile()", "loop"}
	if depth <= 0 || d.roll(3) > 0 {
		s := scalars[d.roll(len(scalars))]
		return s, s
	}
	keys := []string{"1", "2", "3", "5", `"a"`, `"b"`, `"c"`, `"d"`, "true", "0.5", "print", "odd"}
	for range d.roll(5) {
		k := keys[d.roll(len(keys))]
		a, b := d.value(depth - 1)
		forth, back = forth+fmt.Sprintf("[%s] = %s,", k, a), fmt.Sprintf("[%s] = %s,", k, b)+back
	}
	// A key that came twice keeps the last value, which is another one backwards.
	return "keep({" + forth + "})", "keep({" + back + "})"
}

// FuzzLshapeCheck: whatever schema and whatever value, a check raises nothing but the
// cap on depth, its first failure is one and the same, and assert says what check says.
func FuzzLshapeCheck(f *testing.F) {
	for _, seed := range []string{"", "\x09\x03\x01\x02\x03", "\x0b\x09\x02\x05\x06\x00\x03\x04\x05", "\x0d\x00\x01\x00\x04\x09\x0e\x02", "\x0f\x0c\x07\x0e\x00\x03\x0a\x0b\x0c\x0d\x0e", "\x0a\x03\x07\x07\x07\x01\x00\x03\x04\x0f\x05\x0e"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := &dice{data}
		schema := d.schema(4)
		forth, back := d.value(4)
		src := shapely + `
local odd, loop = {}, {}
loop.a, loop.b, loop[1] = loop, loop, loop
local function hostile() return setmetatable({}, { __index = function() error("no") end, __eq = function() error("no") end, __tostring = function() error("no") end, __metatable = false }) end
local function keep(v) return v end
local function bare(s) while s.kind == "described" do s = s.inner end return s end
local function solid(s) if bare(s).kind == "optional" then return t.any end return s end
local function list_of(s) return t.array_of(solid(s)) end
local function map_of(k, v) return t.map_of(solid(k), solid(v)) end
local schema = ` + schema + `
local opts = { registry = { r = t.shape({ a = t.ref("r"):is_optional(), b = t.integer:is_optional() }, { open = true }) } }
local out = {}
for i, v in ipairs({ { ` + forth + ` }, { ` + forth + ` }, { ` + back + ` } }) do
  local got = table.pack(pcall(check.check, v[1], schema, opts))
  if not got[1] then
    if not tostring(got[2]):find("nests deeper than 256", 1, true) then error(got[2], 0) end
    out[i] = "deep"
  else
    out[i] = got[2] and "fits" or got[3]
    local ok, e = pcall(check.assert, v[1], schema, nil, opts)
    if ok ~= got[2] or not ok and not e:find(got[3], 1, true) then error("assert: " .. tostring(e) .. ", check: " .. tostring(got[3]), 0) end
  end
end
L.reflect.walk(schema, function() end)
L.luacats.gen({ s = schema }, "P")
return out`
		got, err := pureLua(nil, src)
		if err != nil {
			var e *vm.Error
			if errors.As(err, &e) && e.Kind == "limit" { // the source nests too deep
				return
			}
			t.Fatalf("%v\nschema %s\nvalue %s", err, schema, forth)
		}
		list, _ := got.([]any)
		if len(list) != 3 || list[0] != list[1] {
			t.Fatalf("%v\nschema %s\nvalue %s", got, schema, forth)
		}
		if !strings.Contains(forth, "] = ") || list[0] == list[2] || duplicates(forth) {
			return
		}
		t.Fatalf("by the order of insertion: %v\nschema %s\nvalue %s", got, schema, forth)
	})
}

// duplicates reports whether some table of a value names a key twice.
func duplicates(value string) bool {
	type level = map[string]bool
	stack := []level{{}}
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '{':
			stack = append(stack, level{})
		case '}':
			stack = stack[:len(stack)-1]
		case '[':
			if end := strings.Index(value[i:], "] = "); end > 0 {
				key := value[i : i+end]
				if stack[len(stack)-1][key] {
					return true
				}
				stack[len(stack)-1][key] = true
			}
		}
	}
	return false
}
