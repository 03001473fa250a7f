package assemble

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"ashlar/kernel/logjson"
)

// delta is a chunk with one delta, finish one with the reason and nothing else.
func delta(d string) string { return `{"id":"r1","choices":[{"index":0,"delta":` + d + `}]}` }
func finish(reason string) string {
	return `{"id":"r1","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}
func calls(list string) string { return delta(`{"tool_calls":[` + list + `]}`) }

// called is a call as a test writes it: id, name, arguments.
type called [3]string

// assembled puts chunks together and gives the message.
func assembled(t testing.TB, chunks ...string) (Result, map[string]any) {
	t.Helper()
	a := New(nil)
	for _, c := range chunks {
		if err := a.Add([]byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	r := a.Result(false)
	choices, _ := r.Body["choices"].([]any)
	if len(choices) != 1 {
		return r, nil
	}
	message, _ := choices[0].(map[string]any)["message"].(map[string]any)
	return r, message
}

func callsOf(message map[string]any) (list []called) {
	raw, _ := message["tool_calls"].([]any)
	for _, c := range raw {
		call := c.(map[string]any)
		fn := call["function"].(map[string]any)
		list = append(list, called{call["id"].(string), fn["name"].(string), fn["arguments"].(string)})
	}
	return list
}

// The shapes of libraries.md D6 that concern calls, and those that users of other
// clients met (faults.md row 12).
func TestEachCallIsOneCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   []called
	}{
		"two calls interleaved by index": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}`),
			calls(`{"index":0,"function":{"arguments":"{\"x\""}}`), calls(`{"index":1,"function":{"arguments":"{\"y\""}}`),
			calls(`{"index":0,"function":{"arguments":":1}"}}`), calls(`{"index":1,"function":{"arguments":":2}"}}`),
		}, []called{{"a", "f", `{"x":1}`}, {"b", "g", `{"y":2}`}}},
		"same index, two ids": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`),
			calls(`{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":0,"function":{"arguments":"2}"}}`),
		}, []called{{"a", "f", `{"x":1}`}, {"b", "f", `{"x":2}`}}},
		"same index, no ids, each whole": {[]string{
			calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), calls(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`),
		}, []called{{"tc0000001", "f", `{"x":1}`}, {"tc0000002", "f", `{"x":2}`}}},
		"no index, by id": {[]string{
			calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"id":"b","function":{"name":"g","arguments":"{}"}}`),
			calls(`{"id":"a","function":{"arguments":"1}"}}`),
		}, []called{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}}},
		"no index, continued without id": {[]string{
			calls(`{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"function":{"arguments":"1}"}}`),
			calls(`{"id":"b","function":{"name":"g","arguments":"{}"}}`),
		}, []called{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}}},
		"neither index nor id, by order": {[]string{
			calls(`{"function":{"name":"f","arguments":"{}"}}`), calls(`{"function":{"name":"g","arguments":"{}"}}`),
		}, []called{{"tc0000001", "f", `{}`}, {"tc0000002", "g", `{}`}}},
		"neither index nor id, in one chunk": {[]string{
			calls(`{"function":{"name":"f"}},{"function":{"name":"f"}}`), calls(`{"function":{"arguments":"{\"x\":1}"}},{"function":{"arguments":"{\"x\":2}"}}`),
		}, []called{{"tc0000001", "f", `{"x":1}`}, {"tc0000002", "f", `{"x":2}`}}},
		"first index 1": {[]string{calls(`{"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}`)}, []called{{"a", "f", `{}`}}},
		"index 5":       {[]string{calls(`{"index":5,"id":"a","function":{"name":"f","arguments":"{}"}}`)}, []called{{"a", "f", `{}`}}},
		"index -1": {[]string{
			calls(`{"index":-1,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}`), calls(`{"index":-1,"function":{"arguments":"1}"}}`),
		}, []called{{"a", "f", `{"x":1}`}}},
		"index as text": {[]string{
			calls(`{"index":"0","id":"a","function":{"name":"f","arguments":"{\"x\":"}},{"index":"1","id":"b","function":{"name":"g","arguments":"{"}}`),
			calls(`{"index":"0","function":{"arguments":"1}"}}`), calls(`{"index":"1","function":{"arguments":"}"}}`),
		}, []called{{"a", "f", `{"x":1}`}, {"b", "g", `{}`}}},
		"arguments as object": {[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":{"y":[1],"x":9007199254740993}}}`)},
			[]called{{"a", "f", `{"x":9007199254740993,"y":[1]}`}}},
		"arguments null":   {[]string{calls(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`)}, []called{{"a", "f", `{}`}}},
		"arguments absent": {[]string{calls(`{"index":0,"id":"a","function":{"name":"f"}}`)}, []called{{"a", "f", `{}`}}},
		"the id comes late": {[]string{
			calls(`{"index":0,"function":{"name":"f"}}`), calls(`{"index":0,"id":"a","function":{"arguments":"{}"}}`),
		}, []called{{"a", "f", `{}`}}},
		"the id comes with every piece": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), calls(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`),
		}, []called{{"a", "f", `{"x":1}`}}},
		"one id for two calls": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":1,"id":"a","function":{"name":"g","arguments":"{"}}`), calls(`{"index":1,"id":"a","function":{"arguments":"}"}}`),
		}, []called{{"a", "f", `{}`}, {"tc0000002", "g", `{}`}}},
		"the name comes with every piece, no id": {[]string{
			calls(`{"function":{"name":"f","arguments":"{\"x\""}}`), calls(`{"function":{"name":"f","arguments":":1}"}}`), calls(`{"function":{"name":"f","arguments":""}}`),
		}, []called{{"tc0000001", "f", `{"x":1}`}}},
		"the name comes in pieces": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"get_"}}`), calls(`{"index":0,"function":{"name":"weather"}}`), calls(`{"index":0,"function":{"arguments":"{}"}}`),
		}, []called{{"a", "get_weather", `{}`}}},
		"empty ids": {[]string{
			calls(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":1,"id":"","function":{"name":"g","arguments":"{}"}}`),
		}, []called{{"tc0000001", "f", `{}`}, {"tc0000002", "g", `{}`}}},
		"a made id is nobody's": {[]string{
			calls(`{"index":0,"function":{"name":"f","arguments":"{}"}},{"index":1,"id":"tc0000001","function":{"name":"g","arguments":"{}"}}`),
		}, []called{{"tc0000003", "f", `{}`}, {"tc0000001", "g", `{}`}}},
		"trailing junk stays visible": {[]string{
			calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`), calls(`{"index":0,"function":{"arguments":"}"}}`),
		}, []called{{"a", "f", `{}}`}}},
		"nonsense among calls": {[]string{
			delta(`{"tool_calls":[null,7,"x",{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`), delta(`{"tool_calls":null}`),
		}, []called{{"a", "f", `{}`}}},
	} {
		r, message := assembled(t, append(c.chunks, finish("tool_calls"), "[DONE]")...)
		if got := callsOf(message); !reflect.DeepEqual(got, c.want) || r.Incomplete != "" {
			t.Errorf("%s:\n got %q (%s)\nwant %q", name, got, r.Incomplete, c.want)
		}
	}
}

// A call that was cut has no arguments yet, which is not the same as none.
func TestACutCallGetsNoArgumentsInvented(t *testing.T) {
	t.Parallel()
	begun := calls(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`)
	_, message := assembled(t, begun, finish("length"))
	if got := callsOf(message); len(got) != 1 || got[0][2] != "" {
		t.Errorf("cut at the length: %q", got)
	}
	r, message := assembled(t, begun)
	if got := callsOf(message); len(got) != 1 || got[0][2] != "" || r.Incomplete != "closed" {
		t.Errorf("cut by the connection: %q %q", got, r.Incomplete)
	}
}

func TestTheBodyIsTheNonStreamedOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string // the body's log JSON
	}{
		"text, usage in a last chunk without choices": {[]string{
			`{"id":"r1","object":"chat.completion.chunk","model":"m","created":1,"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}`,
			delta(`{"content":"Hel"}`), delta(`{"content":"lo"}`), finish("stop"), `{"id":"r1","choices":[],"usage":{"prompt_tokens":7}}`, "[DONE]",
		}, `{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"Hello","role":"assistant"}}],"created":1,"id":"r1","model":"m","object":"chat.completion","usage":{"prompt_tokens":7}}`},
		"reasoning fields": {[]string{delta(`{"reasoning":"hm"}`), delta(`{"reasoning":"m"}`), delta(`{"reasoning_content":"x"}`), delta(`{"my_thinking":"a"}`), delta(`{"my_thinking":"b"}`), finish("stop")},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"","my_thinking":"ab","reasoning":"hmm","reasoning_content":"x","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"reasoning details": {[]string{delta(`{"reasoning_details":[{"t":1}]}`), delta(`{"reasoning_details":[{"t":2}]}`), finish("stop")},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"","reasoning_details":[{"t":1},{"t":2}],"role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"a finish reason without text": {[]string{finish("stop")},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"refusal": {[]string{delta(`{"refusal":"I "}`), delta(`{"refusal":"won't"}`), finish("stop")},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":null,"refusal":"I won't","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"content as parts": {[]string{delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"a"}]}`), delta(`{"content":[{"type":"text","text":"b"}]}`), finish("stop")},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"ab","reasoning":"hm","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"timings and other additions": {[]string{`{"id":"r1","choices":[{"index":0,"delta":{"content":"a"},"stop_reason":7,"finish_reason":"stop"}],"timings":{"n":1}}`},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"a","role":"assistant"},"stop_reason":7}],"id":"r1","object":"chat.completion","timings":{"n":1}}`},
		"log probabilities": {[]string{`{"id":"r1","choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[1]}}]}`, `{"id":"r1","choices":[{"index":0,"delta":{"content":"b"},"logprobs":{"content":[2]},"finish_reason":"stop"}]}`},
			`{"choices":[{"finish_reason":"stop","index":0,"logprobs":{"content":[1,2]},"message":{"content":"ab","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"the old function call": {[]string{delta(`{"function_call":{"name":"f","arguments":"{\"x\""}}`), delta(`{"function_call":{"arguments":":1}"}}`), finish("function_call")},
			`{"choices":[{"finish_reason":"function_call","index":0,"message":{"content":null,"function_call":{"arguments":"{\"x\":1}","name":"f"},"role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
		"a whole message at once": {[]string{`{"id":"r1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`},
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"content":"a","role":"assistant"}}],"id":"r1","object":"chat.completion"}`},
	} {
		r, _ := assembled(t, c.chunks...)
		got, err := logjson.Marshal(r.Body)
		if err != nil || string(got) != c.want || r.Incomplete != "" {
			t.Errorf("%s: %v %q\n got %s\nwant %s", name, err, r.Incomplete, got, c.want)
		}
	}
}

func TestOnlyAFinishReasonMakesItFinished(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"finished, no end marker":     {[]string{delta(`{"content":"a"}`), finish("stop")}, ""},
		"cut without end marker":      {[]string{delta(`{"content":"a"}`)}, "closed"},
		"end marker without a reason": {[]string{delta(`{"content":"a"}`), "[DONE]"}, "no_finish"},
		"nothing":                     {nil, "empty"},
		"only the end marker":         {[]string{"[DONE]"}, "empty"},
		"a chunk that broke off":      {[]string{delta(`{"content":"a"}`), `{"id":"r1","choices":[{"ind`, finish("stop")}, "malformed"},
		"a word between chunks":       {[]string{delta(`{"content":"a"}`), `ping`, finish("stop")}, ""},
	} {
		if r, _ := assembled(t, c.chunks...); r.Incomplete != c.want {
			t.Errorf("%s: %q, want %q", name, r.Incomplete, c.want)
		}
	}
}

func TestAnErrorInsideTheStreamIsTheProvidersOwn(t *testing.T) {
	t.Parallel()
	for chunk, want := range map[string]string{
		`{"error":{"message":"overloaded","type":"server_error","code":503}}`: `{"error":{"code":503,"message":"overloaded","type":"server_error"}}`,
		`{"error":"boom"}`: `{"error":{"message":"boom"}}`,
		`{"object":"error","message":"too long","type":"BadRequestError","code":400}`:                                  `{"error":{"code":400,"message":"too long","type":"BadRequestError"}}`,
		`{"id":"r1","choices":[{"index":0,"delta":{},"error":{"message":"late","code":502},"finish_reason":"error"}]}`: `{"error":{"code":502,"message":"late"}}`,
	} {
		r, _ := assembled(t, delta(`{"content":"a"}`), chunk, finish("stop"))
		if got, err := logjson.Marshal(r.Body); err != nil || string(got) != want {
			t.Errorf("%s: %s %v", chunk, got, err)
		}
	}
}

func TestAnotherResponseIDIsAccepted(t *testing.T) {
	t.Parallel()
	r, message := assembled(t, delta(`{"content":"a"}`), strings.Replace(delta(`{"content":"b"}`), "r1", "r2", 1), finish("stop"))
	if message["content"] != "ab" || r.Body["id"] != "r1" || !reflect.DeepEqual(r.Notes, []any{"id_changed"}) {
		t.Errorf("%v %v %v", message, r.Body["id"], r.Notes)
	}
}

func TestTheBodyIsAlwaysValidText(t *testing.T) {
	t.Parallel()
	for name, chunk := range map[string]string{
		"half a character":      "{\"choices\":[{\"delta\":{\"content\":\"a\xe2\x82\"}}]}",
		"half a surrogate pair": `{"choices":[{"delta":{"content":"a\ud83d"}}]}`,
	} {
		r, message := assembled(t, chunk, finish("stop"))
		if message["content"] != "a\uFFFD" || !reflect.DeepEqual(r.Notes, []any{"invalid_utf8"}) || r.Incomplete != "" {
			t.Errorf("%s: %q %v %q", name, message["content"], r.Notes, r.Incomplete)
		}
	}
	if _, message := assembled(t, delta(`{"content":"\ud83d\ude00 \ufffd"}`), finish("stop")); message["content"] != "😀 \uFFFD" {
		t.Errorf("a whole pair: %q", message["content"])
	}
}

func TestAMegabyteLineIsOneChunk(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 2<<20)
	if _, message := assembled(t, delta(`{"content":"`+long+`"}`), finish("stop")); message["content"] != long {
		t.Error("it was lost")
	}
}

func TestDeltasComeInOrderAndOnce(t *testing.T) {
	t.Parallel()
	var got []string
	a := New(func(kind, text string) error { got = append(got, kind+":"+text); return nil })
	for _, c := range []string{
		delta(`{"content":"a","reasoning":"r","reasoning_content":"r"}`), delta(`{"content":"b"}`), delta(`{"refusal":"no"}`), finish("stop"),
	} {
		if err := a.Add([]byte(c)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"thinking:r", "text:a", "text:b"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever comes, on either wire: no panic, a body that the log can keep, and no
// finished reply without a finish reason.
func FuzzStreamAssembler(f *testing.F) {
	f.Add(delta(`{"content":"a"}`)+"\n"+calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`)+"\n"+finish("stop"), 40)
	f.Add(calls(`{"function":{"name":"f","arguments":{"x":1}}},{"index":-1}`)+"\n"+`{"error":"x"}`, 7)
	f.Add("{\"choices\":[{\"delta\":{\"content\":\"\xff\\ud800\"}}]}\n[DONE]", 3)
	f.Add(strings.Join(messageStream, "\n"), 1<<20)
	f.Add(strings.Join(messageStream, "\n"), 300)
	f.Add(`{"type":"content_block_delta","index":-3,"delta":{"type":"text_delta","text":"\ud83d"}}`+"\n"+`{"type":"content_block_delta","delta":{"type":"text_delta","text":"\ude00"}}`, 1<<20)
	f.Add(`{"type":"error"}`+"\n"+`{"type":"content_block_start","content_block":{"type":"tool_use","input":[1]}}`, 1<<20)
	f.Fuzz(func(t *testing.T, stream string, cut int) {
		if len(stream) > 0 {
			stream = stream[:max(cut, -cut, 0)%(len(stream)+1)]
		}
		completions, messages := New(func(string, string) error { return nil }), NewMessages(func(string, string) error { return nil })
		for chunk := range strings.SplitSeq(stream, "\n") {
			if err := errors.Join(completions.Add([]byte(chunk)), messages.Add([]byte(chunk))); err != nil {
				t.Fatal(err)
			}
			messages.Ping([]byte(chunk))
		}
		for reason, r := range map[string]Result{"finish_reason": completions.Result(true), "stop_reason": messages.Result(true)} {
			text, err := logjson.Marshal(r.Body)
			if err != nil {
				t.Fatalf("the log cannot keep %v: %v", r.Body, err)
			}
			if r.Incomplete == "" && r.Body["error"] == nil && !strings.Contains(stream, reason) && !strings.Contains(stream, "\\u") {
				t.Errorf("%q is said to be finished: %s", stream, text)
			}
		}
	})
}
