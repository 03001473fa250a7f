package assemble

import (
	"fmt"
	"strings"
	"testing"

	"ashlar/kernel/logjson"
)

// messageStream is a reply with a block of every kind, as the provider sends it.
var messageStream = []string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_read_input_tokens":7,"output_tokens":1}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
	`{"type":"ping"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"let me "}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"think"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/=="}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Emw="}}`,
	`{"type":"content_block_stop","index":1}`,
	`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hel"}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"lo"}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`,
	`{"type":"content_block_stop","index":2}`,
	`{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}}`,
	`{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"query\": \"x\"}"}}`,
	`{"type":"content_block_stop","index":3}`,
	`{"type":"content_block_start","index":4,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[{"type":"web_search_result","url":"u"}]}}`,
	`{"type":"content_block_stop","index":4}`,
	`{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_1","name":"add","input":{}}}`,
	`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":""}}`,
	`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1"}}`,
	`{"type":"content_block_delta","index":5,"delta":{"type":"input_json_delta","partial_json":"7}"}}`,
	`{"type":"content_block_stop","index":5}`,
	`{"type":"content_block_start","index":6,"content_block":{"type":"tool_use","id":"toolu_2","name":"now","input":{}}}`,
	`{"type":"content_block_stop","index":6}`,
	`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":15,"output_tokens_details":{"thinking_tokens":4}},"context_management":{"applied_edits":[]}}`,
	`{"type":"message_stop"}`,
}

// told gives the result of a stream, and its deltas.
func told(t *testing.T, cut bool, events ...string) (r Result, deltas string) {
	t.Helper()
	m := NewMessages(func(kind, text string) error { deltas += kind + ":" + text + "|"; return nil })
	for _, e := range events {
		if m.Ping([]byte(e)) {
			continue
		}
		if err := m.Add([]byte(e)); err != nil {
			t.Fatal(err)
		}
	}
	return m.Result(cut), deltas
}

func TestAMessageHasEveryBlockAsTheNonStreamedFormHasIt(t *testing.T) {
	t.Parallel()
	r, deltas := told(t, false, messageStream...)
	const want = `{"content":[{"signature":"EqQB+/==","thinking":"let me think","type":"thinking"},{"data":"Emw=","type":"redacted_thinking"},` +
		`{"citations":[{"cited_text":"x"}],"text":"Hello","type":"text"},{"id":"srv_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},` +
		`{"content":[{"type":"web_search_result","url":"u"}],"tool_use_id":"srv_1","type":"web_search_tool_result"},` +
		`{"id":"toolu_1","input":{"a":17},"name":"add","type":"tool_use"},{"id":"toolu_2","input":{},"name":"now","type":"tool_use"}],` +
		`"context_management":{"applied_edits":[]},"id":"msg_1","model":"m","role":"assistant","stop_reason":"tool_use","type":"message",` +
		`"usage":{"cache_read_input_tokens":7,"input_tokens":25,"output_tokens":15,"output_tokens_details":{"thinking_tokens":4}}}`
	if got, _ := logjson.Marshal(r.Body); string(got) != want || r.Incomplete != "" || len(r.Notes) != 0 {
		t.Errorf("%q %v\n got %s\nwant %s", r.Incomplete, r.Notes, got, want)
	}
	if deltas != "thinking:let me |thinking:think|text:Hel|text:lo|" {
		t.Errorf("deltas %s", deltas)
	}
}

// Cut anywhere, a message is never finished, and what its first event says of the
// output is not taken for the count of all of it.
func TestAMessageIsFinishedOnlyWithAReason(t *testing.T) {
	t.Parallel()
	for n := range messageStream {
		r, _ := told(t, true, messageStream[:n]...)
		finished := n >= len(messageStream)-1
		if (r.Incomplete == "") != finished {
			t.Errorf("after %d events: %q", n, r.Incomplete)
		}
		if u, _ := r.Body["usage"].(map[string]any); !finished && u["output_tokens"] != nil {
			t.Errorf("after %d events: usage %v", n, u)
		}
	}
}

