package llm_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/llmtest"
	"ashlar/stdlib/llm/record"
)

// speaker is a sender of the Messages API over a server.
func speaker(tb testing.TB, base string) (*llm.Sender, *naps) {
	tb.Helper()
	s, n := sender(tb, base)
	s.Directory.Run.Provider = "anthropic"
	return s, n
}

// message is a call of the Messages API with one user message.
func message(stream bool) llm.Call {
	c := ask(stream)
	c.Path = ""
	delete(c.Body, "stream_options")
	c.Body["max_tokens"] = int64(100)
	return c
}

func TestAStreamOfMessagesBecomesTheNonStreamedForm(t *testing.T) {
	t.Parallel()
	calls := []llmtest.Call{{Name: "add", Args: `{"a": 17, "b": 25}`}, {ID: "toolu_x", Name: "read", Args: `{"path":"größe 𝄞.txt"}`}}
	for name, reply := range map[string]llmtest.Reply{
		"text":       llmtest.Text("Grüße, 𝄞 and a longer answer.\nTwo lines."),
		"thinking":   llmtest.Reasoning("let me think", "42"),
		"calls":      llmtest.Calls(calls...),
		"both":       llmtest.Text("I will add.").WithCalls(calls[0]),
		"refusal":    llmtest.Refusal("I cannot do that."),
		"length":     llmtest.Finish("length", "cut of"),
		"pause":      llmtest.Finish("pause_turn", "searching"),
		"usage":      llmtest.Text("x").WithUsage(llmtest.Usage{Prompt: 100, Completion: 20, Cached: 64, Reasoning: 5}),
		"no usage":   llmtest.Text("x").WithoutUsage(),
		"no word":    llmtest.FinishWithoutText(),
		"half bytes": llmtest.HalfUTF8("plain"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, reply, reply)
			s, _ := speaker(t, srv.URL())
			var told strings.Builder
			streamed := message(true)
			streamed.OnDelta = func(_ context.Context, kind, text string) error {
				fmt.Fprintf(&told, "%s:%s|", kind, text)
				return nil
			}
			got, err := s.Send(t.Context(), streamed)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := s.Send(t.Context(), message(false))
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []llm.Reply{got, whole} {
				b := r.Body.(map[string]any)
				for _, key := range []string{"id", "stop_sequence"} { // the second reply's own id; null where a stream says nothing
					delete(b, key)
				}
				if u, ok := b["usage"].(map[string]any); ok {
					delete(u, "input_tokens") // a quarter of the request, which differs
				}
				for _, v := range b["content"].([]any) {
					delete(v.(map[string]any), "signature")
				}
			}
			g, _ := logjson.Marshal(got.Body)
			w, _ := logjson.Marshal(whole.Body)
			if string(g) != string(w) {
				t.Errorf("streamed %s\nwhole    %s", g, w)
			}
			if text := reply.Text + reply.Refusal; strings.Join(strings.Split(strings.ReplaceAll(strings.ReplaceAll(told.String(), "text:", ""), "thinking:", ""), "|"), "") != reply.Reasoning+text {
				t.Errorf("told %q", told.String())
			}
			for _, q := range srv.Requests() {
				if q.Path != "/v1/messages" || q.Header.Get("X-Api-Key") != canary || q.Header.Get("Authorization") != "" {
					t.Errorf("%s %v", q.Path, q.Header)
				}
			}
		})
	}
}

