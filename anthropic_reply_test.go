package ashlar_test

import (
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// Thinking goes back to the provider as it came, with its signature, streamed and not,
// and stays in the log; the default of max_tokens is recorded as one.
func TestThinkingGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{"true", "false"} {
		r := wired(t, "anthropic",
			llmtest.Reply{Reasoning: "let me\nthink", Text: "I look.", Calls: []llmtest.Call{{ID: "toolu_1", Name: "t", Args: `{"n":1}`}}}, llmtest.Text("done"))
		res := r.ok(`
local r = require("agent").run({ prompt = "go", thinking = { budget_tokens = 1024 }, stream = ` + stream + `, extra_tools = { { name = "t", description = "d", handler = function() return "r" end } } })
eq(r.ok, true, r.error) return r.session`)
		q := r.model.Requests()
		if len(q) != 2 {
			t.Fatalf("%d requests", len(q))
		}
		contains(t, string(q[1].Raw), `{"content":[{"signature":"sig+1/==","thinking":"let me\nthink","type":"thinking"},{"text":"I look.","type":"text"},{"id":"toolu_1","input":{"n":1},"name":"t","type":"tool_use"}],"role":"assistant"},{"content":[{"content":"r","tool_use_id":"toolu_1","type":"tool_result"}],"role":"user"}`)
		var defaults []string
		for _, e := range r.events(res.Value.(string)) {
			if e.Kind == "llm_defaults" {
				defaults = append(defaults, string(e.Data))
			}
		}
		if strings.Join(defaults, " ") != `{"max_tokens":8192}` {
			t.Errorf("defaults %v", defaults)
		}
	}
}

// pause_turn: the conversation goes out again as it is, the server's blocks unchanged.
func TestAPausedTurnGoesOn(t *testing.T) {
	t.Parallel()
	stream := strings.Join([]string{
		`{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"type":"web_search_result","encrypted_content":"E/+=","url":"u"}]}}`,
		`{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":9}}`, `{"type":"message_stop"}`,
	}, "\n\ndata: ")
	r := wired(t, "anthropic", llmtest.Raw("data: "+stream+"\n\n"), llmtest.Text("found"))
	r.ok(`local r = require("agent").run({ prompt = "go" }) eq(r.ok, true, r.error) eq(r.content, "found") eq(r.num_turns, 2)`)
	q := r.model.Requests()
	contains(t, string(q[1].Raw), `"messages":[{"content":"go","role":"user"},{"content":[{"id":"srv_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},{"content":[{"encrypted_content":"E/+=","type":"web_search_result","url":"u"}],"tool_use_id":"srv_1","type":"web_search_tool_result"}],"role":"assistant"}]`)
}

