package lua_test

import "testing"

// A closure and its enclosing function share a local also after an error was caught,
// and a closure that outlives a failing function keeps what it saw.
func TestLocalsAreSharedAfterAnError(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"pcall below a closure": `
			local a = false
			local function f() pcall(error, "x"); a = true end
			f()
			return a == true`,
		"xpcall below a closure": `
			local n = 0
			local function f() xpcall(function() error("x") end, tostring); n = n + 1 end
			f() f()
			return n == 2`,
		"nested": `
			local n = 0
			local function bump() n = n + 1 end
			pcall(function()
				bump()
				pcall(function() bump(); error("inner") end)
				bump()
				error("outer")
			end)
			bump()
			return n == 4`,
		"a closure that outlives its function": `
			local kept
			local ok = pcall(function()
				local v = "seen"
				kept = function() v = v .. "!"; return v end
				error("gone")
			end)
			local junk = {}
			for i = 1, 100 do junk[i] = tostring(i) end
			return not ok and kept() == "seen!" and kept() == "seen!!"`,
		"in a coroutine": `
			local n = 0
			local co = coroutine.wrap(function()
				pcall(error, "x")
				n = n + 1
				coroutine.yield()
				pcall(error, "y")
				n = n + 1
			end)
			co() co()
			return n == 2`,
		"a closure that outlives a failing coroutine": `
			local kept
			local co = coroutine.create(function()
				local v = 7
				kept = function() v = v + 1; return v end
				error("gone")
			end)
			coroutine.resume(co)
			return kept() == 8 and kept() == 9`,
		"runtime errors too": `
			local n = 0
			local function f() pcall(function() local x = nil; return x.y end); n = n + 1 end
			f()
			return n == 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, _ := testHost(t)
			if v, err := run(t.Context(), t, host, script); err != nil || v != true {
				t.Errorf("got %v %v", v, err)
			}
		})
	}
}
