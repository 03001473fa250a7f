-- shims of later versions
local p = table.pack(1, nil, 3)
assert(p.n == 3 and select("#", table.unpack(p, 1, p.n)) == 3)
assert(#table.move({1, 2, 3}, 1, 3, 2) == 4)
assert(math.tointeger(3.0) == 3 and math.tointeger(3.5) == nil and math.type(1) == "integer" and math.type(1.5) == "float")
assert(load("return 1 + 1")() == 2)
assert(load("return x", "chunk", "t", {x = 7})() == 7)
local parts = {"return ", "5"}
assert(load(function() return table.remove(parts, 1) end)() == 5)
local f, err = load("return +", "=mine")
assert(f == nil and err:match("^mine:1: "), err)
assert(select("#", load("\27Lua")) == 2)
assert(utf8.char(228, 8364, 128512) == "ä€😀" and utf8.len("ä€😀") == 3 and utf8.codepoint("€") == 8364)
local n = 0
for pos, code in utf8.codes("aä€") do n = n + code end
assert(n == 97 + 228 + 8364)
assert(utf8.offset("aä€", 3) == 4 and utf8.offset("aä€", -1) == 4)
assert(select(2, utf8.len("\255")) == 1)
assert(xpcall(function(a, b) return a + b end, print, 1, 2))
assert(string.rep("ab", 3, ",") == "ab,ab,ab" and ("x"):rep(0) == "")
assert(collectgarbage("count") > 0 and collectgarbage() == 0)
goto done
error("not reached")
::done::
assert(not dofile and not loadfile and not os.execute and not io.popen and not debug.getinfo and not package.path)
---
-- string.format as C does it
local f = string.format
assert(f("%5.2f|%-5d|%05d|%+d|%x|%X|%#x|%o", 3.14159, 42, 42, 42, 255, 255, 255, 8) == " 3.14|42   |00042|+42|ff|FF|0xff|10")
assert(f("%g %g %g %g", 0.1, 100000, 1e6, 1e20) == "0.1 100000 1e+06 1e+20", f("%g %g %g %g", 0.1, 100000, 1e6, 1e20))
assert(f("%s %s %10.3s|%-4s|", nil, true, "abcdef", "x") == "nil true        abc|x   |")
assert(f("%q", 'a"b\n\0c') == '"a\\"b\\\n\\000c"')
assert(f("%c%c", 72, 105) == "Hi" and f("%%") == "%" and f("%i", "10") == "10")
assert(f("%e", 12345.678) == "1.234568e+04")
assert(f("%5s", setmetatable({}, {__tostring = function() return "T" end})) == "    T")
assert(f("%.3d", 5) == "005" and f("%f", 1/0) == "inf")
f("%100d", 1) --> width or precision too long
---
string.format("%y", 1) --> invalid conversion '%y'
---
string.format("%d", "x") --> number expected for %d
---
-- coroutines yield from anywhere
local co = coroutine.create(function(a)
  local ok, b = pcall(function() return coroutine.yield(a + 1) end)
  assert(ok)
  local t = setmetatable({}, {__index = function(_, k) return coroutine.yield(k) end})
  local c = t.key
  local order = {3, 1, 2}
  table.sort(order, function(x, y) coroutine.yield("cmp") return x < y end)
  local s = ("a"):gsub("a", function() return coroutine.yield("gsub") end)
  return b, c, order[1], s
end)
local function step(...) return select(2, assert(coroutine.resume(co, ...))) end
assert(step(1) == 2 and step("b") == "key")
local v = step("c")
while v == "cmp" do v = step() end
assert(v == "gsub" and coroutine.status(co) == "suspended")
local r = {coroutine.resume(co, "S")}
assert(r[1] and r[2] == "b" and r[3] == "c" and r[4] == 1 and r[5] == "S")
assert(coroutine.status(co) == "dead")
assert(select(2, coroutine.resume(co)) == "can not resume a dead thread")
assert(coroutine.running() == nil and not coroutine.isyieldable())
local outer
outer = coroutine.wrap(function()
  local inner = coroutine.wrap(function() coroutine.yield(coroutine.status(coroutine.running())) end)
  coroutine.yield(inner())
end)
assert(outer() == "running")
local bad = coroutine.create(function() error({code = 7}) end)
local ok, e = coroutine.resume(bad)
assert(not ok and e.code == 7 and coroutine.close(bad) == false)
assert(select(2, pcall(error)) == nil and require("io") == io)
local self
self = coroutine.wrap(function() return self() end)
assert(not pcall(self))
for i = 1, 2000 do coroutine.wrap(function() coroutine.yield(i) end)() end -- abandoned
---
coroutine.yield(1) --> can not yield from outside of a coroutine
---
local function deep() return coroutine.wrap(deep)() end --> nested too deep
deep()
---
local function f() return f() + 1 end --> stack overflow
local ok, e = pcall(f)
assert(not ok and e:match("stack overflow"), e)
f()
---
-- require
for _, wrong in ipairs({ false, {}, 1 }) do
  local ok, e = pcall(require, wrong or nil)
  assert(not ok and e:match("bad argument #1 to 'require' %(string expected, got " .. (wrong and type(wrong) or "nil") .. "%)"), e)
end
assert(select(2, pcall(require)):match("bad argument #1 to 'require' %(string expected, got no value%)"))
assert(require("answer").value == 42 and require("answer") == require("answer"))
assert(require("nothing") == true and package.loaded.nothing == true)
package.preload.own = function(name) return {name = name} end
assert(require("own").name == "own")
local json = require("json")
assert(json.encode({a = {1, 2}, b = {}}) == '{"a":[1,2],"b":{}}')
assert(json.decode("[1,null,3]")[3] == 3 and json.decode("[1,null,3]")[2] == std.json.null)
assert(tostring(json.decode("9007199254740993")) == "9007199254740993")
local v, err = json.decode("{")
assert(v == nil and err)
local s, err = json.encode({f = print})
assert(s == nil and err)
local ok, e = pcall(require, "ring_a")
assert(not ok and e:match("circular require: ring_a requires ring_b requires ring_a"), e)
---
-- two tasks that need one module run its chunk once; a circle through both is seen
local a, b = host.spawn(function() return require("slow") end), host.spawn(function() return require("slow") end)
assert(a:join() == b:join() and slow_runs == 1)
local a = host.spawn(function() return pcall(require, "cross_a") end)
local b = host.spawn(function() return pcall(require, "cross_b") end)
local _, x, _, y = a:join(), nil, nil, b:join()
local ok = pcall(require, "broken")
assert(not ok)
require("missing") --> require: not_found: module missing is in no tier
---
-- os and io are the run's own
assert(os.getenv("HOME") == "/home/x" and os.getenv("NOPE") == nil)
assert(math.abs(os.time() - os.date("*t", os.time()).sec) > 0 and os.clock() >= 0 and os.difftime(5, 3) == 2)
assert(os.date("!%Y-%m-%d %H:%M:%S", 0) == "1970-01-01 00:00:00")
assert(os.time({year = "2006", month = "1", day = 2}) == os.time({year = 2006, month = 1, day = 2, hour = 12}))
assert(io.read() == "one" and io.read("*l") == "two" and io.read("n") == 3.5 and io.read("a") == " rest" and io.read() == nil)
local name = os.tmpname()
local w = assert(io.open(name, "w"))
assert(w:write("a\n", 1, "\nlast") == w and w:close() and not pcall(w.read, w))
local lines = {}
for l in io.lines(name) do lines[#lines + 1] = l end
assert(table.concat(lines, ",") == "a,1,last")
local r = assert(io.open(name))
assert(r:seek("set", 2) == 2 and r:read(1) == "1" and r:seek("end") == 8 and r:read(1) == nil and r:close())
assert(os.rename(name, "b") and os.remove("b") and select("#", os.remove("b")) == 2)
local f, msg = io.open("absent")
assert(f == nil and msg:match("absent"))
io.write("x", 1, "\n")
assert(math.random(1) == 1 and math.random() < 1)
math.randomseed(7)
local a = math.random(1000)
math.randomseed(7)
assert(a == math.random(1000))
---
-- callbacks
assert(host.call(function(a) return a .. "!" end) == "arg!")
assert(host.call_waiting(function(a) host.sleep(1) return a end) == "arg")
local up = 0
local many = host.call_many(function(i) up = up + 1 host.sleep(2) return i * 2 end)
assert(up == 8 and many[8] == 14)
assert(host.spawn(function() host.sleep(1) return {} end):join())
local ok, e = pcall(host.call, function() error({code = 1}) end)
assert(not ok and e.code == 1)
local ok, e = pcall(host.call_waiting, function() error("text", 0) end)
assert(not ok and e == "text", e)
local t = host.spawn(function() return 1 end)
t.join() --> call it as a method of its handle
---
host.call(function() coroutine.yield() end) --> can not yield from outside of a coroutine
---
local ok, tb = xpcall(function() error("x") end, debug.traceback)
assert(not ok and tb:match("x\nstack traceback:\n") and tb:match("language.lua:%d+"), tb)
error("plain") --> ^language.lua:\d+: plain$
---
-- The level of error says whose line it names; 0 names none.
local function f(n)
  error("x", n)
end
local function g(n)
  f(n)
  return 1
end
local lines = {}
for n = 0, 3 do
  local _, e = pcall(function()
    g(n)
    return 1
  end)
  lines[n] = tonumber(e:match("^language.lua:(%d+): x$"))
end
assert(lines[0] == nil and lines[2] == lines[1] + 3 and lines[3] == lines[1] + 9, lines[1] .. " " .. lines[2] .. " " .. lines[3])
