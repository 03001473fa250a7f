package ashlar_test

import (
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// What a script's own callback raises is its fault: nothing that a loop sends again.
func TestACallbackThatRaisesIsNoTransport(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("hello there").Times(-1))
	r.ok(`
local s = knl.open()
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = llm_of({}), on_delta = function() error("my own fault", 0) end }))
eq(o.status, "error") eq(o.detail.kind, "unknown") eq(o.detail.retryable, false)
eq(o.detail.message, "my own fault")
eq(require("policy").retry({})(o, 1), false)
local good, e = pcall(llm.send, { model = "m", stream = true, messages = { { role = "user", content = "hi" } } }, { on_delta = function() error({ code = 7 }) end })
eq(good, false) eq(e.code, 7, "it comes back as it was raised")`)
	if n := len(r.model.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// Routers say by a finish of "error" that their upstream broke off: no finished answer.
func TestAReplyThatEndsInAnErrorIsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"half of"},"finish_reason":"error"}]}`+"\n\n",
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`+"\n\ndata: [DONE]\n\n"))
	r.ok(`
local s = knl.open({ budget = { tokens = 1000 } })
s:append({ kind = "msg_user", data = { content = "hi" } })
local o = knl.beat(s, knl.device({ llm = llm_of({ max_tokens = 100 }) }))
eq(o.status, "error") eq(o.detail.kind, "server") eq(o.detail.retryable, true)
eq(s:remaining("tokens"), 985, "what was counted is charged")`)
}

// A request that fails without tools as well was not refused for them: the next has them.
func TestAFallbackIsRememberedWhereItHelped(t *testing.T) {
	t.Parallel()
	const no = "your text: this model does not support tools"
	r := newRig(t,
		llmtest.Error(400, "invalid_request_error", "", no), llmtest.Error(400, "invalid_request_error", "", no), llmtest.Text("fine"),
		llmtest.Error(400, "invalid_request_error", "", no), llmtest.Text("without"), llmtest.Text("without again"))
	r.ok(`
local function ask() return require("agent").run({ prompt = "go", extra_tools = { { name = "t", description = "d", handler = print } } }) end
eq(ask().ok, false) eq(ask().content, "fine") eq(ask().content, "without") eq(ask().content, "without again")`)
	var tools []string
	for _, q := range r.model.Requests() {
		if q.Body["tools"] != nil {
			tools = append(tools, "with")
		} else {
			tools = append(tools, "without")
		}
	}
	if got := strings.Join(tools, " "); got != "with without with with without without" {
		t.Error(got)
	}
}

// An option that nothing reads is mostly a typo, and said.
func TestAnOptionThatNothingReadsIsSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("x").Times(-1))
	r.ok(`eq(require("agent").run({ prompt = "go", max_iteration = 3 }).ok, true)`)
	if s := r.stderr.String(); !strings.Contains(s, "nothing reads the option 'max_iteration'") {
		t.Errorf("said %q", s)
	}
	before := len(r.stderr.String())
	r.ok(`eq(require("agent").run({ prompt = "go", temperature = 0.5, seed = 3, user = "me", max_repeats = 3, extra_body = { own = 1 } }).ok, true)`)
	if s := r.stderr.String()[before:]; strings.Contains(s, "nothing reads") {
		t.Errorf("said %q", s)
	}
}
