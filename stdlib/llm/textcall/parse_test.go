package textcall

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/kernel/logjson"
)

func declared() []Tool {
	return []Tool{
		{Name: "add", Types: map[string]string{"a": "integer", "b": "number", "on": "boolean", "list": "array"}},
		{Name: "write", Types: map[string]string{"text": "string"}},
	}
}

func TestCallsInText(t *testing.T) {
	t.Parallel()
	const add, sum = `{"name": "add", "arguments": {"a": 1}}`, `add{"a":1}`
	for _, c := range []struct{ name, form, text, calls, left string }{
		{"hermes", "hermes", "<tool_call>\n" + add + "\n</tool_call>", sum, ""},
		{"hermes, text around", "hermes", "I add.\n<tool_call>" + add + "</tool_call>\nThen more.", sum, "I add.\n\nThen more."},
		{"hermes, two", "hermes", "<tool_call>" + add + "</tool_call>\n<tool_call>" + add + "</tool_call>", sum + " " + sum, ""},
		{"hermes, the tag inside a string", "hermes", `<tool_call>{"name":"write","arguments":{"text":"</tool_call>"}}</tool_call>`, `write{"text":"</tool_call>"}`, ""},
		{"hermes, arguments as text", "hermes", `<tool_call>{"name":"add","arguments":"{\"a\":1}"}</tool_call>`, sum, ""},
		{"hermes, no arguments", "hermes", `<tool_call>{"name":"add"}</tool_call>`, "add{}", ""},
		{"hermes, big numbers", "hermes", `<tool_call>{"name":"add","arguments":{"a":9007199254740993}}</tool_call>`, `add{"a":9007199254740993}`, ""},
		{"qwen", "qwen", "<tool_call>\n<function=add>\n<parameter=a>\n17\n</parameter>\n<parameter=b>\n2.5\n</parameter>\n</function>\n</tool_call>", `add{"a":17,"b":2.5}`, ""},
		{"qwen, without the outer tag", "qwen", "ok <function=add><parameter=on>True</parameter><parameter=list>[1,\"x\"]</parameter></function>", `add{"list":[1,"x"],"on":true}`, "ok"},
		{"qwen, text that holds tags", "qwen", "<function=write>\n<parameter=text>\na </parameter> b\n  c\n\n</parameter>\n</function>", `write{"text":"a </parameter> b\n  c\n"}`, ""},
		{"qwen, a number that is none", "qwen", "<function=add><parameter=a>many</parameter></function>", `add{"a":"many"}`, ""},
		{"qwen, no parameters", "qwen", "<function=add></function>", "add{}", ""},
		{"mistral", "mistral", `[TOOL_CALLS][` + add + `, {"name":"write","arguments":{"text":"]"}}] done`, sum + ` write{"text":"]"}`, "done"},
		{"mistral, one object", "mistral", "[TOOL_CALLS] " + add, sum, ""},
		{"mistral, newer", "mistral", `[TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]write{"text":"x"}`, sum + ` write{"text":"x"}`, ""},
		{"llama, tag", "llama", `<|python_tag|>{"name": "add", "parameters": {"a": 1}}<|eom_id|>`, sum, ""},
		{"llama, bare", "llama", `{"type": "function", "name": "add", "parameters": {"a": 1}}`, sum, ""},
		{"llama, two", "llama", `{"name": "add", "parameters": {"a": 1}}; {"name": "add", "parameters": {"a": 1}}`, sum + " " + sum, ""},
		{"llama, function tag", "llama", `<function=add>{"a": 1}</function>`, sum, ""},
		{"auto, hermes", "auto", "<tool_call>" + add + "</tool_call>", sum, ""},
		{"auto, qwen", "auto", "<tool_call><function=add><parameter=a>1</parameter></function></tool_call>", sum, ""},
		{"auto, llama", "auto", `{"name": "add", "parameters": {"a": 1}}`, sum, ""},
		{"auto, mistral", "auto", `[TOOL_CALLS][` + add + `]`, sum, ""},
		{"all of it in a fence", "auto", "```json\n<tool_call>" + add + "</tool_call>\n```\n", sum, ""},
		{"bare, all of it in a fence", "llama", "```\n" + add + "\n```", sum, ""},
		{"behind a fence", "hermes", "```\nx\n```\n<tool_call>" + add + "</tool_call>", sum, "```\nx\n```"},
		{"behind code", "hermes", "I use `add`: <tool_call>" + add + "</tool_call>", sum, "I use `add`:"},
		{"behind a lone backtick", "hermes", "it's 5` <tool_call>" + add + "</tool_call>", sum, "it's 5`"},
		{"code in a value", "hermes", "<tool_call>{\"name\":\"write\",\"arguments\":{\"text\":\"```\\n`\"}}</tool_call>", "write{\"text\":\"```\\n`\"}", ""},
	} {
		r := Parse(c.text, c.form, declared())
		var calls []string
		for _, x := range r.Calls {
			calls = append(calls, x.Name+x.Args)
		}
		if got := strings.Join(calls, " "); got != c.calls || r.Text != c.left || r.Cut {
			t.Errorf("%s: calls %s, left %q, cut %v", c.name, got, r.Text, r.Cut)
		}
	}
}

