-- What crosses comes back as it was.
local e = host.echo
assert(e(nil) == nil and e(true) == true and e("x") == "x" and e(1.5) == 1.5)
assert(e(std.json.null) == nil, "the sentinel at top level is nil")
assert(host.null == std.json.null and tostring(host.null) == "null")
local t = e({a = {1, 2, {b = "x"}}, n = std.json.null})
assert(#t.a == 3 and t.a[3].b == "x" and t.n == std.json.null)
assert(std.json.is_null(t.n) and not std.json.is_null(nil))
-- empty lists stay lists
assert(getmetatable(e(std.json.array())).__jsontype == "array")
assert(getmetatable(e({})) == nil)
assert(getmetatable(e({1})).__jsontype == "array")
-- functions and handles keep their identity
local f = function() end
assert(e(f) == f and e({f})[1] == f)
local h = host.spawn(function() return {} end)
assert(e(h) == h and tostring(h) == "test.task")
-- negative zero
assert(tostring(e(-0.0)) == "0")
---
-- integers beyond 2^53
local i = std.json.int("9007199254740993")
assert(tostring(i) == "9007199254740993" and i .. "" == "9007199254740993" and "n=" .. i == "n=9007199254740993")
assert(host.echo(i) == i and host.echo({i})[1] == i)
assert(std.json.int("9007199254740992") == 9007199254740992)
assert(i < std.json.int("9007199254740994") and i <= i and i > std.json.int("-9223372036854775808"))
assert(tostring(std.json.int("123456789012345678901234567890")) == "123456789012345678901234567890")
assert(math.type(i) == "integer")
local x = i + 1 --> takes no part in arithmetic
---
host.echo({a = {1, {b = 0/0}}}) --> host: echo: validation: value: \$\.a\[2\]\.b: NaN
---
host.echo({a = {1, x = 2}}) --> \$\.a: a table with both list and named parts
---
local t = {1, 2, 3}
t[2] = nil
host.echo({t}) --> \$\[1\]: a list with a hole at index 2
---
host.echo({[0] = 1}) --> an object with the number 0 as a key
---
host.echo({[true] = 1}) --> an object with a boolean as a key
---
local t = {}
t.a = {t}
host.echo(t) --> \$\.a\[1\]: a cycle
---
local t = {}
for _ = 1, 127 do t = {t} end
host.echo(t)
host.echo({t}) --> nested deeper than 128
---
host.echo({["a b"] = coroutine.create(print)}) --> \$\["a b"\]: a thread cannot leave the script
---
host.echo(math.huge) --> host: echo: validation: value: \+Inf
---
host.echo({"\255"}) --> \$\[1\]: a string that is not UTF-8
---
host.bytes("\255")
host.options({stdin = "\255"})
host.text("\255") --> host: text: validation: text: got string that is not UTF-8
---
host.options({name = "\255"}) --> opts.name: got string that is not UTF-8
---
host.options({nmae = "x"}) --> unknown option "nmae"; it takes name, stdin
---
-- mixed tables, where a parameter asks for them
local m = host.mixed({1, 2, x = 3})
assert(m["1"] == 1 and m["2"] == 2 and m.x == 3)
local h = host.mixed({[1] = "a", [3] = "c"})
assert(h["1"] == "a" and h["3"] == "c")
host.mixed({1, ["1"] = 2}) --> both as a number and as a string
---
-- host errors are text that pcall sees, with their kind
local ok, err = pcall(host.busy)
assert(not ok and err == "host: busy: busy: somebody else holds it", err)
host.busy() --> ^host: busy: busy: somebody else
---
local ok, err = pcall(host.panics)
assert(not ok and err:match("^host: panics: internal: "), err)
assert(1 + 1 == 2)

do -- table.same
  local null = std and std.json and std.json.null or false
  assert(table.same(1, 1) and table.same("a", "a") and table.same(nil, nil) and not table.same(1, "1") and not table.same(1, nil))
  local a, b = { x = { 1, 2, { y = "é" } }, z = null }, { z = null, x = { 1, 2, { y = "é" } } }
  assert(table.same(a, b) and table.same(a, a))
  b.x[3].y = "e"
  assert(not table.same(a, b))
  b.x[3].y, b.more = "é", 1
  assert(not table.same(a, b) and not table.same(b, a))
  assert(not table.same({ 1, 2 }, { 1 }) and not table.same({}, { 1 }) and table.same({}, {}))
  assert(not table.same(setmetatable({}, {}), {}))
  local loop, loop2 = {}, {}
  loop.me, loop2.me = loop, loop2
  assert(not table.same(loop, loop2))
end
