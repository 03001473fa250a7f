package ashlar_test

import (
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// twoPrices has a model that costs a thousand times what the other does.
const twoPrices = `[model."openai/scripted-1"]
price = { input = 1, output = 1 }
[model."openai/dear"]
price = { input = 1000, output = 1000 }
`

// A beat reserves for the request that is recorded. What the port makes of it may ask
// another model, more replies, or hold more: then more is reserved, or nothing is sent.
func TestABeatPaysForTheBodyThatItSends(t *testing.T) {
	t.Parallel()
	const beat = `
		local s = knl.open({ budget = { beats = 2 } })
		s:append({ kind = "msg_user", data = { content = "hi" } })
		local o = knl.beat(s, knl.device({ llm = llm_of(CONF) }))
		return { status = o.status, kind = o.detail and o.detail.kind, message = o.detail and o.detail.message }`
	long := `{ { role = "user", content = ("x"):rep(40000) } }`
	for _, c := range []struct {
		name, conf string
		bound      ashlar.Bounds
		sent       bool
		most       float64 // tokens of all replies
	}{
		{"a dearer model", `{ max_tokens = 100, extra_body = { model = "dear" } }`, ashlar.Bounds{Cost: 10_000}, false, 0},
		{"a dearer model that is covered", `{ max_tokens = 100, extra_body = { model = "dear" } }`, ashlar.Bounds{Cost: 1_000_000}, true, 100},
		{"a dearer model and a reply that is not limited", `{ extra_body = { model = "dear" } }`, ashlar.Bounds{Cost: 100_000}, true, 100},
		{"a model without a price", `{ max_tokens = 100, extra_body = { model = "unknown" } }`, ashlar.Bounds{Cost: 1_000_000}, false, 0},
		{"a longer conversation", `{ max_tokens = 100, extra_body = { messages = LONG } }`, ashlar.Bounds{Tokens: 5_000}, false, 0},
		{"a longer conversation that is covered", `{ max_tokens = 100, extra_body = { messages = LONG } }`, ashlar.Bounds{Tokens: 50_000}, true, 100},
		{"a longer conversation and a reply that is not limited", `{ extra_body = { messages = LONG } }`, ashlar.Bounds{Tokens: 25_000}, true, 6000},
		{"a longer reply", `{ max_tokens = 100, extra_body = { max_tokens = 100000 } }`, ashlar.Bounds{Tokens: 50_000}, true, 100},
		{"many replies", `{ max_tokens = 100, extra_body = { n = 50 } }`, ashlar.Bounds{Tokens: 50_000}, true, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newConfiguredRig(t, twoPrices, llmtest.Text("hello").WithUsage(llmtest.Usage{Prompt: 10, Completion: 5}))
			res := r.ok(strings.NewReplacer("CONF", strings.ReplaceAll(c.conf, "LONG", long)).Replace(beat), bounds(c.bound))
			m := res.Value.(map[string]any)
			q := r.model.Requests()
			if (str(m, "status") == "ok") != c.sent || (len(q) == 1) != c.sent {
				t.Fatalf("%d sent: %v", len(q), m)
			}
			if !c.sent {
				return
			}
			n, ok := q[0].Body["n"].(float64)
			if !ok {
				n = 1
			}
			if limit, _ := q[0].Body["max_tokens"].(float64); limit < 1 || limit*n > c.most {
				t.Errorf("asked for %v replies of %v tokens, want at most %v", n, limit, c.most)
			}
			for _, x := range r.events("run:" + res.Run) {
				if d := dataOf(t, x); d["overdrawn"] != nil {
					t.Errorf("%s %s", x.Kind, x.Data)
				}
			}
		})
	}
}