func TestOddStreamsOfMessages(t *testing.T) {
	t.Parallel()
	const (
		text = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
		tool = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`
		stop = `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`
		full = `{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}`
	)
	piece := func(text string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}`, text)
	}
	args := func(text string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%q}}`, text)
	}
	for name, c := range map[string]struct {
		events []string
		want   string // the content's log JSON, or the error
		notes  string
	}{
		"a block without a start":    {[]string{piece("a"), piece("b"), stop}, `[{"text":"ab","type":"text"}]`, "block_without_start"},
		"no index":                   {[]string{strings.Replace(text, `"index":0,`, "", 1), strings.Replace(piece("a"), `"index":0,`, "", 1), stop}, `[{"text":"a","type":"text"}]`, ""},
		"one index for two blocks":   {[]string{text, piece("a"), `{"type":"content_block_stop","index":0}`, tool, args(`{}`), stop}, `[{"text":"a","type":"text"},{"id":"t1","input":{},"name":"f","type":"tool_use"}]`, ""},
		"text in the start":          {[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`, piece("b"), stop}, `[{"text":"ab","type":"text"}]`, ""},
		"the input in the start":     {[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}}`, stop}, `[{"id":"t1","input":{"a":1},"name":"f","type":"tool_use"}]`, ""},
		"an input that is cut":       {[]string{tool, args(`{"a": `), full}, `[{"id":"t1","input":{},"input_json":"{\"a\": ","name":"f","type":"tool_use"}]`, ""},
		"an input that never came":   {[]string{tool, full}, `[{"id":"t1","input":{},"input_json":"","name":"f","type":"tool_use"}]`, ""},
		"an input that is no object": {[]string{tool, args(`[1]`), stop}, `[{"id":"t1","input":{},"input_json":"[1]","name":"f","type":"tool_use"}]`, ""},
		"an input that nests too deep": {[]string{tool, args(`{"d":` + strings.Repeat("[", 110) + strings.Repeat("]", 110) + `}`), stop},
			`[{"id":"t1","input":{},"input_json":"{\"d\":` + strings.Repeat("[", 110) + strings.Repeat("]", 110) + `}","name":"f","type":"tool_use"}]`, ""},
		"a character in two halves":     {[]string{text, piece(`a\ud83d`), piece(`\ude00`), stop}, `[{"text":"a😀","type":"text"}]`, ""},
		"half a character":              {[]string{text, piece(`a\ud83d`), stop}, `[{"text":"a�","type":"text"}]`, "invalid_utf8"},
		"an unknown event":              {[]string{text, piece("a"), `{"type":"something_new","x":1}`, stop}, `[{"text":"a","type":"text"}]`, ""},
		"an unknown delta":              {[]string{`{"type":"content_block_start","index":0,"content_block":{"type":"compaction"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"sum"}}`, stop}, `[{"content":"sum","type":"compaction"}]`, ""},
		"an error after text":           {[]string{text, piece("a"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`}, `{"message":"Overloaded","type":"overloaded_error"}`, "stream_error"},
		"an error that is text":         {[]string{`{"type":"error","error":"no"}`}, `{"message":"no"}`, "stream_error"},
		"an error of the other wire":    {[]string{`{"error":{"message":"no"}}`}, `{"message":"no"}`, "stream_error"},
		"a whole message in one":        {[]string{`{"type":"message","id":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`}, `[{"text":"a","type":"text"}]`, ""},
		"nonsense between":              {[]string{text, "hello", piece("a"), stop, "[DONE]"}, `[{"text":"a","type":"text"}]`, "malformed_chunk"},
		"a delta without anything else": {[]string{args("{}"), stop}, `[]`, "malformed_chunk"},
	} {
		r, _ := told(t, false, c.events...)
		got, err := logjson.Marshal(r.Body["content"])
		if r.Body["error"] != nil {
			got, err = logjson.Marshal(r.Body["error"])
		}
		if notes := strings.Trim(fmt.Sprint(r.Notes...), "[]"); err != nil || string(got) != c.want || notes != c.notes {
			t.Errorf("%s: %v, notes %q\n got %s\nwant %s", name, err, notes, got, c.want)
		}
	}
}
