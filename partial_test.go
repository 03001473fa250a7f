package ashlar_test

import (
	"strings"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// What came of a reply that was cut off is kept, marked, on both wires; the session
// goes on as if it had not come.
func TestWhatCameOfACutReplyIsKept(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]string{
		"openai": "adapter.openai:open(conf)", "anthropic": `adapter.anthropic:open(conf)`,
	} {
		for _, c := range []struct {
			name, script, reason string
			reply                llmtest.Reply
			cut                  bool
			change               func(*ashlar.Task)
		}{
			{"a cancelled task", `
				local task = std.task.spawn(function() return knl.beat(s, d) end)
				while not seen do std.task.sleep(1) end
				task:abort()
				pcall(task.join, task)`, "cancelled", llmtest.HangInside("half an ans"), false, nil},
			{"a timeout", `
				local o = knl.beat(s, d)
				eq(o.status, "error") eq(o.detail.kind, "transport")`, "timeout", llmtest.HangInside("half an ans"), false, nil},
			{"a server that closes", `
				local o = knl.beat(s, d)
				eq(o.status, "error") eq(o.detail.kind, "transport")`, "closed", llmtest.CloseEarly("half an ans"), false, nil},
			{"an error inside", `
				eq(knl.beat(s, d).status, "error")`, "error", llmtest.ErrorInStream("half an ans"), false, nil},
			{"the run's deadline", `knl.beat(s, d)`, "cancelled", llmtest.HangInside("half an ans"), true,
				func(t *ashlar.Task) { t.Bounds.Deadline = 700 * time.Millisecond }},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, c.reply, llmtest.Text("whole"))
				script := `
					local seen, pieces = false, {}
					local conf = { max_retries = 0, timeout = ` + map[bool]string{true: "0.5", false: "30"}[c.name == "a timeout"] + ` }
					local d = knl.device({ llm = ` + open + `, on_delta = function(text, kind) seen = true pieces[#pieces + 1] = kind .. ":" .. text end })
					local s = knl.open({})
					s:append({ kind = "msg_user", data = { content = "hi" } })
					` + c.script + `
					local o = knl.beat(s, d)
					eq(o.status, "ok") eq(o.out.content[1].text, "whole")
					assert(table.concat(pieces, " "):find("text:", 1, true))
					return s:id()`
				if name == "anthropic" {
					script = strings.ReplaceAll(script, "conf = {", `conf = { provider = "anthropic", base_url = "`+r.model.URL()+`", api_key = "k-0123456789", model = "claude-x",`)
				}
				var changes []func(*ashlar.Task)
				if c.change != nil {
					changes = append(changes, c.change)
				}
				res := r.script(script, changes...)
				if c.cut != (res.Err != nil) {
					t.Fatalf("%v", res.Err)
				}
				var partial, requests int
				for _, e := range r.events(r.only(res)) {
					d := dataOf(t, e)
					switch e.Kind {
					case event.LLMPartial:
						partial++
						block, _ := d["content"].([]any)[0].(map[string]any)
						if text := str(block, "text"); text == "" || !strings.HasPrefix("half an ans", text) || str(d, "reason") != c.reason || !strings.Contains(string(e.Meta), "beat") {
							t.Errorf("%s %s", e.Meta, e.Data)
						}
					case event.LLMRequest:
						requests++
						if strings.Contains(string(e.Data), "half an") {
							t.Errorf("the next request is built on it: %s", e.Data)
						}
					}
				}
				if partial != 1 || requests != map[bool]int{true: 1, false: 2}[c.cut] {
					t.Errorf("%d partial replies, %d requests", partial, requests)
				}
				said := false
				for _, f := range r.facts.all {
					said = said || f.Type == "assistant_message" && f.Fields["partial"] == true
				}
				if !said {
					t.Error("the event stream does not say so")
				}
			})
		}
	}
}