// What a model shows as code it talks about.
func TestAnExampleIsNoCall(t *testing.T) {
	t.Parallel()
	const call = `<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`
	for _, text := range []string{
		"One writes:\n```\n" + call + "\n```\nand that is all.",
		"One writes `" + call + "`, and that is all.",
		"```\n" + call + "\n```\n```\n" + call + "\n```",
		"```\n" + call, // a fence that is not closed
	} {
		if r := Parse(text, "auto", declared()); len(r.Calls) > 0 || r.Text != text || r.Cut {
			t.Errorf("%q: %+v", text, r)
		}
	}
	begun := time.Now()
	Parse(strings.Repeat("`", MaxBytes), "auto", declared())
	Parse(strings.Repeat("` ", MaxBytes/2), "auto", declared())
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("backticks took %v", took)
	}
}

// Whatever is not a whole call of a declared tool stays text as it is.
func TestHalfACallIsNone(t *testing.T) {
	t.Parallel()
	for text, cut := range map[string]bool{
		`<tool_call>{"name": "add", "arguments": {"a": 1`:                                        true,
		`<tool_call>{"name": "add", "arguments": {"a": 1}}`:                                      true,
		`ok <tool_call><function=add><parameter=a>1</parameter>`:                                 true,
		`<function=add><parameter=a>1`:                                                           true,
		`[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a"`: true,
		`[TOOL_CALLS]add[ARGS]{"a": 1`:                                                           true,
		`<|python_tag|>{"name": "add", "para`:                                                    true,
		`<tool_call>{"name": "nobody", "arguments": {}}</tool_call>`:                             false,
		`<tool_call>{"name": "add", "arguments": [1]}</tool_call>`:                               false,
		`<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>`:                           false,
		`<tool_call>{"name": "add", "arguments": {"a": 1, "a": 2}}</tool_call>`:                  false,
		`<tool_call>add 1</tool_call>`:                                                           false,
		`<function=nobody></function>`:                                                           false,
		`<function=add><parameter=a>1</parameter><parameter=a>2</parameter></function>`:          false,
		`[TOOL_CALLS][{"name": "add", "arguments": {}}, {"name": "nobody", "arguments": {}}]`:    true,
		`{"name": "add", "parameters": {"a": 1}} is how it is called`:                            false,
		`Call it so: {"name": "add", "parameters": {"a": 1}}`:                                    false,
		`{"name": "nobody", "parameters": {}}`:                                                   false,
		"":                                                                                       false,
		"no call at all\n":                                                                       false,
	} {
		if r := Parse(text, "auto", declared()); len(r.Calls) != 0 || r.Text != text || r.Cut != cut {
			t.Errorf("%s: %+v, want cut %v", text, r, cut)
		}
	}
	if r := Parse(`<tool_call>{"name": "add"}</tool_call>`, "llama", declared()); len(r.Calls) != 0 {
		t.Errorf("another form's call: %+v", r)
	}
	for _, mark := range []string{`<tool_call>{"a":"`, "<function=add><parameter=a>", "[TOOL_CALLS][", "<|python_tag|>{"} {
		if r := Parse(strings.Repeat(mark, MaxBytes/len(mark)), "auto", declared()); len(r.Calls) != 0 || len(r.Text) < MaxBytes-100 {
			t.Errorf("%s without end: %d calls", mark, len(r.Calls))
		}
	}
	if r := Parse(strings.Repeat(`<tool_call>{"name": "add"}</tool_call>`, MaxCalls+1), "auto", declared()); len(r.Calls) != MaxCalls || r.Text == "" {
		t.Errorf("%d calls, %q left", len(r.Calls), r.Text)
	}
}

// Whatever comes: no panic, calls of declared tools alone, with arguments that the log
// can keep, and without a call the text as it was.
func FuzzToolCallsInText(f *testing.F) {
	for _, seed := range []string{
		`<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>`, "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>",
		`[TOOL_CALLS][{"name":"add","arguments":{}}]`, `[TOOL_CALLS]add[ARGS]{}`, `<|python_tag|>{"name":"add","parameters":{}};{"name":"add"}`,
		`{"name":"add","parameters":{"a":1}}`, "<tool_call>\xff{", `<tool_call>{"name":"add","arguments":"{"}`,
	} {
		for i := range Forms() {
			f.Add(seed, i)
		}
	}
	f.Fuzz(func(t *testing.T, text string, form int) {
		forms := Forms()
		r := Parse(text, forms[max(form, -form, 0)%len(forms)], declared())
		if len(r.Calls) == 0 && r.Text != text {
			t.Errorf("%q became %q", text, r.Text)
		}
		if len(r.Text) > len(text) {
			t.Errorf("%q grew to %q", text, r.Text)
		}
		for _, c := range r.Calls {
			if _, err := logjson.Object([]byte(c.Args)); err != nil || c.Name != "add" && c.Name != "write" {
				t.Errorf("%q: %s", text, fmt.Sprint(c, err))
			}
		}
	})
}
