package ashlar_test

import (
	"fmt"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// A server that is named by its URL alone is nobody's: no provider's key goes there,
// through the whole way of a beat. A provider that is named beside the URL is asked with
// its own.
func TestAProvidersKeyStaysWithTheProvider(t *testing.T) {
	t.Parallel()
	const theirs = "sk-theirs-0123456789abcdef"
	for _, c := range []struct{ conf, authorization, key string }{
		{`base_url = %q, model = "m"`, "", ""},
		{`base_url = %q`, "", ""},
		{`base_url = %q, model = "openai/m"`, "Bearer " + theirs, ""},
		{`base_url = %q, provider = "openai", model = "openai/m"`, "Bearer " + theirs, ""},
		{`base_url = %q, model = "anthropic/m"`, "", theirs},
		{`base_url = %q, provider = "anthropic", model = "org/m"`, "", theirs},
	} {
		model := llmtest.New(t, llmtest.Text("hi"))
		dir := t.TempDir()
		ws, err := ashlar.Open(t.Context(), ashlar.Options{Project: dir, Stderr: &buffer{}, Stdout: &buffer{}, Environ: []string{
			"ASHLAR_HOME=" + t.TempDir(), "OPENAI_API_KEY=" + theirs, "ANTHROPIC_API_KEY=" + theirs, "OPENROUTER_API_KEY=" + theirs,
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, model: model, ws: ws, dir: dir, stderr: &buffer{}, facts: &facts{}}
		r.ok(`local r = require("agent").run({ prompt = "x", ` + fmt.Sprintf(c.conf, model.URL()) + ` }) eq(r.ok, true, r.error)`)
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
		for _, q := range model.Requests() {
			if q.Header.Get("Authorization") != c.authorization || q.Header.Get("X-Api-Key") != c.key {
				t.Errorf("%s: %v", c.conf, q.Header)
			}
		}
	}
}

// A path is below the base URL: a call takes the key along.
func TestAPathTakesNoKeyElsewhere(t *testing.T) {
	t.Parallel()
	elsewhere := llmtest.New(t, llmtest.Text("mine now").Times(-1))
	r := newRig(t, llmtest.Text("hi").Times(-1))
	r.ok(fmt.Sprintf(`
local body = { model = "m", max_tokens = 5, messages = { { role = "user", content = "x" } } }
for _, provider in ipairs({ "openai", "anthropic" }) do
  for _, path in ipairs({ %[1]q .. "/messages", %[1]q .. "/chat/completions", (%[1]q):gsub("^http:", "") .. "/messages", "../x", "/v1/messages" }) do
    local e = fails(llm.send, body, { provider = provider, model = "m", base_url = %[2]q, api_key = "sk-mine-0123456789abcdef", path = path, max_retries = 0 })
    eq(e.kind, "validation", provider .. " " .. path)
  end
end`, elsewhere.URL(), r.model.URL()))
	if n := len(elsewhere.Requests()) + len(r.model.Requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}
