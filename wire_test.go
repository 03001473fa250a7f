package ashlar_test

import (
	"fmt"
	"strings"
	"testing"
)

// wireCase is one request as it is built for a dialect: what of the body is beside
// model, messages and stream.
type wireCase struct{ dialect, model, request, want string }

var wireCases = []wireCase{
	// max_tokens
	{"openai", "gpt-4o", `max_tokens = 9`, `{"max_tokens":9}`},
	{"openai", "o3", `max_tokens = 9`, `{"max_completion_tokens":9}`},
	{"openai", "gpt-5-mini", `max_tokens = 9`, `{"max_completion_tokens":9}`},
	{"vllm", "o3", `max_tokens = 9`, `{"max_tokens":9}`},
	{"llamacpp", "m", `max_tokens = 9`, `{"max_tokens":9}`},
	{"ollama", "m", `max_tokens = 9`, `{"max_tokens":9}`},
	{"openai", "gpt-4o", ``, `{}`},
	// sampling
	{"openai", "gpt-4o", `temperature = 0, top_p = 0.5, seed = 7, top_k = 4`, `{"seed":7,"temperature":0,"top_p":0.5}`},
	{"openai", "o3", `temperature = 0.2`, `{}`},
	{"vllm", "m", `temperature = 0.2, top_k = 4`, `{"temperature":0.2,"top_k":4}`},
	{"llamacpp", "m", `top_k = 4`, `{"top_k":4}`},
	{"ollama", "m", `top_k = 4`, `{"top_k":4}`},
	{"openai", "gpt-4o", `stop = { "END" }`, `{"stop":["END"]}`},
	{"vllm", "m", `stop = "END"`, `{"stop":"END"}`},
	// thinking
	{"openai", "o3", `thinking = { effort = "low" }`, `{"reasoning_effort":"low"}`},
	{"openai", "o3", `thinking = true`, `{}`},
	{"openai", "gpt-5.1", `thinking = false`, `{"reasoning_effort":"none"}`},
	{"ollama", "m", `thinking = { effort = "high", budget_tokens = 5 }`, `{"reasoning_effort":"high"}`},
	{"ollama", "m", `thinking = false`, `{"reasoning_effort":"none"}`},
	{"vllm", "m", `thinking = true`, `{"chat_template_kwargs":{"enable_thinking":true}}`},
	{"vllm", "m", `thinking = false`, `{"chat_template_kwargs":{"enable_thinking":false}}`},
	{"vllm", "m", `thinking = { effort = "low", budget_tokens = 64, kwarg = "think" }`, `{"chat_template_kwargs":{"think":true},"reasoning_effort":"low","thinking_token_budget":64}`},
	{"llamacpp", "m", `thinking = { budget_tokens = 64 }`, `{"chat_template_kwargs":{"enable_thinking":true}}`},
	// response_format
	{"openai", "gpt-4o", `response_format = { type = "json_object" }`, `{"response_format":{"type":"json_object"}}`},
	{"ollama", "m", `response_format = { type = "json_object" }`, `{"response_format":{"type":"json_object"}}`},
	// tool_choice
	{"openai", "gpt-4o", `tools = T, tool_choice = "required"`, `{"tool_choice":"required","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = "any"`, `{"tool_choice":"required","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = "auto"`, `{"tool_choice":"auto","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = "none"`, `{"tool_choice":"none","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = { type = "any" }`, `{"tool_choice":"required","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = { type = "auto" }`, `{"tool_choice":"auto","tools":T}`},
	{"vllm", "m", `tools = T, tool_choice = { type = "tool", name = "t" }`, `{"tool_choice":{"function":{"name":"t"},"type":"function"},"tools":T}`},
	{"llamacpp", "m", `tools = T, tool_choice = { type = "function", ["function"] = { name = "t" } }`, `{"tool_choice":{"function":{"name":"t"},"type":"function"},"tools":T}`},
	{"ollama", "m", `tools = T, tool_choice = "required"`, `{"tools":T}`},
	{"openai", "gpt-4o", `tool_choice = "required"`, `{}`},
	{"openai", "gpt-4o", `tools = T, parallel_tool_calls = false`, `{"parallel_tool_calls":false,"tools":T}`},
	{"openai", "gpt-4o", `parallel_tool_calls = false`, `{}`},
	// what the provider does not take
	{"openai", "gpt-4o", `cache_control = true, context_management = {}, context_management_config = {}`, `{}`},
	{"vllm", "m", `extra_body = { guided = { regex = "a" }, temperature = 1 }, temperature = 0`, `{"guided":{"regex":"a"},"temperature":1}`},
	{"openai", "gpt-5.6", `tools = T, thinking = { effort = "low" }`, `refused: invalid_request`},
	{"openai", "gpt-5.6", `tools = T`, `{"tools":T}`},
	{"vllm", "gpt-5.6", `tools = T, thinking = { effort = "low" }`, `{"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low","tools":T}`},
	{"openai", "", ``, `refused: invalid_request`},
}