// What a Messages reply says, as the neutral result has it.
func TestMessagesRepliesAreNormalised(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local anthropic = require("llm_proto.anthropic")
local function parse(body, notes, status) return anthropic.parse({ status = status or 200, headers = {}, notes = notes or {}, body = body }, { body = {} }) end
local function text(reason, extra)
  local body = { content = { { type = "text", text = "a" } }, stop_reason = reason, usage = { input_tokens = 10, output_tokens = 2 }, model = "m" }
  for k, v in pairs(extra or {}) do body[k] = v end
  return parse(body)
end
for raw, want in pairs({ end_turn = "end_turn", tool_use = "tool_use", max_tokens = "max_tokens", stop_sequence = "stop_sequence",
  pause_turn = "pause_turn", refusal = "refusal", model_context_window_exceeded = "max_tokens", something_new = "something_new" }) do
  local r = text(raw)
  eq(r.stop_reason, want) eq(r.finish_reason, raw) eq(r.content[1].text, "a") eq(r.model, "m")
end
eq(text("refusal").refusal.kind, "model")
eq(text("refusal", { stop_details = { type = "refusal", category = "cyber", explanation = "because" } }).refusal.detail, "because")
eq(text("end_turn", { stop_details = { type = "refusal", category = "cyber" } }).refusal.detail, "cyber")
eq(text("end_turn").refusal, nil)
local u = text("end_turn", { usage = { input_tokens = 10, cache_read_input_tokens = 5, cache_creation_input_tokens = 7, output_tokens = 4, output_tokens_details = { thinking_tokens = 3 } } }).usage
eq(u.input_tokens, 10) eq(u.cache_read_input_tokens, 5) eq(u.cache_creation_input_tokens, 7) eq(u.output_tokens, 4) eq(u.thinking_tokens, 3) eq(u.estimated, nil)
u = text("end_turn", { usage = { input_tokens = 10 } }).usage
eq(u.input_tokens, 10) eq(u.estimated, true) assert(u.output_tokens > 0)
u = text("end_turn", { usage = 7 }).usage
eq(u.estimated, true) assert(u.input_tokens > 0)
-- thoughts in text, as servers that imitate the API leave them
local r = text("end_turn", { content = { { type = "text", text = "<think>hm</think>\n\nfour" } } })
eq(r.content[1].type, "thinking") eq(r.content[1].thinking, "hm") eq(r.content[2].text, "four")
-- blocks of no use
r = text("end_turn", { content = { 7, { type = 5 }, { type = "text", text = "" }, { type = "text" }, { type = "text", text = "a\0b" }, { type = "thinking", thinking = "n\0", signature = "s" } } })
eq(#r.content, 2) eq(r.content[1].text, "a\239\191\189b") eq(r.content[2].signature, nil)
-- calls
r = text("max_tokens", { content = { { type = "tool_use", id = "", name = "t", input = {} } } })
eq(r.content[1].id, "tc0000001") eq(r.content[1].input_error, "they were cut off")
r = text("tool_use", { content = { { type = "tool_use", id = "a", name = "t", input = {} }, { type = "tool_use", id = "b", name = "t", input = {}, input_json = "{" }, { type = "tool_use", id = "c", name = "t", input = { 1 } } } })
eq(r.content[1].input_error, nil) assert(r.content[2].input_error) eq(r.content[2].input_json, nil) eq(r.content[2].input_raw, "{") assert(r.content[3].input_error)
-- no answer
local function fails(kind, ...) local r, e = parse(...) eq(r, nil) eq(e.kind, kind, e.message) return e end
fails("server", {}) fails("server", "text") fails("server", { content = "x" })
fails("overloaded", { type = "error", error = { type = "overloaded_error", message = "Overloaded" } })
fails("overloaded", { type = "error", error = { type = "overloaded_error" } }, nil, 529)
fails("transport", { content = {} }, { incomplete = "closed" })
eq(fails("transport", { content = {}, usage = { input_tokens = 5, output_tokens = 6 } }, { incomplete = "closed" }).usage.output_tokens, 6)
eq(fails("transport", { content = {}, usage = { input_tokens = 5 } }, { incomplete = "closed" }).usage, nil)
fails("quota", { type = "error", error = { type = "invalid_request_error", message = "Your credit balance is too low to access the Anthropic API." } }, nil, 400)
assert(not fails("auth", { type = "error", error = { type = "authentication_error", message = "key sk-1" } }, nil, 401).message:find("sk-1", 1, true))`)
}

// A request that is longer than the window, in the words of each provider.
func TestARequestThatIsTooLongIsKnownByEachProvidersWords(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local function kind(status, err)
  local _, e = require("llm_proto.openai").parse({ status = status, headers = {}, notes = {}, body = { error = err } }, { body = {} })
  local _, f = require("llm_proto.anthropic").parse({ status = status, headers = {}, notes = {}, body = { error = err } }, { body = {} })
  eq(e.kind, f.kind)
  return e.kind
end
for _, c in ipairs({
  { 400, { code = "context_length_exceeded", message = "x" } },
  { 400, { type = "exceed_context_size_error", code = 400, message = "the request exceeds the available context size", n_ctx = 4096 } },
  { 400, { type = "invalid_request_error", message = "prompt is too long: 210000 tokens > 200000 maximum" } },
  { 400, { type = "invalid_request_error", message = "input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000" } },
  { 400, { message = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens." } },
  { 400, { code = 400, status = "INVALID_ARGUMENT", message = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)." } },
  { 400, { code = 400, message = "This endpoint's maximum context length is 131072 tokens." } },
  { 400, { message = "This model's maximum prompt length is 131072 but the request contains 140000 tokens." } },
  { 400, { type = "BadRequestError", message = "Please reduce the length of the messages or completion." } },
  { 500, { message = "the input length exceeds the context length" } },
  { 413, { message = "Input is too long for requested model." } },
}) do eq(kind(c[1], c[2]), "context_length", c[2].message) end
for _, c in ipairs({
  { 400, { message = "max_tokens is too large" }, "invalid_request" },
  { 429, { message = "Rate limit: reduce the length of the messages" }, "rate_limited" },
  { 401, { message = "context length" }, "auth" },
  { 500, { message = "oops" }, "server" },
}) do eq(kind(c[1], c[2]), c[3], c[2].message) end`)
}
