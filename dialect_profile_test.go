package ashlar_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// What a port knows of a model: conf first, then the server; how long a request is, by
// the server's tokenizer or by its bytes; and whether the server is there.
func TestAPortKnowsItsModel(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			io.WriteString(w, `{"data":[{"id":"m","meta":{"n_ctx":4096}}]}`)
		case "/v1/models/m":
			io.WriteString(w, `{"max_input_tokens":200000,"max_tokens":64000}`)
		case "/tokenize":
			io.WriteString(w, `{"tokens":[1,2,3,4]}`)
		case "/v1/messages/count_tokens":
			b, _ := io.ReadAll(r.Body)
			if strings.Contains(string(b), "max_tokens") || strings.Contains(string(b), "stream") {
				w.WriteHeader(400)
			}
			io.WriteString(w, `{"input_tokens":77}`)
		case "/health":
			io.WriteString(w, `{"status":"ok"}`)
		default:
			w.WriteHeader(404)
		}
	}))
	t.Cleanup(srv.Close)
	newRig(t).ok(`
local base = "` + srv.URL + `/v1"
local function conf(provider, more)
  local c = { provider = provider, model = "m", base_url = base }
  for k, v in pairs(more or {}) do c[k] = v end
  return c
end
local p = adapter.openai:profile(conf("llamacpp"))
eq(p.context_window, 4096) eq(p.discovered, true) eq(p.max_output, nil)
p = adapter.openai:profile(conf("llamacpp", { context_window = 1000, max_output = 50 }))
eq(p.context_window, 1000) eq(p.discovered, nil) eq(p.max_output, 50)
p = adapter.anthropic:profile(conf("anthropic"))
eq(p.context_window, 200000) eq(p.max_output, 64000) eq(p.discovered, true)
p = adapter.anthropic:profile(conf("anthropic", { model = "unknown" }))
eq(p.context_window, 4096) eq(p.max_output, 8192) -- the only model of a server is every name
p = adapter.openai:profile(conf("nobody"))
eq(p.context_window, nil)
local request = { messages = { { role = "user", content = ("x"):rep(320) } } }
eq(adapter.openai:count(request, conf("llamacpp")), 4)
eq(adapter.anthropic:count(request, conf("anthropic")), 77)
local n = adapter.openai:count(request, conf("vllm"))
assert(n >= 100 and n < 130, n)
local none, err = adapter.openai:count({ messages = {}, response_format = "x" }, conf("vllm"))
eq(none, nil) eq(err.kind, "invalid_request")
p = adapter.openai:probe(conf("llamacpp"))
eq(p.alive, true) eq(p.kind, "ok") eq(p.status, 200)
eq(require("llm_proto").ping(conf("llamacpp")), true)
eq(adapter.anthropic:probe(conf("anthropic", { base_url = "http://127.0.0.1:1" })).kind, "unreachable")
-- a port of somebody else's
local own = adapter.LLMPort.new({ build = print, parse = print, classify = print, default_max_output = 7,
  discover = function() return { context_window = 5, discovered = true } end, tokenize = function() return 9 end, health = function() return { alive = true, kind = "ok" } end })
p = own:profile({})
eq(p.context_window, 5) eq(p.max_output, 7) eq(own:count({}, {}), 9) eq(own:probe({}).kind, "ok")`)
}

// A server of llama.cpp as it really streams: content null first, arguments in the first
// delta, an id of its own make, an empty last delta, usage in a chunk without choices.
func TestAServerOfLlamaCppIsUnderstood(t *testing.T) {
	t.Parallel()
	chunk := func(choices, more string) string {
		return `data: {"choices":[` + choices + `],"created":1,"id":"chatcmpl-x","model":"smollm2-135m","object":"chat.completion.chunk"` + more + "}\n\n"
	}
	r := newRig(t,
		llmtest.Raw(
			chunk(`{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}`, ""),
			chunk(`{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"Yk3Jq0c1Yk3Jq0c1Yk3Jq0c1Yk3Jq0c1","type":"function","function":{"name":"get_weather","arguments":"{\""}}]}}`, ""),
			chunk(`{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"city\": \"Paris\"}"}}]}}`, ""),
			chunk(`{"finish_reason":"tool_calls","index":0,"delta":{}}`, ""),
			chunk(``, `,"usage":{"completion_tokens":12,"prompt_tokens":57,"total_tokens":69,"prompt_tokens_details":{"cached_tokens":40}},"timings":{"cache_n":40,"prompt_ms":1.5}`),
			"data: [DONE]\n\n"),
		llmtest.Text("21 degrees"),
		llmtest.Status(400, nil, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`),
		llmtest.Raw(chunk(`{"finish_reason":null,"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"get_weather","arguments":"{\"ci"}}]}}`, ""),
			chunk(`{"finish_reason":"length","index":0,"delta":{}}`, ""), "data: [DONE]\n\n"),
		llmtest.Status(401, nil, `{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}`))
	r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "go" } })
local asked
local d = knl.device({ llm = llm_of({ dialect = "llamacpp", max_retries = 0 }), tools = { get_weather = { description = "d", handler = function(i) asked = i.city return "21" end } } })
local o = knl.beat(s, d)
eq(o.status, "ok", o.detail and o.detail.message) eq(asked, "Paris") eq(o.out.content[1].id, "Yk3Jq0c1Yk3Jq0c1Yk3Jq0c1Yk3Jq0c1")
local u = o.out.usage
eq(u.input_tokens, 17) eq(u.cache_read_input_tokens, 40) eq(u.output_tokens, 12)
eq(knl.beat(s, d).status, "ok")
s:append({ kind = "msg_user", data = { content = "more" } })
o = knl.beat(s, d)
eq(o.status, "error") eq(o.detail.kind, "context_length") eq(o.detail.retryable, false)
asked = nil
o = knl.beat(s, d)
eq(o.status, "ok") eq(o.out.stop_reason, "max_tokens") eq(asked, nil) eq(o.out.tools[1].ok, false) eq(o.out.usage.estimated, true)
o = knl.beat(s, d)
eq(o.status, "error") eq(o.detail.kind, "auth")`)
	for _, q := range r.model.Requests() {
		if strings.Contains(string(q.Raw), `{\"ci\"`) || strings.Contains(string(q.Raw), `"arguments":"{\"ci"`) {
			t.Errorf("invalid arguments went out: %s", q.Raw)
		}
	}
}

// What config.toml says of a model is believed before its server is asked.
func TestAConfiguredWindowIsThePorts(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t, "[model.\"openai/m\"]\ncontext_window = 12345\nmax_output = 678\n")
	r.ok(`
local p = adapter.openai:profile({ model = "m" })
eq(p.context_window, 12345) eq(p.max_output, 678) eq(p.discovered, false)`)
}

// Gemini and OpenRouter take OpenAI's word for thinking; a preset's model is named behind
// the first slash.
func TestPresetsSpeakTheirDialects(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local openai = require("llm_proto.openai")
for name, want in pairs({ gemini = "openai", openrouter = "openai", lmstudio = "llamacpp", ollama = "ollama", llamacpp = "llamacpp", vllm = "vllm" }) do
  local target = llm.resolve({ model = name .. "/org/m" })
  eq(target.provider, name) eq(target.model, "org/m") eq(target.kind, "openai") eq(target.dialect, want, name)
  local body = openai.build({ messages = {}, top_k = 4 }, { thinking = { effort = "low" } }, target).body
  eq(body.reasoning_effort, "low") eq(body.chat_template_kwargs ~= nil, want == "vllm" or want == "llamacpp", name)
  eq(body.top_k, name ~= "gemini" and 4 or nil, name)
end`)
}
