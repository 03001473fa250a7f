package llm_test

import (
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/stdlib/llm"
)

func TestJSONIsFoundInWhatModelsWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"bare", `{"a":1}`, `{"a":1}`},
		{"scalar alone", ` 7 `, `7`},
		{"fenced", "Here:\n```json\n{\"a\": [1, 2]}\n```\nDone.", `{"a":[1,2]}`},
		{"tildes", "~~~\n[1]\n~~~", `[1]`},
		{"open fence", "```json\n{\"a\": 1}\n", `{"a":1}`},
		{"among words", `The answer is {"a": "}"} as you see.`, `{"a":"}"}`},
		{"second bracket", `See [note] first, then {"a": 1}.`, `{"a":1}`},
		{"stray bracket", `a { b and {"a": 1}`, `{"a":1}`},
		{"list", "- [1, 2, 3]", `[1,2,3]`},
		{"big integer", `{"n": 9007199254740993}`, `{"n":9007199254740993}`},
		{"null kept", `{"a": null}`, `{"a":null}`},
		{"trailing comma", `{"a": [1, 2,],}`, `{"a":[1,2]}`},
		{"single quotes", `{'a': 'b'}`, `{"a":"b"}`},
		{"no quotes", `{a: true}`, `{"a":true}`},
		{"comments", "{\"a\": 1 // one\n}", `{"a":1}`},
		{"cut off", `{"a": [1, 2, {"b": "c`, `{"a":[1,2,{"b":"c"}]}`},
		{"inner quotes", `{"a": "say "hi" to b"}`, `{"a":"say \"hi\" to b"}`},
		{"no commas", `["a" "b"]`, `["a","b"]`},
		{"missing end", `{"a": [1, 2}`, `{"a":[1,2]}`},
		{"escapes", `{'a': 'x\n\u00e9\ud834\udd1e\ud834 \q\''}`, `{"a":"x\né𝄞` + "\ufffd" + ` q'"}`},
		{"python", `{"a": True, "b": None}`, `{"a":true,"b":null}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v, err := llm.ExtractJSON(c.text)
			if err != nil {
				t.Fatal(err)
			}
			b, err := logjson.Marshal(v)
			if err != nil || string(b) != c.want {
				t.Errorf("%s %v, want %s", b, err, c.want)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "", "words": "no json at all", "word": "hello", "too long": strings.Repeat("x", llm.MaxExtractBytes+1),
	} {
		if v, err := llm.ExtractJSON(text); err == nil || kernel.KindOf(err) != kernel.Validation && kernel.KindOf(err) != kernel.Limit {
			t.Errorf("%s gives %v, %v", name, v, err)
		}
	}
}

func TestFencesAreStripped(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n```lua\nx = 1\n```\nb":   "x = 1",
		"````md\n```\nin\n```\n````": "```\nin\n```",
		"  plain ":                   "plain",
		"```no fence``` here":        "```no fence``` here",
		"```\nopen":                  "open",
	} {
		if got := llm.StripFences(text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func FuzzExtractJSON(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "```json\n[1,\n```", `{'a': "b`, "{{{{[[[[", `{"a":"\ud800"}`, "{:\xb3", strings.Repeat("[", 300)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := llm.ExtractJSON(s)
		if err != nil {
			return
		}
		b, err := logjson.Marshal(v)
		if err != nil {
			t.Fatalf("%q gives what has no JSON: %v", s, err)
		}
		again, err := llm.ExtractJSON(string(b))
		if err != nil {
			t.Fatalf("%s does not come back: %v", b, err)
		}
		if c, _ := logjson.Marshal(again); string(c) != string(b) {
			t.Fatalf("%s came back as %s", b, c)
		}
	})
}
