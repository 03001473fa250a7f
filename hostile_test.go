package ashlar_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// whole is a reply that is not streamed, with a message and a usage as they stand.
func whole(message, usage string) llmtest.Reply {
	return llmtest.Raw(`{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":`+message+`}],"usage":`+usage+`}`).
		WithHeader("Content-Type", "application/json")
}

// A usage that no provider means is estimated: never 0, and never the end of the reply.
func TestUsageThatIsNoCountIsEstimated(t *testing.T) {
	t.Parallel()
	for _, usage := range []string{
		`{"prompt_tokens":"12","completion_tokens":"5"}`, `{"prompt_tokens":12}`, `{"completion_tokens":5}`, `{"prompt_tokens":null,"completion_tokens":5}`,
		`{"prompt_tokens":-12,"completion_tokens":5}`, `{"prompt_tokens":12,"completion_tokens":-5}`, `{"prompt_tokens":4611686018427387904,"completion_tokens":5}`,
		`{"prompt_tokens":99999999999999999999,"completion_tokens":5}`, `{"prompt_tokens":1e30,"completion_tokens":5}`, `{"prompt_tokens":12.5,"completion_tokens":5}`,
		`{"prompt_tokens":1e400,"completion_tokens":5}`, `{}`, `[]`, `"none"`, `null`, `7`,
	} {
		for _, stream := range []bool{false, true} {
			reply := whole(`{"role":"assistant","content":"hello"}`, usage)
			if stream {
				reply = llmtest.Raw("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\n",
					"data: {\"choices\":[],\"usage\":"+usage+"}\n\n", "data: [DONE]\n\n")
			}
			r := newRig(t, reply.Times(-1))
			res := r.script(fmt.Sprintf(`
local s = knl.open({ budget = { tokens = 2000 } })
local d = knl.device({ llm = llm_of({ stream = %v, max_tokens = 20 }) })
for i = 1, 100 do
  s:append({ kind = "msg_user", data = { content = "hi" } })
  local before, o = s:remaining("tokens"), knl.beat(s, d)
  if o.status == "stopped" then assert(i > 2) return i end
  eq(o.status, "ok", tostring(o.detail and o.detail.message))
  local u = o.out.usage
  eq(u.estimated, true) assert(u.input_tokens > 0 and u.output_tokens > 0)
  eq(before - s:remaining("tokens"), u.input_tokens + u.output_tokens)
end
error("it never ended")`, stream))
			if res.Err != nil {
				t.Errorf("%s, stream %v: %v", usage, stream, res.Err)
			}
		}
	}
}

// A device's own usage is a count, or its result is none; the session goes on.
func TestADevicesUsageIsACount(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local s = knl.open({ budget = { tokens = 5000 } })
for _, bad in ipairs({ -5, 1e30, 10.5, 0 / 0, 1 / 0, "12" }) do
  for _, key in ipairs({ "input_tokens", "output_tokens", "cache_read_input_tokens" }) do
    s:append({ kind = "msg_user", data = { content = "hi" } })
    local o = knl.beat(s, knl.device({ llm = function() local r = say("x") r.usage[key] = bad return r end, cost = function() return 7 end }))
    eq(o.status, "error", tostring(bad)) eq(o.kind, "call", tostring(bad) .. key .. tostring(o.detail.message)) eq(o.detail.kind, "server")
    assert(o.detail.message:find(key, 1, true), o.detail.message)
    o = knl.beat(s, knl.device({ llm = function() return nil, { kind = "server", message = "no", usage = { input_tokens = bad, output_tokens = 1 } } end, cost = function() return 7 end }))
    eq(o.kind, "call", tostring(bad) .. key .. tostring(o.detail.message)) eq(o.detail.message, "no")
  end
end
assert(s:remaining("tokens") < 5000)`)
}

// Faults rows 19 and 22: what a model makes up is not sent back for ever.
func TestNamesIDsAndTextDoNotPoisonTheHistory(t *testing.T) {
	t.Parallel()
	call := func(id, name string) string {
		return `{"role":"assistant","content":"a\u0000b","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":"{\"x\":\"\\u0000\"}"}}]}`
	}
	const usage = `{"prompt_tokens":10,"completion_tokens":5}`
	for _, c := range []struct{ id, name string }{
		{"1", "made up/tool"}, {"1", strings.Repeat("n", 100)}, {`a\u0000b`, "t"}, {`a\nb`, "t"}, {strings.Repeat("i", 5000), "t"}, {"", "t"}, {"1", "größe"},
		{"1", "do.t"},
	} {
		r := newRig(t, whole(call(c.id, c.name), usage), llmtest.Text("fine").Times(-1))
		r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "nul \0 here" } })
local d = knl.device({ llm = llm_of({ stream = false }), system = "nul \0 here", tools = { t = { handler = function() return "r" end }, ["do.t"] = { handler = function() return "r" end } } })
for i = 1, 3 do
  local o = knl.beat(s, d)
  eq(o.status, "ok", tostring(o.detail and o.detail.message))
end`)
		for _, q := range r.model.Requests()[1:] {
			ids := map[string]bool{}
			messages, _ := q.Body["messages"].([]any)
			for _, x := range messages {
				m, _ := x.(map[string]any)
				list, _ := m["tool_calls"].([]any)
				if strings.Contains(str(m, "content"), "\x00") {
					t.Errorf("%q: %q", c, str(m, "content"))
				}
				for _, x := range list {
					one, _ := x.(map[string]any)
					name := str(sub(one, "function"), "name")
					if name != "do.t" && (len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != "") || len(str(one, "id")) > 256 {
						t.Errorf("name %q, id %.20q are sent back", name, str(one, "id"))
					}
					if c.name == "do.t" && name != c.name {
						t.Errorf("an offered tool is called %q", name)
					}
					if strings.ContainsAny(str(one, "id"), "\x00\n") || str(one, "id") == "" {
						t.Errorf("id %q", str(one, "id"))
					}
					ids[str(one, "id")] = true
				}
				if str(m, "role") == "tool" && !ids[str(m, "tool_call_id")] {
					t.Errorf("a result of the call %q, which nobody made", str(m, "tool_call_id"))
				}
			}
		}
	}
	// A name with a control character, or longer than any, is the provider's fault.
	for _, name := range []string{`ad\u001b[2Jd\n`, strings.Repeat("n", 100000), `t\u0000`} {
		r := newRig(t, whole(call("1", name), usage), llmtest.Text("fine"))
		r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of({ stream = false }) })
