package ashlar_test

import (
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// A budget in either form goes together with max_iterations, and the message of a
// stop names the bound that ended it.
func TestTheAgentNamesTheBoundThatEndedIt(t *testing.T) {
	t.Parallel()
	for opts, want := range map[string]string{
		`budget = { amount = 2, tag = "beats" }`:                                    "beats 2 the budget of beats is used up",
		`budget = { amount = 2 }`:                                                   "beats 2 the budget of beats is used up",
		`budget = { amount = 2 }, max_iterations = false`:                           "beats 2 the budget of beats is used up",
		`budget = { beats = 2 }, max_iterations = 3`:                                "beats 2 the budget of beats is used up",
		`budget = { beats = 3 }, max_iterations = 2`:                                "max_iterations 2 max_iterations (2) reached",
		`budget = { amount = 2, tag = "tool_calls", desc = "x" }`:                   "tool_calls 3 the budget of tool_calls is used up",
		`budget = { amount = 9, tag = "tool_calls" }, max_iterations = 2`:           "max_iterations 2 max_iterations (2) reached",
		`budget = { amount = 9, more = 2 }, max_iterations = 2`:                     "nil 0 budget: unknown key 'more' beside amount",
		`budget = { amount = 9, tag = 4 }`:                                          "nil 0 budget: tag must be a string, got a number",
		`budget = { amount = 2, tag = "tool_calls" }, max_iterations = false`:       "tool_calls 3 the budget of tool_calls is used up",
		`budget = { tool_calls = 9 }, max_iterations = 1, context_management = {} `: "max_iterations 1 max_iterations (1) reached",
	} {
		t.Run(opts, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Calls(llmtest.Call{Name: "t", Args: `{}`}).Times(-1))
			res := r.ok(`
local r = require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", handler = function() return "ok" end } }, ` + opts + ` })
eq(r.ok, false)
return tostring(r.stopped_by) .. " " .. r.num_turns .. " " .. r.error`)
			if res.Value != want {
				t.Errorf("got %v, want %s", res.Value, want)
			}
		})
	}
}

func TestTheAgentsCacheOptionsReachThePortsWarning(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("x"))
	r.ok(`eq(require("agent").run({ prompt = "go", cache_control = true, context_management = {}, context_management_config = {} }).ok, true)`)
	for _, name := range []string{"cache_control", "context_management", "context_management_config"} {
		contains(t, r.stderr.String(), "takes no "+name+": left out")
	}
}
