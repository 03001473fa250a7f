package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// anthropic points the agent at the rig's server in the words of an option table.
func (r *rig) anthropic() string {
	return fmt.Sprintf(`provider = "anthropic", model = "claude-sonnet-4-5", base_url = %q, api_key = "sk-ant-rig-0123456789"`, strings.TrimSuffix(r.model.URL(), "/v1"))
}

// Scenarios 96 and 101: the options that the other wire has no word for reach this one.
func TestTheAgentsOptionsReachAnthropic(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opts, beta, edits string
		marked            bool
	}{
		"default":  {``, "context-management-2025-06-27", "clear_tool_uses_20250919", true},
		"off":      {`context_management = false, cache_control = false`, "", "", false},
		"override": {`context_management_config = { edits = { { type = "own_edit" } } }`, "context-management-2025-06-27", "own_edit", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Calls(llmtest.Call{ID: "c1", Name: "add", Args: `{"a":2,"b":3}`}), llmtest.Text("it is 5"))
			r.ok(`
local deltas = ""
local r = require("agent").run({ prompt = "2+3?", system = "be exact", ` + r.anthropic() + `, stop = { "END" }, on_delta = function(text, kind) if kind == "text" then deltas = deltas .. text end end,
  extra_tools = { { name = "add", description = "adds", input_schema = { type = "object" }, handler = function(i) return i.a + i.b end } }, ` + c.opts + ` })
eq(r.ok, true, r.error) eq(r.content, "it is 5") eq(r.num_turns, 2) eq(deltas, "it is 5") eq(r.messages[3].content[1].content, "5")`)
			q := r.model.Requests()
			if len(q) != 2 {
				t.Fatalf("%d requests", len(q))
			}
			for _, x := range q {
				if err := validMessages(x.Body); err != nil {
					t.Errorf("%v: %s", err, x.Raw)
				}
				if got := x.Header.Get("anthropic-beta"); got != c.beta {
					t.Errorf("anthropic-beta: %q", got)
				}
				if strings.Contains(string(x.Raw), `"context_management"`) != (c.edits != "") || !strings.Contains(string(x.Raw), c.edits) {
					t.Errorf("%s", x.Raw)
				}
				if strings.Contains(string(x.Raw), "cache_control") != c.marked {
					t.Errorf("cache markers: %s", x.Raw)
				}
				contains(t, string(x.Raw), `"stop_sequences":["END"]`)
			}
		})
	}
}

// A long conversation is kept inside the window on this wire too, and a configured
// window is known without being asked for.
func TestTheAgentStaysInsideItsWindowOnAnthropic(t *testing.T) {
	t.Parallel()
	var replies []llmtest.Reply
	for i := range 12 {
		replies = append(replies, llmtest.Calls(llmtest.Call{ID: fmt.Sprint("c", i), Name: "t", Args: fmt.Sprintf(`{"n":%d}`, i)}))
	}
	r := newRig(t, append(replies, llmtest.Text("done"))...)
	res := r.ok(`
local r = require("agent").run({ prompt = "the task", ` + r.anthropic() + `, context_window = 6000, max_tokens = 1000,
  extra_tools = { { name = "t", description = "d", handler = function() return ("result "):rep(800) end } } })
eq(r.ok, true, r.error) eq(r.content, "done") eq(#r.messages, 26)`)
	for i, q := range r.model.Requests() {
		if err := validMessages(q.Body); err != nil {
			t.Errorf("request %d: %v", i+1, err)
		}
		if len(q.Raw) > 5000*6 {
			t.Errorf("request %d has %d bytes", i+1, len(q.Raw))
		}
		contains(t, string(q.Raw), "the task")
	}
	if res.Code() != ashlar.ExitOK {
		t.Errorf("code %d", res.Code())
	}
}
