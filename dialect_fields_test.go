package ashlar_test

import (
	"fmt"
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// The cells of the translation table that wire_test.go does not have: formats of a
// reply, choices of a tool, fields of the other wire, and what is refused here.
var dialectCases = []wireCase{
	// response_format
	{"openai", "gpt-4o", `response_format = { type = "json_schema", json_schema = { name = "n", strict = true, schema = S } }`, `{"response_format":{"json_schema":{"name":"n","schema":S,"strict":true},"type":"json_schema"}}`},
	{"vllm", "m", `response_format = { type = "json_schema", schema = S }`, `{"response_format":{"json_schema":{"name":"answer","schema":S},"type":"json_schema"}}`},
	{"llamacpp", "m", `response_format = { type = "json_schema", schema = S, name = "x" }`, `{"response_format":{"json_schema":{"name":"x","schema":S},"type":"json_schema"}}`},
	{"ollama", "m", `response_format = { type = "json_schema", schema = S }`, `{"response_format":{"json_schema":{"name":"answer","schema":S},"type":"json_schema"}}`},
	{"vllm", "m", `response_format = { type = "json_object" }`, `{"response_format":{"type":"json_object"}}`},
	{"llamacpp", "m", `response_format = { type = "json_object" }`, `{"response_format":{"json_schema":{"name":"answer","schema":S},"type":"json_schema"}}`},
	{"openai", "gpt-4o", `response_format = { type = "text" }`, `{"response_format":{"type":"text"}}`},
	{"openai", "gpt-4o", `response_format = { type = "json_schema" }`, `refused: response_format json_schema needs a schema`},
	{"openai", "gpt-4o", `response_format = "json"`, `refused: response_format must be a table`},
	// tool_choice
	{"vllm", "m", `tools = T, tool_choice = "required"`, `{"tool_choice":"required","tools":T}`},
	{"llamacpp", "m", `tools = T, tool_choice = "any"`, `{"tool_choice":"required","tools":T}`},
	{"vllm", "m", `tools = T, tool_choice = "none"`, `{"tool_choice":"none","tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = { type = "function", name = "t" }`, `{"tool_choice":{"function":{"name":"t"},"type":"function"},"tools":T}`},
	{"openai", "gpt-4o", `tools = T, tool_choice = { type = "tool", name = "x" }`, `refused: tool_choice names 'x'`},
	{"openai", "gpt-4o", `tools = T, tool_choice = "sometimes"`, `refused: tool_choice is sometimes`},
	{"ollama", "m", `tools = T, tool_choice = { type = "tool", name = "t" }`, `{"tools":T}`},
	{"ollama", "m", `tools = T, tool_choice = "none"`, `{}`},
	// parallel_tool_calls
	{"vllm", "m", `tools = T, parallel_tool_calls = false`, `{"parallel_tool_calls":false,"tools":T}`},
	{"llamacpp", "m", `tools = T, parallel_tool_calls = true`, `{"parallel_tool_calls":true,"tools":T}`},
	{"ollama", "m", `tools = T, parallel_tool_calls = false`, `{"parallel_tool_calls":false,"tools":T}`},
	// stop
	{"llamacpp", "m", `stop = { "A", "B" }`, `{"stop":["A","B"]}`},
	{"ollama", "m", `stop = "A"`, `{"stop":"A"}`},
	// thinking
	{"openai", "gpt-5.1", `thinking = { effort = "high" }`, `{"reasoning_effort":"high"}`},
	{"openai", "o3", `thinking = { budget_tokens = 2000 }`, `{}`},
	{"llamacpp", "m", `thinking = false`, `{"chat_template_kwargs":{"enable_thinking":false}}`},
	{"llamacpp", "m", `thinking = { effort = "low" }`, `{"chat_template_kwargs":{"enable_thinking":true},"reasoning_effort":"low"}`},
	{"vllm", "m", `thinking = { kwarg = "thinking", budget_tokens = 99 }, max_tokens = 100`, `{"chat_template_kwargs":{"thinking":true},"max_tokens":100,"thinking_token_budget":99}`},
	{"vllm", "m", `thinking = { budget_tokens = 100 }, max_tokens = 100`, `refused: the thinking budget of 100 tokens leaves nothing`},
	{"openai", "gpt-5.10", `tools = T, thinking = true`, `refused: gpt-5.10 takes no tools together with reasoning`},
	{"openai", "gpt-6", `tools = T, thinking = true`, `refused: gpt-6 takes no tools`},
	{"openai", "gpt-5.5", `tools = T, thinking = { effort = "low" }`, `{"reasoning_effort":"low","tools":T}`},
	// fields of the other wire, and what goes through
	{"openai", "gpt-4o", `betas = { "x" }`, `{}`},
	{"openai", "gpt-4o", `user = "u", metadata = { a = "b" }, service_tier = "flex", n = 1, logprobs = true, prompt_cache_key = "k", presence_penalty = 1, frequency_penalty = 0.5`,
		`{"frequency_penalty":0.5,"logprobs":true,"metadata":{"a":"b"},"n":1,"presence_penalty":1,"prompt_cache_key":"k","service_tier":"flex","user":"u"}`},
	{"ollama", "m", `extra_body = { keep_alive = "5m" }`, `{"keep_alive":"5m"}`},
	{"llamacpp", "m", `text_tool_calls = "klingon"`, `refused: text_tool_calls is klingon`},
	{"llamacpp", "m", `text_tool_calls = "qwen"`, `{}`},
}

func TestFieldsBecomeWhatEachDialectTakes(t *testing.T) {
	t.Parallel()
	const tools, schema = `[{"function":{"description":"d","name":"t","parameters":{"type":"object"}},"type":"function"}]`, `{"type":"object"}`
	var src strings.Builder
	src.WriteString(`
local openai = require("llm_proto.openai")
local S = { type = "object" }
local T = { { name = "t", description = "d", input_schema = S } }
local out = {}
local function build(dialect, model, request)
  request.messages = std.json.array()
  local wire, err = openai.build(request, {}, { model = model, dialect = dialect })
  if not wire then eq(err.kind, "invalid_request") eq(err.retryable, false) return "refused: " .. err.message end
  local b = wire.body
  b.model, b.stream, b.stream_options, b.messages = nil, nil, nil, nil
  return next(b) and std.json.encode(b) or "{}"
end
`)
	for i, c := range dialectCases {
		fmt.Fprintf(&src, "out[%d] = build(%q, %q, { %s })\n", i+1, c.dialect, c.model, c.request)
	}
	src.WriteString("return out")
	r := newRig(t)
	list, _ := r.ok(src.String()).Value.([]any)
	for i, c := range dialectCases {
		want := strings.ReplaceAll(strings.ReplaceAll(c.want, `"tools":T}`, `"tools":`+tools+`}`), `"schema":S`, `"schema":`+schema)
		got := fmt.Sprint(list[i])
		if got != want && !(strings.HasPrefix(want, "refused") && strings.HasPrefix(got, want)) {
			t.Errorf("%s %s {%s}:\n%v\nwant\n%s", c.dialect, c.model, c.request, got, want)
		}
	}
	for _, part := range []string{"takes no betas", "openai takes no thinking.budget_tokens", "ollama takes no tool_choice"} {
		contains(t, r.stderr.String(), part)
	}
}

// Small models write their calls into the text: where the port says so they are calls,
// never half of one, and nothing of the text is lost.
func TestCallsInTextAreCallsWhereThePortSaysSo(t *testing.T) {
	t.Parallel()
	const hermes = "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}\n</tool_call>"
	const tool = `local tools = { add = { description = "d", input_schema = { type = "object", properties = { a = { type = "integer" }, b = { type = "integer" } } }, handler = function(i) return i.a + i.b end } } `
	run := func(conf string, reply llmtest.Reply, check string) {
		t.Helper()
		newRig(t, reply).ok(tool + `
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local o = knl.beat(s, knl.device({ llm = llm_of({ ` + conf + ` }), tools = tools }))
eq(o.status, "ok", o.detail and o.detail.message)
local c = o.out.content ` + check)
	}
	for _, c := range []struct{ conf, text string }{
		{`text_tool_calls = true`, hermes}, {`text_tool_calls = "hermes"`, hermes},
		{`text_tool_calls = "qwen"`, "I add.\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n3\n</parameter>\n</function>"},
		{`text_tool_calls = "mistral"`, "I add.[TOOL_CALLS][{\"name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}]"},
		{`text_tool_calls = "llama", stream = false`, "I add.<|python_tag|>{\"name\": \"add\", \"parameters\": {\"a\": 2, \"b\": 3}}"},
	} {
		run(c.conf, llmtest.Text(c.text), `eq(#c, 2) eq(c[1].text, "I add.") eq(c[2].name, "add") eq(c[2].id, "tc0000001") eq(o.out.stop_reason, "tool_use") eq(o.out.tools[1].ok, true) eq(c[2].input.a + c[2].input.b, 5)`)
	}
	run(``, llmtest.Text(hermes), `eq(#c, 1) eq(c[1].type, "text") eq(#o.out.tools, 0)`)
	run(`text_tool_calls = true`, llmtest.Text(hermes[:60]), `eq(#c, 1) eq(c[1].type, "text") eq(o.out.stop_reason, "end_turn")`)
	run(`text_tool_calls = true`, llmtest.Finish("length", hermes[:60]), `eq(#c, 1) eq(c[1].type, "text") eq(o.out.stop_reason, "max_tokens")`)
	run(`text_tool_calls = true`, llmtest.Think("I could <tool_call>", hermes), `eq(#c, 3) eq(c[1].type, "thinking") eq(c[3].name, "add")`)
	run(`text_tool_calls = true`, llmtest.Text(hermes).WithCalls(llmtest.Call{Name: "add", Args: `{"a":1,"b":1}`}), `eq(#c, 2) eq(c[2].id, "call_1")`)
}

// A server that refuses tools or streams is asked without, once, under the same reserve;
// the run remembers, and the log says so.
func TestWhatAServerRefusesIsLeftOutOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    llmtest.Reply
		without  string
		requests int
	}{
		"Ollama, tools":       {llmtest.Status(400, nil, `{"error":{"message":"registry.ollama.ai/library/gemma:2b does not support tools","type":"invalid_request_error"}}`), "tools", 3},
		"OpenRouter, tools":   {llmtest.Error(404, "", "", "No endpoints found that support tool use. Try disabling add."), "tools", 3},
		"vLLM, tools":         {llmtest.Status(400, nil, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","code":400}`), "tools", 3},
		"llama.cpp, tools":    {llmtest.Status(500, nil, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`), "tools", 3},
		"OpenAI, streams":     {llmtest.Status(400, nil, `{"error":{"message":"Your organization must be verified to stream this model.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`), "stream", 3},
		"in words, streams":   {llmtest.Error(400, "", "", "Streaming is not supported for this model"), "stream", 3},
		"FastAPI, an option":  {llmtest.Status(422, nil, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`), "stream_options", 3},
		"a bad tool is no no": {llmtest.Error(400, "invalid_request_error", "", "Invalid schema for function 'add': 'oneOf' is not supported"), "", 1},
		"nor is another word": {llmtest.Error(400, "invalid_request_error", "", "temperature is not supported"), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.reply, llmtest.Text("without"), llmtest.Text("again"))
			res := r.ok(`
local s = knl.open({ budget = { beats = 2, tokens = 100000 } })
s:append({ kind = "msg_user", data = { content = "go" } })
local d = knl.device({ llm = llm_of({ max_tokens = 50 }), tools = { add = { description = "d", handler = function() end } } })
local first = knl.beat(s, d)
if first.status == "ok" then
  eq(first.out.content[1].text, "without")
  s:append({ kind = "msg_user", data = { content = "more" } })
  eq(knl.beat(s, d).status, "ok")
end
return s:id()`)
			var events []string
			for _, e := range r.events(res.Value.(string)) {
				if e.Kind == "llm_fallback" {
					events = append(events, string(e.Data))
				}
			}
			q := r.model.Requests()
			if len(q) != c.requests {
				t.Fatalf("%d requests", len(q))
			}
			if c.without == "" {
				if len(events) != 0 {
					t.Errorf("events %v", events)
				}
				return
			}
			if len(events) != 1 || !strings.Contains(events[0], `"without":"`+c.without+`"`) || !strings.Contains(events[0], `"status":`) {
				t.Errorf("events %v", events)
			}
			for i, x := range q {
				if _, has := x.Body[c.without]; has != (i == 0) {
					t.Errorf("request %d: %s", i, x.Raw)
				}
			}
		})
	}
}
