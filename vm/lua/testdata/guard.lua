local a = 7 // 2 --> // is Lua 5.3; write math.floor\(a / b\)
---
local a = 7 & 2 --> & as an operator on bits is Lua 5.3
---
local a = 7 << 2 --> << is Lua 5.3; write a \* 2 \^ n
---
local a = ~7 --> ~ as an operator on bits
---
local a <const> = 7 --> <const> is Lua 5.4; leave the attribute out
---
local a <close> = nil --> <close> is Lua 5.4; use knl.session
---
local a = "\x41" --> \\x41 is Lua 5.2; write \\065
---
local a = "\u{48}" --> \\u\{48\} is Lua 5.3; write the character itself or utf8.char\(0x48\)
---
local a = "a\z b" --> \\z is Lua 5.2
---
-- what only looks like it
local s = "// & | ~ << \\x41 <const>" -- // & |
local l = [==[ // \x41 ]] ]==] --[[ // ]] --[=[ >> ]=]
local t = {a = 1, [1] = 2 ~= 3, c = 1 < 2 and 2 > 1}
local x, y = t.a, "a\
b"
if x ~= 1 then error("no") end
assert(0x10 == 16 and 1e-2 == 0.01 and #s > 1 and l and y == "a\nb" and 1 ..2 == "12")
---
local a = "open --> a string that is not closed on its line
return a
---
local t = {
return end --> near
---
break --> .