// Scenario 102 for the OpenAI wire: the same field, said by request or by conf,
// becomes what the dialect takes; a request's field wins.
func TestFieldsBecomeWhatTheDialectTakes(t *testing.T) {
	t.Parallel()
	const tools = `[{"function":{"description":"d","name":"t","parameters":{"type":"object"}},"type":"function"}]`
	var src strings.Builder
	src.WriteString(`
local openai = require("llm_proto.openai")
local T = { { name = "t", description = "d", input_schema = { type = "object" } } }
local out = {}
local function build(dialect, model, request, conf)
  request.messages = std.json.array()
  local wire, err = openai.build(request, conf, { model = model ~= "" and model or nil, dialect = dialect })
  if not wire then return "refused: " .. err.kind end
  local b = wire.body
  eq(b.model, model) eq(b.stream, true) eq(b.stream_options.include_usage, true) eq(#b.messages, 0)
  b.model, b.stream, b.stream_options, b.messages = nil, nil, nil, nil
  return std.json.encode(b)
end
`)
	for i, c := range wireCases {
		fmt.Fprintf(&src, "out[%d] = build(%q, %q, { %s }, {})\n", i+1, c.dialect, c.model, c.request)
		if !strings.Contains(c.request, "tools = T") {
			fmt.Fprintf(&src, "eq(build(%q, %q, {}, { %s }), out[%d], %q)\n", c.dialect, c.model, c.request, i+1, c.request+" in conf")
		}
	}
	src.WriteString(`eq(build("openai", "gpt-4o", { temperature = 0, max_tokens = 5 }, { temperature = 1, max_tokens = 50, seed = 1 }), '{"max_tokens":5,"seed":1,"temperature":0}')
return out`)
	r := newRig(t)
	list, _ := r.ok(src.String()).Value.([]any)
	for i, c := range wireCases {
		if want := strings.ReplaceAll(c.want, "T}", tools+"}"); list[i] != want {
			t.Errorf("%s %s {%s}:\n%v\nwant\n%s", c.dialect, c.model, c.request, list[i], want)
		}
	}
	for _, part := range []string{"top_k", "o3 takes no temperature", "cache_control", "context_management_config"} {
		contains(t, r.stderr.String(), part)
	}
}

// Messages: nothing of a mixed turn is lost, thinking is not sent back, neighbours
// are joined only where a template insists, and nothing of the caller's is changed.
func TestMessagesBecomeThoseOfTheWire(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local openai = require("llm_proto.openai")
local messages = {
  { role = "user", content = "one" },
  { role = "user", content = { { type = "text", text = "two" } } },
  { role = "assistant", content = { { type = "thinking", thinking = "hmm" }, { type = "text", text = "a" }, { type = "text", text = "b" },
    { type = "tool_use", id = "1", name = "t", input = { x = 1 } }, { type = "tool_use", id = "2", name = "t", input = {} } } },
  { role = "user", content = { { type = "tool_result", tool_use_id = "1", content = "r1" }, { type = "text", text = "beside" },
    { type = "tool_result", tool_use_id = "2", content = { { type = "text", text = "r2" } }, is_error = true } } },
  { role = "user", content = { { type = "text", text = "look" }, { type = "image_url", image_url = { url = "data:," } } } },
  { role = "assistant", content = "plain" },
}
local before = std.json.encode(messages)
local function wire(conf, kept)
  conf.base_url = "x"
  return openai.build({ messages = messages, system = "sys" }, conf, { model = conf.model or "m", dialect = "vllm" }, kept).body
end
local want = '[{"content":"sys","role":"system"},{"content":"one","role":"user"},{"content":"two","role":"user"},' ..
  '{"content":"ab","role":"assistant","tool_calls":[{"function":{"arguments":"{\\"x\\":1}","name":"t"},"id":"1","type":"function"},{"function":{"arguments":"{}","name":"t"},"id":"2","type":"function"}]},' ..
  '{"content":"r1","role":"tool","tool_call_id":"1"},{"content":"[{\\"text\\":\\"r2\\",\\"type\\":\\"text\\"}]","role":"tool","tool_call_id":"2"},{"content":"beside","role":"user"},' ..
  '{"content":[{"text":"look","type":"text"},{"image_url":{"url":"data:,"},"type":"image_url"}],"role":"user"},{"content":"plain","role":"assistant"}]'
eq(std.json.encode(wire({}).messages), want)
eq(std.json.encode(wire({}).messages), want)
local joined = wire({ strict_alternation = true }).messages
eq(joined[2].content, "one\n\ntwo") eq(joined[3].role, "assistant")
eq(std.json.encode(joined), std.json.encode(wire({ model = "google/Gemma-3" }).messages))
eq(#wire({ model = "gemma", strict_alternation = false }).messages, 9)
eq(std.json.encode(messages), before, "the caller's tables are as they were")
messages[1].content = "changed"
eq(wire({}).messages[2].content, "changed")`)
}

// What is kept of a conversation goes out byte for byte as if it were built anew.
func TestKeptMessagesGoOutAsIfBuiltAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.model.Add(agentReplies(6)...)
	run := func(wrap string) []string {
		r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "grüße \"x\"\n" } })
local port = llm_of({ temperature = 0 })
local d = knl.device({ system = "sys", llm = ` + wrap + `, tools = { t = { description = "d", handler = function(i) return { n = i.n, text = "é\n" } end } } })
for i = 1, 6 do local o = knl.beat(s, d) eq(o.status, "ok", tostring(o.detail and o.detail.message)) end
s:append({ kind = "msg_user", data = { content = "end" } })`)
		var raw []string
		for _, q := range r.model.Requests() {
			raw = append(raw, string(q.Raw))
		}
		return raw
	}
	kept := run("port")
	r.model.Add(agentReplies(6)...)
	all := run("function(request, ctx) return port(request, ctx) end")
	anew := all[len(kept):]
	for i := range kept {
		if kept[i] != anew[i] {
			t.Fatalf("request %d:\n%s\n%s", i, kept[i], anew[i])
		}
	}
}
