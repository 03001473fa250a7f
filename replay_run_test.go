package ashlar_test

import (
	"context"
	"testing"
	"time"

	"ashlar"
)

// replay replays a run that must be equal.
func (r *rig) replay(res ashlar.Result) *ashlar.ReplayReport {
	r.t.Helper()
	rep, err := r.ws.Replay(context.Background(), res.Run, ashlar.Mutated(3*time.Second, nil))
	if err != nil {
		r.t.Fatal(err)
	}
	if d := rep.Difference; d != nil {
		r.t.Fatalf("%s\nrecorded %.2000s\nreplayed %.2000s\nat %s\n%s", d, d.Recorded, d.Replayed, d.Position, d.Traceback)
	}
	if !rep.Equal {
		r.t.Fatalf("not exact: %q", rep.Holes)
	}
	return rep
}

func TestAReplayIsEqual(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"nothing": `return 1`,
		"reads": `return { std.time.now(), math.random(), std.env.get("PATH"), std.crypto.uuid(), os.time(), os.clock(),
			(std.time.measure(function() return 1 end)) }`,
		"effects": `std.fs.write("a.txt", "\255x") local r = sh.exec("cat a.txt; echo $$; date +%N; rm a.txt")
			local f = io.open("b.txt", "w") f:write("one\ntwo\n") f:close()
			local out = {} for l in io.lines("b.txt") do out[#out + 1] = l end
			local g = io.open("b.txt") out[3] = g:read("*a") g:close() os.remove("b.txt")
			out[4] = tostring(io.open("none"))
			return { r.stdout, out, pcall(std.fs.read, "a.txt") }`,
		"a session": `local s = knl.open{ budget = { beats = 3, tokens = 1000 } }
			s:append{ kind = "msg_user", data = { content = "hi" } }
			local ok, tag = s:reserve(2) local no = s:reserve(2) s:spend{ tokens = 10 }
			local evs = s:events() local n = s:len() local v = s:view("tail", { n = 2 })
			local left = s:remaining("tokens") s:close()
			return { ok, tag, no, evs, n, v, left, s:id() }`,
		"a child and a session left open": `local p = knl.open{ budget = { beats = 5 } }
			local c = knl.open{ parent = p, budget = { from_parent = 2 } }
			local f = fails(knl.open, { parent = p, budget = { from_parent = 20 } })
			c:append{ kind = "x", data = { big = ("y"):rep(5000) } } return f`,
		"beats": `local s = knl.open{ budget = { beats = 3 } }
			s:append{ kind = "msg_user", data = { content = "hi" } }
			local d = knl.device{ llm = replies{ call({ "c1", "t" }), say("done") }, tools = { t = { description = "x", handler = function(a) return sh.exec("echo out").stdout end } } }
			knl.beat(s, d) knl.beat(s, d)
			return 1`,
		"tasks that are left running": `local s = knl.open()
			for i = 1, 5 do std.task.spawn(function() pcall(std.task.sleep, i == 3 and 1e6 or 1) for j = 1, 1000 do s:append{ kind = "x", data = { i = i, j = j } } end end) end
			std.task.sleep(4) s:append{ kind = "last" } return 1`,
		"a task that is spawned last": `local s = knl.open() std.task.spawn(function() s:append{ kind = "x" } end) return 1`,
		"an error":                    `error("x " .. std.time.millis())`,
		"exit":                        `os.exit(3)`,
		"tasks": `local T = std.task local out = {}
			T.scope(function(s) for i = 1, 5 do s:spawn(function() T.sleep((i * 7) % 5) out[#out + 1] = i T.yield() out[#out + 1] = std.time.now() end) end end)
			return out`,
		"tasks on sessions": `local T = std.task local s = knl.open{} local out = {}
			T.scope(function(sc) for i = 1, 6 do sc:spawn(function() for j = 1, 5 do s:append{ kind = "x", data = { i = i, j = j } }
				local c = knl.open{} c:append{ kind = "y", data = { n = #s:events() } } c:close() out[#out + 1] = #s:events() end end) end end)
			return out`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			res := r.script(src)
			rep := r.replay(res)
			t.Log(res.Status, res.Err, rep.Events, rep.Calls, rep.Elapsed)
		})
	}
}