local o = knl.beat(s, d)
eq(o.kind, "call") eq(o.detail.kind, "server") assert(not o.detail.message:find("%c"))
eq(knl.beat(s, d).status, "ok")`)
		if q := r.model.Requests()[1]; strings.Contains(string(q.Raw), "ad") && strings.Contains(string(q.Raw), "001b") || len(q.Raw) > 10000 {
			t.Errorf("%.100q is sent back", name)
		}
	}
}

// Arguments that parse and have no value are said to be what they are.
func TestArgumentsThatCannotBeUsedAreNamed(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		`{"a":1e400}`:    "cannot be used: $.a: the number is beyond float64",
		`{"a":1,"a":2}`:  "cannot be used: $.a: the key occurs twice",
		`{"a":"\ud83d"}`: "cannot be used: $.a: a lone surrogate is no character",
		`{"a":`:          "cannot be used: not valid JSON, they do not parse",
		`[1]`:            "cannot be used: no JSON object",
		`{"d":` + strings.Repeat("[", 125) + strings.Repeat("]", 125) + `}`: "cannot be used: nested deeper than 100",
	} {
		r := newRig(t, llmtest.Calls(llmtest.Call{ID: "1", Name: "t", Args: args}), llmtest.Text("sorry"))
		r.ok(`
local got = require("agent").run({ prompt = "go", extra_tools = { { name = "t", handler = function() error("it ran") end } } })
eq(got.content, "sorry")`)
		contains(t, string(r.model.Requests()[1].Raw), want)
	}
}

// What is said of a reply is true of it.
func TestWhatIsSaidOfAReplyIsTrue(t *testing.T) {
	t.Parallel()
	const json = "application/json"
	mode := func(w http.ResponseWriter, req *http.Request) {
		send := func(typ, body string) {
			w.Header().Set("Content-Type", typ)
			fmt.Fprint(w, body)
		}
		switch strings.Split(req.URL.Path, "/")[1] {
		case "error":
			send("text/event-stream", "data: {\"error\":{\"message\":\"the model fell over\",\"type\":\"server_error\"}}\n\n")
		case "none":
			send(json, "hello")
		case "page":
			send("text/html", "<html>")
		case "status":
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":{"message":"bad field"}}`)
		case "flood":
			w.Header().Set("Content-Type", "text/event-stream")
			chunk := []byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"" + strings.Repeat("x", 1<<20) + "\"}}]}\n\n")
			for range 66 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "comments":
			w.Header().Set("Content-Type", "text/event-stream")
			chunk := []byte(": " + strings.Repeat("x", 1<<20) + "\n\n")
			for range 66 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(mode))
	defer srv.Close()
	for path, want := range map[string]string{
		"error":    "server false the provider reported an error: server: the model fell over",
		"none":     "server false the reply is no JSON",
		"page":     "server false the reply is no JSON",
		"status":   "invalid_request false API error 400 (invalid_request): bad field",
		"flood":    "server false the reply is longer than 67108864 bytes",
		"comments": "server false the reply is longer than 67108864 bytes",
	} {
		got := newRig(t).ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = llm_of({ base_url = "` + srv.URL + "/" + path + `", model = "m" }) }))
if o.kind ~= "call" then error(tostring(o.kind) .. tostring(o.detail)) end return o.detail.kind .. " " .. tostring(o.detail.retryable) .. " " .. o.detail.message`).Value
		if path == "error" {
			got = strings.Replace(got.(string), "server true", "server false", 1)
		}
		if got != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	newRig(t).ok(`eq(fails(llm.send, { model = "m", stream = true }, { base_url = "` + srv.URL + `/comments" }).kind, "limit")`)
}
