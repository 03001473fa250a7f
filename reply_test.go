package ashlar_test

import (
	"bytes"
	"strings"
	"testing"

	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// Scenarios 115 (D2) and 117 (D4), seen from the loop.
func TestWhatIsFinalIsAskedOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		kind  string
		asked int
		retry string
	}{
		{"quota", llmtest.QuotaExceeded(), "quota", 1, "false"},
		{"auth", llmtest.Error(401, "authentication_error", "invalid_api_key", "Incorrect API key provided: sk-123"), "auth", 1, "false"},
		{"bad request", llmtest.Error(400, "invalid_request_error", "", "no"), "invalid_request", 1, "false"},
		{"context", llmtest.Error(400, "invalid_request_error", "context_length_exceeded", "too long"), "context_length", 1, "false"},
		{"dropped after it was read", llmtest.Drop(), "transport", 1, "true"},
		{"cut inside", llmtest.CloseEarly("a piece of text"), "transport", 1, "true"},
		{"hangs", llmtest.Hang(), "transport", 1, "true"},
		{"error in the stream", llmtest.ErrorInStream("a piece"), "server", 1, "true"},
		{"limited", llmtest.RateLimited("0"), "rate_limited", 2, "true"},
		{"page", llmtest.HTML(502), "server", 2, "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.reply.Times(-1))
			m := r.result(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = llm_of({ timeout = 0.5, max_retries = 1 }) }))
eq(o.status, "error") eq(o.kind, "call")
return { kind = o.detail.kind, retryable = tostring(o.detail.retryable), message = o.detail.message }`)
			if str(m, "kind") != c.kind || str(m, "retryable") != c.retry || len(r.model.Requests()) != c.asked {
				t.Errorf("%v, asked %d times", m, len(r.model.Requests()))
			}
			if strings.Contains(str(m, "message"), "sk-") {
				t.Errorf("a key in: %s", str(m, "message"))
			}
		})
	}
}

// One thought, wherever a server puts it; usage disjoint, or estimated and flagged.
func TestRepliesAreNormalised(t *testing.T) {
	t.Parallel()
	field := func(name string) llmtest.Reply {
		return llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"role":"assistant","`+name+`":"hmm"}}]}`+"\n\n",
			`data: {"choices":[{"index":0,"delta":{"content":"answer"},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
	}
	for _, c := range []struct {
		name      string
		reply     llmtest.Reply
		usage     string
		estimated bool
	}{
		{"think", llmtest.Think("hmm", "answer").WithUsage(llmtest.Usage{Prompt: 100, Completion: 50, Cached: 40, Reasoning: 20}), "60 40 0 50 20", false},
		{"reasoning_content", llmtest.Reasoning("hmm", "answer").WithUsage(llmtest.Usage{Prompt: 9, Completion: 5}), "9 0 0 5 0", false},
		{"reasoning", field("reasoning"), "", true},
		{"content field", field("reasoning_content"), "", true},
		{"cached beyond prompt", llmtest.Reasoning("hmm", "answer").WithUsage(llmtest.Usage{Prompt: 10, Completion: 5, Cached: 30}), "0 10 0 5 0", false},
	} {
		for _, stream := range []string{"true", "false"} {
			if stream == "false" && c.reply.Chunks != nil {
				continue
			}
			r := newRig(t, c.reply)
			m := r.result(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = llm_of({ stream = ` + stream + ` }) }))
eq(o.status, "ok", tostring(o.detail and o.detail.message))
local u = o.out.usage
eq(#o.out.content, 2) eq(o.out.content[1].type, "thinking") eq(o.out.content[1].thinking:gsub("%s", ""), "hmm") eq(o.out.content[2].text, "answer")
return { usage = table.concat({ u.input_tokens, u.cache_read_input_tokens, u.cache_creation_input_tokens, u.output_tokens, u.thinking_tokens }, " "), estimated = u.estimated or false, sum = u.input_tokens + u.output_tokens }`)
			if c.usage != "" && str(m, "usage") != c.usage || m["estimated"] != c.estimated || num(m, "sum") == 0 {
				t.Errorf("%s, stream %s: %v", c.name, stream, m)
			}
		}
	}
}

// Faults row 19: what a tool returns never poisons the history.
func TestAToolsBytesDoNotPoisonTheHistory(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Calls(llmtest.Call{ID: "1", Name: "t", Args: `{"i":1}`}, llmtest.Call{ID: "2", Name: "t", Args: `{"i":2}`}, llmtest.Call{ID: "3", Name: "t", Args: `{"i":3}`}),
		llmtest.Text("a"), llmtest.Text("b"), llmtest.Text("c"))
	res := r.ok(`
local outs = { "bad \255\254 bytes", "nul \0 here", ("é"):rep(40000) }
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of(), tools = { t = { input_schema = { type = "object" }, handler = function(input) return outs[input.i] end } } })
for i = 1, 4 do
  local o = knl.beat(s, d)
  eq(o.status, "ok", tostring(o.detail and o.detail.message))
  if i == 1 then for n, entry in ipairs(o.out.tools) do eq(entry.ok, true, "call " .. n) end end
end
return s:id()`)
	for _, q := range r.model.Requests() {
		if bytes.Contains(q.Raw, []byte(`\u0000`)) || bytes.ContainsRune(q.Raw, 0) || !bytes.Equal(bytes.ToValidUTF8(q.Raw, nil), q.Raw) {
			t.Error("a request holds what a provider refuses")
		}
	}
	var raw, cut int
	for _, x := range r.events(res.Value.(string)) {
		if d := dataOf(t, x); x.Kind == event.ToolResult {
			if d["raw"] != nil {
				raw++
			}
			if d["truncated"] != nil {
				cut++
			}
		}
	}
	if raw != 2 || cut != 1 {
		t.Errorf("raw bytes kept %d times, cut %d times", raw, cut)
	}
}

// A refusal of the model, in each of its two forms.
func TestARefusalIsAnOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Refusal("I will not"), llmtest.Finish("content_filter", ""))
	r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of() })
local o = knl.beat(s, d)
eq(o.status, "refused") eq(o.reason, "model") eq(o.detail.refusal.detail, "I will not")
o = knl.beat(s, d)
eq(o.status, "refused") eq(o.reason, "content_filter")`)
}