// A stream that does not end as it should has the outcomes that the other wire has.
func TestAStreamOfMessagesThatBreaks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("some words ", 5)
	for name, c := range map[string]struct {
		reply      llmtest.Reply
		kind       kernel.Kind // of the error
		incomplete string
		text       string // that was kept
		message    string // of an error body
	}{
		"closed early":    {reply: llmtest.CloseEarly(long), incomplete: "closed", text: "some "},
		"no end":          {reply: llmtest.NoDone(long), incomplete: "closed", text: long},
		"an error inside": {reply: llmtest.ErrorInStream(long), message: "Internal server error"},
		"overloaded inside": {reply: llmtest.Raw("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n",
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"), message: "Overloaded"},
		"pings alone":        {reply: llmtest.CommentsForever(long), kind: kernel.Timeout},
		"nothing more":       {reply: llmtest.HangInside(long), kind: kernel.Timeout},
		"nothing at all":     {reply: llmtest.Raw(""), incomplete: "empty"},
		"a connection gone":  {reply: llmtest.Drop(), kind: kernel.Network},
		"a page":             {reply: llmtest.HTML(200), incomplete: "no JSON", message: "OK: the reply is no JSON"},
		"a line that broke":  {reply: llmtest.Raw("data: {\"type\":\"message_st\n\n", "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n", "data: {\"type\":\"message_stop\"}\n\n"), incomplete: "malformed"},
		"no last empty line": {reply: llmtest.Raw("data: {\"type\":\"message_start\",\"message\":{}}\r\rdata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"a\"}}\r\n\r\n", "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}"), text: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, c.reply)
			s, _ := speaker(t, srv.URL())
			call := message(true)
			call.Progress, call.Retries = 300*time.Millisecond, 0
			got, err := s.Send(t.Context(), call)
			if c.kind != "" {
				if !errors.Is(err, c.kind) {
					t.Fatalf("got %v, want %s", err, c.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			incomplete, _ := got.Notes["incomplete"].(string)
			text := ""
			if content, ok := got.Body.(map[string]any)["content"].([]any); ok && len(content) > 0 {
				text, _ = content[0].(map[string]any)["text"].(string)
			}
			if incomplete != c.incomplete || text != c.text || errorText(got) != c.message {
				t.Errorf("incomplete %q, text %q, error %q", incomplete, text, errorText(got))
			}
		})
	}
}

func TestMessagesAreRetriedAsTheOtherWireIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    llmtest.Reply
		attempts int
		kind     string
	}{
		"529":     {llmtest.Error(529, "overloaded_error", "", "Overloaded"), 2, "overloaded"},
		"429":     {llmtest.RateLimited("1"), 2, "rate_limited"},
		"500":     {llmtest.Error(500, "api_error", "", "x"), 2, "server"},
		"400":     {llmtest.Error(400, "invalid_request_error", "", "x"), 1, ""},
		"402":     {llmtest.Error(402, "billing_error", "", "x"), 1, ""},
		"billing": {llmtest.QuotaExceeded(), 1, ""},
	} {
		srv := llmtest.New(t, c.reply, llmtest.Text("ok"))
		s, _ := speaker(t, srv.URL())
		call := message(true)
		var kinds []string
		call.OnRetry = func(_ context.Context, r llm.Retry) error { kinds = append(kinds, r.Kind); return nil }
		if _, err := s.Send(t.Context(), call); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(kinds, " "); len(srv.Requests()) != c.attempts || got != c.kind {
			t.Errorf("%s: %d attempts, %q", name, len(srv.Requests()), got)
		}
	}
}

// A recording of the Messages API answers as the provider did, and knows whose it is;
// what a server was asked about itself is in it too.
func TestAReplayOfMessagesIsTheRun(t *testing.T) {
	t.Parallel()
	const calls = 6
	srv := serve(t, llmtest.Reasoning("größe", "Grüße 𝄞, a longer text."), llmtest.Calls(llmtest.Call{Name: "a", Args: `{"x":1}`}),
		llmtest.Error(529, "overloaded_error", "", "Overloaded"), llmtest.Text("after a pause"), llmtest.CloseEarly("a long text of many pieces"),
		llmtest.ErrorInStream("a long text of many pieces"), llmtest.FinishWithoutText())
	s, _ := speaker(t, srv.URL())
	path := filepath.Join(t.TempDir(), "traffic.jsonl")
	var err error
	if s.Seam.Record, err = record.Create(path, "test", "digest", redactor().Bytes); err != nil {
		t.Fatal(err)
	}
	live := told{body: func(int) llm.Call { return message(true) }}
	live.run(t.Context(), s, calls)
	window, _, err := s.Window(t.Context(), llm.Ask{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Seam.Record.Close(); err != nil {
		t.Fatal(err)
	}
	player, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	player.Redact = redactor().Bytes
	again, _ := sender(t, "")
	again.Seam.Player = player
	provider, model := player.First()
	again.Directory.Run, again.Directory.Replay = llm.Ask{}, &llm.Ask{Provider: provider, Model: model}
	replayed := told{body: live.body}
	replayed.run(t.Context(), again, calls)
	if got, want := strings.Join(replayed.lines, "\n"), strings.Join(live.lines, "\n"); got != want {
		t.Errorf("replayed\n%s\nlive\n%s", got, want)
	}
	if got, _, err := again.Window(t.Context(), llm.Ask{}); err != nil || got != window {
		t.Errorf("window %+v %v, want %+v", got, err, window)
	}
}
