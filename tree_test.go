package ashlar_test

import (
	"testing"

	"ashlar"
)

// What a child's opening says, in every form that it has.
func TestATreeOfSessions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local p = knl.open({ owner = "ada", budget = { beats = 5, tokens = 2000, cost = 0.5 } })
local c = knl.open({ parent = p, budget = { from_parent = { beats = 2, tokens = 1000, cost = 0.2 }, desc = "a part" } })
eq(c:owner(), "ada") eq(c:remaining("beats"), 2) eq(c:remaining("tokens"), 1000) eq(c:remaining("cost"), 200000)
eq(p:remaining("beats"), 3) eq(p:remaining("tokens"), 1000) eq(p:remaining("cost"), 300000)
local named = knl.open({ parent = p, owner = "bob", budget = { from_parent = 100, tag = "tokens" } })
eq(named:owner(), "bob") eq(named:remaining("tokens"), 100) eq(named:remaining("beats"), nil)
-- all or nothing, recorded once, and nobody is opened
local e = fails(knl.open, { parent = p, budget = { from_parent = { beats = 1, tokens = 5000 } } })
eq(e.kind, "refused") assert(e.message:find("5000 tokens asked of the parent", 1, true), e.message) eq(p:remaining("beats"), 3)
local last = p:view("tail", { n = 1 })[1]
eq(last.kind, "budget_refused") eq(last.data.tag, "tokens") eq(last.data.remaining, 900) assert(last.data.child)
for what, budget in pairs({
  empty = { from_parent = {} }, list = { from_parent = { 1, 2 } }, tag = { from_parent = { beats = 1 }, tag = "beats" },
  amount = { from_parent = 1, amount = 1 }, text = { from_parent = "1" }, half = { from_parent = { beats = 0.5 } },
  negative = { from_parent = -1 }, none = { amount = 1 }, plain = { beats = 1 },
}) do eq(fails(knl.open, { parent = p, budget = budget }).kind, "validation", what) end
eq(fails(knl.open, { parent = p }).kind, "validation")
eq(fails(knl.open, { parent = p, budget = { from_parent = 1 }, store = "mem" }).kind, "validation")
eq(fails(knl.open, { parent = "p", budget = { from_parent = 1 } }).kind, "validation")
named:close()
p:close()
local closed = p:view("tail", { n = 1 })[1]
eq(closed.kind, "session_closed") eq(#closed.data.open_children, 1) eq(closed.data.open_children[1], c:id())
eq(c:append({ kind = "x" }), 5)
return { p = p:id(), c = c:id() }`)
	ids := res.Value.(map[string]any)
	if got := kinds(r.events(ids["c"].(string))); got != "session_opened budget_granted budget_granted budget_granted x session_closed" {
		t.Error(got)
	}
}

// The sequences of the reference's §3.12a that concern a tree: the parent's stream,
// then the child's.
func TestEventSequencesOfATree(t *testing.T) {
	t.Parallel()
	const root = `local p = knl.open({ owner = "ada", budget = { beats = 5 } }) `
	for name, script := range map[string]string{
		"tree_child":         root + `local c = knl.open({ parent = p, budget = { from_parent = 3 } }) c:close() p:close()`,
		"tree_refused":       root + `local c = p eq(fails(knl.open, { parent = p, budget = { from_parent = 9 } }).kind, "refused") p:close()`,
		"tree_parent_first":  root + `local c = knl.open({ parent = p, budget = { from_parent = 3 } }) p:close() c:append({ kind = "x" }) c:close()`,
		"tree_several_tags":  `local p = knl.open({ budget = { tokens = 100, beats = 5 } }) local c = knl.open({ parent = p, owner = "bob", budget = { from_parent = { tokens = 40, beats = 1 }, desc = "part" } }) c:close() p:close()`,
		"tree_without_grant": `local p = knl.open() local c = knl.open({ parent = p, budget = { from_parent = 4, tag = "beats" } }) c:reserve(1) c:close() p:close()`,
		"tree_body_raised":   root + `local c pcall(require("supervisor").child, p, { budget = { beats = 2 } }, function(s) c = s error("broke", 0) end) p:close()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			ids := r.result(script + " return { p = p:id(), c = c:id() }")
			events := r.events(ids["p"].(string))
			if ids["c"] != ids["p"] {
				events = append(events, r.events(ids["c"].(string))...)
			}
			golden(t, name, lines(events))
		})
	}
}

// What a child is given is not taken from the run: its reserves are, once.
func TestEventSequenceOfATreesPool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local p = knl.open({ budget = { beats = 9 } })
local c = knl.open({ parent = p, budget = { from_parent = 4 } })
local g = knl.open({ parent = c, budget = { from_parent = 3 } })
for _, s in ipairs({ p, c, g, g, g, c }) do s:reserve(1) end
eq(p:remaining(), 4) eq(c:remaining(), 0) eq(g:remaining(), 1)`, bounds(ashlar.Bounds{Beats: 4}))
	n, sum := r.moved(res, "budget_reserved", "beats", "amount")
	refused, _ := r.moved(res, "budget_refused", "beats", "amount")
	if n != 4 || sum != 4 || refused != 2 || res.StoppedBy != "beats" {
		t.Errorf("the pool gave %d in %d, refused %d, stopped by %q", sum, n, refused, res.StoppedBy)
	}
}
