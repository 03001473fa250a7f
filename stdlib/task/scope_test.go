package task_test

import (
	"strings"
	"testing"
	"time"
)

// helpers is in front of each script: fails gives the text of what f raises, took the
// milliseconds that f takes.
const helpers = `local T = std.task
local function fails(f, ...) local ok, e = pcall(f, ...) if ok then error("it did not raise", 2) end return tostring(e) end
local function took(f, ...) local t = os.clock() f(...) return (os.clock() - t) * 1000 end
local function burn(ms) local t = os.clock() while (os.clock() - t) * 1000 < ms do end end
`

func passes(t *testing.T, src string) *logbook {
	t.Helper()
	_, book, err := run(t, helpers+src)
	if err != nil {
		t.Fatal(err)
	}
	return book
}

func TestScopes(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"waits for its children": `
			local done = 0
			local v, more = T.scope("s", function(s)
				assert(s.name == "s")
				for i = 1, 5 do s:spawn(function() T.sleep(5 * i) done = done + 1 end) end
				return "v", "more"
			end)
			assert(v == "v" and more == nil and done == 5, done)`,
		"a value passes by reference": `
			local t = {}
			assert(T.scope(function() return t end) == t and T.scope(function() end) == nil)`,
		"an error of its function cancels the siblings, waits and comes back as it was": `
			local seen, ended
			local ok, e = pcall(T.scope, function(s)
				s:spawn(function()
					seen = fails(T.sleep, 1e6)
					T.spawn(function() burn(1) ended = true end)
				end)
				T.sleep(5)
				error({ code = 7 })
			end)
			assert(not ok and e.code == 7 and seen:match("task cancelled") and ended)`,
		"a child's error reaches its function through join alone": `
			local e
			local v = T.scope(function(s)
				local h = s:spawn(function() error("lost", 0) end)
				e = fails(h.join, h)
				return 1
			end)
			assert(v == 1 and e == "lost")`,
		"cancel is cooperative, and met again by who swallows it": `
			local met = 0
			T.scope(function(s)
				local h = s:spawn(function()
					for _, f in ipairs({ T.sleep, T.yield, T.checkpoint, T.sleep }) do
						if fails(f, f == T.sleep and 1e6 or nil):match("task cancelled") then met = met + 1 end
					end
					assert(T.current().cancelled)
				end)
				T.sleep(5)
				assert(not s:token():is_cancelled())
				s:cancel()
				assert(s:token():is_cancelled() and T.cancel_token():is_cancelled())
				assert(fails(T.checkpoint):match("task cancelled"))
				h:join()
			end)
			assert(met == 4, met)
			T.checkpoint()`,
		"a token given to the outside": `
			local token
			local h = T.spawn(function() token = T.cancel_token() T.sleep(1e6) end)
			T.sleep(5)
			token:cancel()
			assert(fails(h.join, h):match("task cancelled"))
			assert(fails(token.check, token):match("task cancelled") and token:is_cancelled())
			assert(not T.cancel_token():is_cancelled())`,
		"who cancels the token of a scope cancels the siblings": `
			T.scope(function(s)
				local a = s:spawn(function() T.sleep(1e6) end)
				local b = s:spawn(function() T.sleep(5) T.cancel_token():cancel() end)
				b:join()
				assert(fails(a.join, a):match("task cancelled"))
			end)`,
		"calls of a clean-up run after a cancel": `
			local cleaned
			T.scope(function(s)
				s:spawn(function()
					pcall(T.sleep, 1e6)
					local h = T.spawn(function() return "made" end)
					cleaned = h:join()
				end)
				T.sleep(5)
				s:cancel()
			end)
			assert(cleaned == "made", cleaned)`,
		"nested scopes attach their own children while others run": `
			local log = {}
			T.scope("outer", function(outer)
				for i = 1, 10 do
					outer:spawn(function()
						local mine = 0
						T.scope("inner" .. i, function()
							for k = 1, 4 do
								T.spawn(function()
									T.sleep((i * 7 + k * 3) % 11)
									T.spawn(function() T.sleep(2) mine = mine + 1 end) -- of the inner scope too
								end)
							end
							T.yield()
						end)
						log[i] = mine
					end)
				end
			end)
			for i = 1, 10 do assert(log[i] == 4, i .. ": " .. tostring(log[i])) end`,
		"forty children and no cap": `
			local n = 0
			T.scope(function(s) for i = 1, 40 do s:spawn(function() T.sleep(10) n = n + 1 end) end end)
			assert(n == 40)`,
		"scopes within scopes end in an error that can be caught": `
			local function f() return T.scope(function() return f() end) end
			assert(fails(f):match("more than 200 calls through the host are nested"))`,
		"a scope that has ended takes nobody": `
			local kept
			T.scope(function(s) kept = s end)
			assert(fails(kept.spawn, kept, function() end):match("the scope has ended"))`,
		"arguments": `
			assert(fails(T.scope):match("name") and fails(T.scope, "x"):match("fn is required"))
			assert(fails(T.scope, function() end, function() end):match("takes"))
			assert(fails(T.scope, {}):match("want string or function"))`,
		"the coroutine driver": `
			local order = {}
			local a = T.spawn(function(...)
				assert(coroutine.isyieldable() and select("#", ...) == 0)
				for i = 1, 3 do order[#order + 1] = "a" .. i coroutine.yield() end
				return coroutine.wrap(function() coroutine.yield("inner") end)(), "end"
			end, { driver = "coroutine" })
			local b = T.spawn(function() for i = 1, 3 do order[#order + 1] = "b" .. i coroutine.yield() end end, { driver = "coroutine" })
			local x, y = a:join() b:join()
			assert(x == "inner" and y == "end", tostring(x))
			local all = table.concat(order, " ") -- who goes first after a yield is the lock's choice
			assert(#order == 6 and all:match("a1.*a2.*a3") and all:match("b1.*b2.*b3"), all)
			local h = T.spawn(function() coroutine.yield(30) end, { driver = "coroutine" })
			assert(took(h.join, h) >= 25)
			local h = T.spawn(function() return fails(coroutine.yield, "soon") end, { driver = "coroutine" })
			assert(h:join():match("got string, want number"))
			local h = T.spawn(function() error({ code = 3 }) end, { driver = "coroutine" })
			local ok, e = pcall(h.join, h)
			assert(not ok and e.code == 3)`,
		"a driven task yields in a scope, a timeout and a callback, its own coroutines to themselves": `
			local log = {}
			local h = T.spawn(function()
				local v = T.scope(function(s)
					s:spawn(function() coroutine.yield(1) log[#log + 1] = "child" end, { driver = "coroutine" })
					coroutine.yield(20)
					return "v"
				end)
				log[#log + 1] = fails(T.with_timeout, 10, function() coroutine.yield(1e6) end)
				local gen = coroutine.wrap(function() coroutine.yield(5) coroutine.yield(6) end)
				log[#log + 1] = gen() + gen()
				coroutine.yield()
				return v
			end, { driver = "coroutine" })
			assert(h:join() == "v")
			assert(log[1] == "child" and log[2]:match("exceeded") and log[3] == 11)
			local plain = T.spawn(function() assert(not coroutine.isyieldable()) return fails(coroutine.yield, 1) end)
			assert(plain:join():match("outside of a coroutine"))`,
		"the coroutine driver sleeps until a cancel": `
			local met
			T.scope(function(s)
				s:spawn(function() met = fails(coroutine.yield, 1e6) end, { driver = "coroutine" })
				T.sleep(5)
				s:cancel()
			end)
			assert(met:match("task cancelled"), met)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if book := passes(t, src); len(book.lines) > 0 {
				t.Errorf("logged %q", book.lines)
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"a value in time": `assert(T.with_timeout(5000, function(s) s:spawn(function() T.sleep(5) end) return 42 end) == 42)`,
		"an error in time comes back as it was": `
			local ok, e = pcall(T.with_timeout, 5000, function() error({ code = 7 }) end)
			assert(not ok and e.code == 7)`,
		"exceeded": `
			local e
			local ms = took(function() e = fails(T.with_timeout, 20, function() T.sleep(1e6) end) end)
			assert(e:match("with_timeout: timeout: exceeded 20 ms") and ms < 1000, e .. ms)`,
		"a child's time counts": `
			local met
			local e = fails(T.with_timeout, 20, function(s) s:spawn(function() met = fails(T.sleep, 1e6) end) return 1 end)
			assert(e:match("exceeded") and met:match("task cancelled"))`,
		"a body that never looks is cut": `
			local ms = took(function() assert(fails(T.with_timeout, 20, function() while true do end end):match("exceeded")) end)
			assert(ms < 1000, ms)`,
		"a body that catches everything is cut": `
			local ms = took(function() assert(fails(T.with_timeout, 20, function() while true do pcall(T.sleep, 1e6) end end):match("exceeded")) end)
			assert(ms < 1000, ms)`,
		"a child that never looks is cut": `
			local ms = took(function()
				assert(fails(T.with_timeout, 20, function(s) s:spawn(function() while true do end end) T.sleep(1e6) end):match("exceeded"))
			end)
			assert(ms < 1000, ms)`,
		"a child that spawns for ever is cut": `
			assert(fails(T.with_timeout, 20, function(s)
				local function more() while true do pcall(function() T.spawn(more):join() end) end end
				s:spawn(more)
				s:spawn(function() while true do pcall(T.spawn, function() pcall(T.sleep, 1e6) end) pcall(T.yield) end end)
			end):match("exceeded"))`,
		"grace 0 cuts at once": `
			local cleaned
			assert(fails(T.with_timeout, 20, function() pcall(T.sleep, 1e6) burn(50) cleaned = true end, { grace_ms = 0 }):match("exceeded"))
			assert(not cleaned)`,
		"a clean-up runs inside the grace": `
			local cleaned, ended
			local e = fails(T.with_timeout, 20, function(s)
				s:spawn(function() pcall(T.sleep, 1e6) burn(5) ended = true end)
				pcall(T.sleep, 1e6)
				burn(5)
				cleaned = true
				return "late"
			end, { grace_ms = 5000 })
			assert(e:match("exceeded") and cleaned and ended)`,
		"nested: the outer one cuts the inner": `
			local inner
			local e = fails(T.with_timeout, 20, function()
				local ok, got = pcall(T.with_timeout, 60000, function(s) s:spawn(function() while true do pcall(T.sleep, 1e6) end end) T.sleep(1e6) end)
				inner = got
			end)
			assert(e:match("exceeded 20 ms") and inner == nil)`,
		"nested: the inner one is the outer one's to catch": `
			local v = T.with_timeout(60000, function()
				return (fails(T.with_timeout, 10, function() T.sleep(1e6) end))
			end)
			assert(v:match("exceeded 10 ms"))`,
		"inside a task, a scope and a coroutine": `
			T.scope(function(s)
				local h = s:spawn(function()
					local f = coroutine.wrap(function() coroutine.yield(fails(T.with_timeout, 10, function() T.sleep(1e6) end)) return "on" end)
					assert(f():match("exceeded"))
					T.checkpoint()
					return f()
				end)
				assert(h:join() == "on")
			end)`,
		"options are strict": `
			local f = function() end
			assert(fails(T.with_timeout, 1, f, { grace = 1 }):match("unknown option \"grace\""))
			assert(fails(T.with_timeout, 1, f, { 5 }):match("opts"))
			assert(fails(T.with_timeout, 1, f, { grace_ms = "5" }):match("want number"))
			for _, bad in ipairs({ math.huge, 1e20, -1, 0/0 }) do
				fails(T.with_timeout, bad, f) fails(T.with_timeout, 1, f, { grace_ms = bad }) fails(T.sleep, bad)
			end
			assert(fails(T.with_timeout, "1", f):match("want number") and fails(T.with_timeout, 1):match("fn is required"))
			assert(fails(T.spawn, f, { driver = "thread" }):match("unknown driver"))
			assert(fails(T.spawn, f, { [1] = "x" }):match("opts"))`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if book := passes(t, src); len(book.lines) > 0 {
				t.Errorf("logged %q", book.lines)
			}
		})
	}
}

func TestAnAbortedTaskMayCleanUp(t *testing.T) {
	t.Parallel()
	passes(t, `
		local cleaned
		local h = T.spawn(function() local e = fails(T.sleep, 1e6) burn(5) cleaned = e end)
		T.sleep(5)
		h:abort()
		pcall(h.join, h)
		assert(cleaned:match("task aborted"), cleaned)
		-- and not for ever
		local h = T.spawn(function() while true do pcall(T.sleep, 1e6) end end)
		T.sleep(5)
		h:abort()
		assert(took(function() assert(fails(h.join, h):match("task aborted")) end) < 2000)
		-- its own children end with it
		local child
		local h = T.spawn(function() T.scope(function(s) child = s:spawn(function() while true do pcall(T.sleep, 1e6) end end) end) end)
		T.sleep(5)
		h:abort()
		assert(fails(h.join, h):match("task aborted") and child:is_finished())
		-- a join that was cancelled may be asked again
		local slow = T.spawn(function() T.sleep(30) return "slow" end)
		local h = T.spawn(function() return fails(slow.join, slow) end)
		T.sleep(5)
		h:abort()
		assert(h:join():match("task aborted") and slow:join() == "slow")`)
}

func TestFailuresNobodyHeardAreReported(t *testing.T) {
	t.Parallel()
	book := passes(t, `
		T.scope(function(s)
			s:spawn(function() error("from a scope", 0) end)
			s:spawn(function() T.sleep(1e6) end)
			s:spawn(function() pcall(T.sleep, 1e6) error("while cleaning up", 0) end)
			T.sleep(5)
			s:cancel()
		end)`)
	all := strings.Join(book.lines, "\n")
	if len(book.lines) != 2 || !strings.Contains(all, "from a scope") || !strings.Contains(all, "while cleaning up") || !strings.HasPrefix(all, "warn") {
		t.Errorf("logged %q", book.lines)
	}
	book = passes(t, `for i = 1, 300 do T.spawn(function() error("n" .. i, 0) end) end T.sleep(20)
		for i = 1, 44 do T.spawn(function() end):join() end`)
	if len(book.lines) != 300 {
		t.Errorf("%d lines", len(book.lines))
	}
}

// The bounds of the reference, measured by a clock of the test's own.
func TestATimeoutIsBounded(t *testing.T) {
	for src, limit := range map[string]time.Duration{
		`pcall(T.with_timeout, 50, function(s) s:spawn(function() while true do end end) while true do pcall(T.sleep, 1) end end)`: 300 * time.Millisecond,
		`pcall(T.with_timeout, 50, function() while true do end end, { grace_ms = 0 })`:                                            100 * time.Millisecond,
	} {
		best := time.Hour
		for range 5 { // a slow machine is not what is tested
			begun := time.Now()
			passes(t, src)
			if best = min(best, time.Since(begun)); best < limit {
				break
			}
		}
		if best >= limit {
			t.Errorf("%s took %v", src, best)
		}
	}
}
