package ashlar_test

import (
	"fmt"
	"strings"
	"testing"
)

const (
	opus45 = "claude-opus-4-5-20251101" // thinks within a budget of its own
	opus5  = "claude-opus-5-5"          // decides itself
)

// anthropicCase is one request as it is built for the Messages API: what of the body is
// beside model, messages, stream and the default of max_tokens; " +" and the betas behind.
type anthropicCase struct{ model, request, want string }

var anthropicCases = []anthropicCase{
	// max_tokens and what is not said
	{opus5, ``, `{}`},
	{opus5, `max_tokens = 9`, `{"max_tokens":9}`},
	{opus5, `max_tokens = 9000, capped = true`, `{}`},
	{opus5, `max_tokens = 9, capped = true`, `{"max_tokens":9}`},
	{"", ``, `refused: no model`},
	// tool_choice
	{opus5, `tools = T, tool_choice = "required"`, `{"tool_choice":{"type":"any"},"tools":T}`},
	{opus5, `tools = T, tool_choice = "any"`, `{"tool_choice":{"type":"any"},"tools":T}`},
	{opus5, `tools = T, tool_choice = "auto"`, `{"tool_choice":{"type":"auto"},"tools":T}`},
	{opus5, `tools = T, tool_choice = "none"`, `{"tool_choice":{"type":"none"},"tools":T}`},
	{opus5, `tools = T, tool_choice = { type = "any" }`, `{"tool_choice":{"type":"any"},"tools":T}`},
	{opus5, `tools = T, tool_choice = { type = "tool", name = "t" }`, `{"tool_choice":{"name":"t","type":"tool"},"tools":T}`},
	{opus5, `tools = T, tool_choice = { type = "function", ["function"] = { name = "t" } }`, `{"tool_choice":{"name":"t","type":"tool"},"tools":T}`},
	{opus5, `tools = T, tool_choice = { type = "function", name = "t" }`, `{"tool_choice":{"name":"t","type":"tool"},"tools":T}`},
	{opus5, `tools = T, tool_choice = { type = "tool", name = "x" }`, `refused: tool_choice names 'x'`},
	{opus5, `tools = T, tool_choice = "sometimes"`, `refused: tool_choice is sometimes`},
	{opus5, `tool_choice = "required"`, `{}`},
	// parallel_tool_calls
	{opus5, `tools = T, parallel_tool_calls = false`, `{"tool_choice":{"disable_parallel_tool_use":true,"type":"auto"},"tools":T}`},
	{opus5, `tools = T, parallel_tool_calls = false, tool_choice = "required"`, `{"tool_choice":{"disable_parallel_tool_use":true,"type":"any"},"tools":T}`},
	{opus5, `tools = T, parallel_tool_calls = false, tool_choice = "none"`, `{"tool_choice":{"type":"none"},"tools":T}`},
	{opus5, `tools = T, parallel_tool_calls = true`, `{"tools":T}`},
	{opus5, `parallel_tool_calls = false`, `{}`},
	// thinking, 4.7 and later
	{opus5, `thinking = { effort = "low" }`, `{"output_config":{"effort":"low"},"thinking":{"type":"adaptive"}}`},
	{"claude-opus-4-7", `thinking = true`, `{"thinking":{"type":"adaptive"}}`},
	{"claude-mythos-preview", `thinking = true`, `{"thinking":{"type":"adaptive"}}`},
	{opus5, `thinking = { budget_tokens = 2000 }`, `{"thinking":{"type":"adaptive"}}`},
	{opus5, `thinking = false`, `{"thinking":{"type":"disabled"}}`},
	{opus5, `tools = T, thinking = true, tool_choice = "required"`, `{"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"},"tools":T}`},
	// thinking, before
	{opus45, `thinking = { budget_tokens = 2000 }`, `{"thinking":{"budget_tokens":2000,"type":"enabled"}}`},
	{opus45, `thinking = { effort = "low" }`, `{"thinking":{"budget_tokens":1024,"type":"enabled"}}`},
	{opus45, `thinking = true`, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
	{opus45, `thinking = { effort = "high" }, max_tokens = 6000`, `{"max_tokens":6000,"thinking":{"budget_tokens":3000,"type":"enabled"}}`},
	{"claude-3-7-sonnet-20250219", `thinking = true`, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
	{"claude-sonnet-4-20250514", `thinking = true`, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
	{"some-other-model", `thinking = true`, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
	{opus45, `thinking = false`, `{}`},
	{opus45, `thinking = { budget_tokens = 1000 }`, `refused: thinking.budget_tokens is 1000; it is at least 1024`},
	{opus45, `thinking = { budget_tokens = 8192 }`, `refused: the thinking budget of 8192 tokens leaves nothing of max_tokens = 8192`},
	{opus45, `thinking = true, max_tokens = 1024`, `refused: the thinking budget of 1024 tokens`},
	{opus45, `tools = T, thinking = true, tool_choice = "required"`, `refused: a forced tool_choice`},
	{opus45, `tools = T, thinking = true, tool_choice = { name = "t" }`, `refused: a forced tool_choice`},
	{opus45, `tools = T, thinking = true, tool_choice = "auto"`, `{"thinking":{"budget_tokens":4096,"type":"enabled"},"tool_choice":{"type":"auto"},"tools":T}`},
	// sampling
	{opus45, `temperature = 0, top_p = 0.5, top_k = 4`, `{"temperature":0,"top_k":4,"top_p":0.5}`},
	{"claude-opus-4-6", `temperature = 0.2`, `{"temperature":0.2}`},
	{opus5, `temperature = 0.2, top_p = 0.5, top_k = 4`, `{}`},
	{opus5, `temperature = 1`, `{"temperature":1}`},
	{opus45, `temperature = 0.2, thinking = true`, `{"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
	// stop
	{opus5, `stop = "END"`, `{"stop_sequences":["END"]}`},
	{opus5, `stop = { "A", "B" }`, `{"stop_sequences":["A","B"]}`},
	// response_format
	{opus5, `response_format = { type = "json_schema", json_schema = { name = "n", strict = true, schema = { type = "object" } } }`, `{"output_config":{"format":{"schema":{"type":"object"},"type":"json_schema"}}} +structured-outputs-2025-11-13`},
	{opus5, `thinking = { effort = "low" }, response_format = { type = "json_schema", schema = { type = "object" } }`, `{"output_config":{"effort":"low","format":{"schema":{"type":"object"},"type":"json_schema"}},"thinking":{"type":"adaptive"}} +structured-outputs-2025-11-13`},
	{opus5, `response_format = { type = "text" }`, `{}`},
	{opus5, `response_format = { type = "json_object" }`, `refused: response_format json_object`},
	{opus5, `response_format = { type = "json_schema" }`, `refused: response_format json_schema needs a schema`},
	{opus5, `response_format = "json"`, `refused: response_format must be a table`},
	// what goes through, and what this wire has no word for
	{opus5, `user = "u"`, `{"metadata":{"user_id":"u"}}`},
	{opus5, `service_tier = "auto", metadata = { user_id = "m" }, user = "u"`, `{"metadata":{"user_id":"m"},"service_tier":"auto"}`},
	{opus5, `seed = 7, presence_penalty = 1, frequency_penalty = 1, logprobs = true, n = 2, prompt_cache_key = "k"`, `{}`},
	{opus5, `extra_body = { inference_geo = "eu", max_tokens = 5 }`, `{"inference_geo":"eu","max_tokens":5}`},
	{opus5, `betas = { "a-1", "b-2" }`, `{} +a-1,b-2`},
	{opus5, `betas = "a-1"`, `{} +a-1`},
}

// Scenario 102 for the Messages API: the same field, said by request or by conf, becomes
// what the wire takes; a request's field wins.
func TestFieldsBecomeWhatTheMessagesAPITakes(t *testing.T) {
	t.Parallel()
	const tools = `[{"description":"d","input_schema":{"type":"object"},"name":"t"}]`
	var src strings.Builder
	src.WriteString(`
local anthropic = require("llm_proto.anthropic")
local T = { { name = "t", description = "d", input_schema = { type = "object" } } }
local out = {}
local function build(model, request, conf)
  request.messages = std.json.array()
  conf.context_management, conf.cache_control = false, false
  local wire, err = anthropic.build(request, conf, { model = model ~= "" and model or nil })
  if not wire then eq(err.kind, "invalid_request") eq(err.retryable, false) return "refused: " .. err.message end
  local b = wire.body
  eq(b.model, model) eq(b.stream, true) eq(#b.messages, 0) eq(wire.path, "v1/messages")
  eq(wire.defaults and wire.defaults.max_tokens, (request.max_tokens or conf.max_tokens) == nil and 8192 or request.capped and not conf.max_tokens and b.max_tokens or nil)
  b.model, b.stream, b.messages = nil, nil, nil
  if b.max_tokens == 8192 then b.max_tokens = nil end
  local betas = wire.headers and wire.headers["anthropic-beta"]
  return (next(b) and std.json.encode(b) or "{}") .. (betas and " +" .. betas or "")
end
`)
	for i, c := range anthropicCases {
		fmt.Fprintf(&src, "out[%d] = build(%q, { %s }, {})\n", i+1, c.model, c.request)
		if !strings.Contains(c.request, "tools = T") && !strings.Contains(c.request, "capped") {
			fmt.Fprintf(&src, "eq(build(%q, {}, { %s }), out[%d], %q)\n", c.model, c.request, i+1, c.request+" in conf")
		}
	}
	src.WriteString(`eq(build("claude-opus-4-5", { temperature = 0, max_tokens = 5 }, { temperature = 1, max_tokens = 50, stop = "x" }), '{"max_tokens":5,"stop_sequences":["x"],"temperature":0}')
return out`)
	r := newRig(t)
	list, _ := r.ok(src.String()).Value.([]any)
	for i, c := range anthropicCases {
		want, got := strings.ReplaceAll(c.want, "T}", tools+"}"), fmt.Sprint(list[i])
		if got != want && !(strings.HasPrefix(want, "refused") && strings.HasPrefix(got, want)) {
			t.Errorf("%s {%s}:\n%v\nwant\n%s", c.model, c.request, got, want)
		}
	}
	warned := r.stderr.String()
	for _, part := range []string{"temperature", "top_p", "top_k", "seed", "n:", "prompt_cache_key", "thinking.budget_tokens"} {
		contains(t, warned, "takes no "+part)
	}
	// Many requests dropped it; a run is told once.
	if n := strings.Count(warned, "provider anthropic takes no seed"); n != 1 {
		t.Errorf("%d warnings about seed:\n%s", n, warned)
	}
}

// Scenarios 101 and 104: what is cached and what the server may clear, on, off and
// replaced; the caller's tables stay as they were.
func TestCacheMarkersAndContextManagement(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local anthropic = require("llm_proto.anthropic")
local tools = { { name = "a", input_schema = { type = "object" } }, { name = "b", input_schema = { type = "object" } } }
local system = { { type = "text", text = "one" }, { type = "text", text = "two" } }
local headers = { ["X-Mine"] = "1", ["Anthropic-Beta"] = "mine-1" }
local conf = { betas = { "two-2" }, headers = headers }
local before = std.json.encode({ tools, system, headers, conf.betas })
local function build(conf, sys)
  return anthropic.build({ messages = { { role = "user", content = "x" } }, tools = tools, system = sys or system }, conf, { model = "m" })
end
local w = build(conf)
eq(w.body.tools[1].cache_control, nil) eq(w.body.tools[2].cache_control.type, "ephemeral")
eq(w.body.system[1].cache_control, nil) eq(w.body.system[2].cache_control.type, "ephemeral")
eq(w.headers["anthropic-beta"], "two-2,mine-1,context-management-2025-06-27") eq(w.headers["X-Mine"], "1") eq(w.headers["Anthropic-Beta"], nil)
eq(std.json.encode(w.body.context_management), '{"edits":[{"clear_at_least":{"type":"input_tokens","value":10000},"keep":{"type":"tool_uses","value":3},"trigger":{"type":"input_tokens","value":80000},"type":"clear_tool_uses_20250919"}]}')
eq(std.json.encode({ tools, system, headers, conf.betas }), before, "the caller's tables")
eq(build({}, "text").body.system[1].cache_control.type, "ephemeral")
eq(build({}, "").body.system, nil)
w = build({ cache_control = { type = "ephemeral", ttl = "1h" } })
eq(w.body.tools[2].cache_control.ttl, "1h") eq(w.body.system[2].cache_control.ttl, "1h")
w = build({ cache_control = false, context_management = false, context_management_config = { edits = {} } })
eq(w.body.tools[2].cache_control, nil) eq(w.body.system[2].cache_control, nil)
eq(w.body.context_management, nil) eq(w.headers, nil)
w = build({ context_management_config = { edits = { { type = "other" } } } })
eq(std.json.encode(w.body.context_management), '{"edits":[{"type":"other"}]}') eq(w.headers["anthropic-beta"], "context-management-2025-06-27")`)
}

// Messages: blocks go back as they came, thinking with its signature; what the API
// refuses is made good.
func TestMessagesBecomeThoseOfTheMessagesAPI(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local anthropic = require("llm_proto.anthropic")
local function wire(messages, kept, tools)
  local before = std.json.encode(messages)
  local w = anthropic.build({ messages = messages, tools = tools }, { context_management = false }, { model = "m" }, kept)
  eq(std.json.encode(messages), before, "the caller's tables are as they were")
  return std.json.encode(w.body.messages)
end
local messages = {
  { role = "user", content = "one" },
  { role = "assistant", content = {
    { type = "thinking", thinking = "hm", signature = "sig==" }, { type = "redacted_thinking", data = "x" }, { type = "thinking", thinking = "another's" },
    { type = "text", text = "" }, { type = "text", text = "a", citations = { { cited_text = "c" } } },
    { type = "server_tool_use", id = "srv", name = "web_search", input = { q = 1 } },
    { type = "tool_use", id = "call:1/x", name = "t", input = {}, input_error = "no", input_raw = "{" },
    { type = "tool_use", id = "call_2", name = "bad name!", input = { x = 1 } } } },
  { role = "user", content = { { type = "text", text = "beside" },
    { type = "tool_result", tool_use_id = "call:1/x", content = "", is_error = true },
    { type = "tool_result", tool_use_id = "call_2", content = { { type = "text", text = "r" }, { type = "image_url", image_url = { url = "data:image/png;base64,AA==" } } } } } },
  { role = "user", content = { { type = "text", text = " " }, { type = "image_url", image_url = "https://x/y.png" }, { type = "text", text = "n\0ul" } } },
  { role = "user", content = "" },
  { role = "assistant", content = { { type = "thinking", thinking = "unsigned alone" } } },
  { role = "assistant", content = "plain" },
}
local want = '[{"content":"one","role":"user"},{"content":[{"signature":"sig==","thinking":"hm","type":"thinking"},{"data":"x","type":"redacted_thinking"},' ..
  '{"citations":[{"cited_text":"c"}],"text":"a","type":"text"},{"id":"srv","input":{"q":1},"name":"web_search","type":"server_tool_use"},' ..
  '{"id":"id_call_3a1_2fx","input":{},"name":"t","type":"tool_use"},{"id":"call_2","input":{"x":1},"name":"bad_name_","type":"tool_use"}],"role":"assistant"},' ..
  '{"content":[{"content":"","is_error":true,"tool_use_id":"id_call_3a1_2fx","type":"tool_result"},' ..
  '{"content":[{"text":"r","type":"text"},{"source":{"data":"AA==","media_type":"image/png","type":"base64"},"type":"image"}],"tool_use_id":"call_2","type":"tool_result"},{"text":"beside","type":"text"}],"role":"user"},' ..
  '{"content":[{"source":{"type":"url","url":"https://x/y.png"},"type":"image"},{"text":"n\239\191\189ul","type":"text"}],"role":"user"},{"content":"plain","role":"assistant"}]'
eq(wire(messages, nil, { { name = "t" } }), want)
eq(wire(messages, nil, { { name = "t" } }), want)
eq(wire({ { role = "assistant", content = "a" } }), '[{"content":"(the conversation begins here)","role":"user"},{"content":"a","role":"assistant"}]')
eq(wire({ { role = "user", content = " \n" }, { role = "assistant", content = "a" } }), '[{"content":"(the conversation begins here)","role":"user"},{"content":"a","role":"assistant"}]')
eq(wire({ { role = "user", content = { { type = "tool_result", tool_use_id = "1", content = { a = { 1 } } } } } }), '[{"content":[{"content":"{\\"a\\":[1]}","tool_use_id":"1","type":"tool_result"}],"role":"user"}]')
-- One session, two wires: what is kept for one is not taken for the other.
local kept = { wire = {}, messages = messages, intact = function() return #messages end }
local function count() return #anthropic.build({ messages = messages }, {}, { model = "m" }, kept).body.messages end
eq(count(), 5)
eq(#require("llm_proto.openai").build({ messages = messages }, {}, { model = "m", dialect = "vllm" }, kept).body.messages, 9)
eq(count(), 5)`)
}
