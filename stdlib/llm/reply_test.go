package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/stdlib/llm/llmtest"
)

func TestAStreamBecomesTheNonStreamedForm(t *testing.T) {
	t.Parallel()
	calls := []llmtest.Call{{Name: "add", Args: `{"a": 17, "b": 25}`}, {ID: "call_x", Name: "read", Args: `{"path":"größe 𝄞.txt"}`}}
	for name, reply := range map[string]llmtest.Reply{
		"text":      llmtest.Text("Grüße, 𝄞 and a longer answer.\nTwo lines."),
		"reasoning": llmtest.Reasoning("let me think", "42"),
		"think":     llmtest.Think("hm", "42"),
		"calls":     llmtest.Calls(calls...),
		"both":      llmtest.Text("I will add.").WithCalls(calls[0]),
		"refusal":   llmtest.Refusal("I cannot do that."),
		"length":    llmtest.Finish("length", "cut of"),
		"usage":     llmtest.Text("x").WithUsage(llmtest.Usage{Prompt: 100, Completion: 20, Cached: 64, Reasoning: 5}),
		"no word":   llmtest.FinishWithoutText(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, reply, reply)
			s, _ := sender(t, srv.URL())
			var told strings.Builder
			streamed := ask(true)
			streamed.OnDelta = func(_ context.Context, kind, text string) error {
				fmt.Fprintf(&told, "%s:%s|", kind, text)
				return nil
			}
			got, err := s.Send(t.Context(), streamed)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := s.Send(t.Context(), ask(false))
			if err != nil {
				t.Fatal(err)
			}
			gm, gf := choice(t, got)
			wm, wf := choice(t, whole)
			for _, m := range []map[string]any{gm, wm} {
				for key, v := range m {
					if list, ok := v.([]any); v == nil && key != "content" || ok && len(list) == 0 {
						delete(m, key) // the non-streamed form says null where a stream says nothing
					}
				}
			}
			g, _ := logjson.Marshal([]any{gm, gf})
			w, _ := logjson.Marshal([]any{wm, wf})
			if string(g) != string(w) {
				t.Errorf("streamed %s\nwhole    %s", g, w)
			}
			usage := got.Body.(map[string]any)["usage"].(map[string]any)
			if reply.Usage != nil && usage["prompt_tokens"] != int64(100) {
				t.Errorf("usage %v", usage)
			}
			if reply.Text != "" && !strings.Contains(strings.ReplaceAll(told.String(), "|text:", ""), reply.Text) {
				t.Errorf("told %q", told.String())
			}
			if len(got.Notes) != 0 {
				t.Errorf("notes %v", got.Notes)
			}
		})
	}
}

func TestHowARepliesEnds(t *testing.T) {
	t.Parallel()
	const quick = 300 * time.Millisecond
	event := func(content string) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + content + `"}}]}`
	}
	for name, c := range map[string]struct {
		reply      llmtest.Reply
		kind       kernel.Kind // of the error, "" for a reply
		text       string      // of the message
		incomplete any
		note       string
	}{
		"hangs before":     {reply: llmtest.Hang(), kind: kernel.Timeout},
		"hangs inside":     {reply: llmtest.HangInside("a long text of many pieces"), kind: kernel.Timeout},
		"comments forever": {reply: llmtest.CommentsForever("a long text of many pieces"), kind: kernel.Timeout},
		"half a character": {reply: llmtest.HalfUTF8("naïve"), text: "na\uFFFD\uFFFDve", note: "invalid_utf8"},
		"no text":          {reply: llmtest.FinishWithoutText(), text: ""},
		"closes early":     {reply: llmtest.CloseEarly("a long text of many pieces"), text: "a ", incomplete: "closed"},
		"no terminal":      {reply: llmtest.NoDone("all of it"), text: "all of it", incomplete: "closed"},
		"cut after [DONE]": {reply: llmtest.Raw(event("x")+"\n\n", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"), text: "x"},
		"bytes in pieces":  {reply: llmtest.Raw(event("\xc3"), "\xa9!", "\r", "\n\r\n", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`), text: "", incomplete: "malformed", note: "malformed_chunk"},
		"CRLF, no blank line at the end": {reply: llmtest.Raw(event("a")[:50], event("a")[50:]+"\r\n\r\n", `data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`+"\r\n"),
			text: "ab"},
		"nothing at all": {reply: llmtest.Raw(""), text: "", incomplete: "empty"},
		"a page":         {reply: llmtest.HTML(200), text: "", incomplete: "empty"},
		"a stream that does not say so": {reply: llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\n").WithHeader("Content-Type", "text/plain"),
			text: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, c.reply)
			s, n := sender(t, srv.URL())
			call := ask(true)
			if c.kind == kernel.Timeout {
				call.Progress = quick
			}
			start := time.Now()
			r, err := s.Send(t.Context(), call)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
			if c.kind != "" {
				if kernel.KindOf(err) != c.kind || len(srv.Requests()) != 1 || len(n.all) != 0 {
					t.Errorf("got %v after %d requests", err, len(srv.Requests()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if name == "a page" {
				return
			}
			m, _ := choice(t, r)
			if m["content"] != c.text && m["content"] != nil || r.Notes["incomplete"] != c.incomplete {
				t.Errorf("content %q, notes %v; want %q, %v", m["content"], r.Notes, c.text, c.incomplete)
			}
			if said := fmt.Sprint(r.Notes["stream"]); c.note != "" && !strings.Contains(said, c.note) {
				t.Errorf("noted %s, want %s", said, c.note)
			}
		})
	}
}

func TestAnErrorInsideAStreamIsTheReply(t *testing.T) {
	t.Parallel()
	srv := serve(t, llmtest.ErrorInStream("a long text of many pieces"))
	s, _ := sender(t, srv.URL())
	r, err := s.Send(t.Context(), ask(true))
	if err != nil || !strings.Contains(errorText(r), "The server had an error") || len(srv.Requests()) != 1 {
		t.Errorf("got %v %v", r, err)
	}
}

func TestTheWholeTimeBoundsAStreamThatFlows(t *testing.T) {
	t.Parallel()
	tick := llmtest.Raw() // a server that always says a little more
	for range 400 {
		tick.Chunks = append(tick.Chunks, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
	}
	tick.Fault = llmtest.Trickles
	srv := serve(t, tick)
	s, _ := sender(t, srv.URL())
	call := ask(true)
	call.Timeout = 80 * time.Millisecond
	start := time.Now()
	_, err := s.Send(t.Context(), call)
	if kernel.KindOf(err) != kernel.Timeout || time.Since(start) > time.Second {
		t.Errorf("got %v after %s", err, time.Since(start))
	}
}

func TestASlowCallbackIsNotTheServersSilence(t *testing.T) {
	t.Parallel()
	flow := llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n", ": a while\n\n",
		`data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n")
	flow.Fault = llmtest.Trickles // so that more has to be read after the callback
	srv := serve(t, flow)
	s, _ := sender(t, srv.URL())
	call := ask(true)
	call.Progress = 300 * time.Millisecond
	call.OnDelta = func(context.Context, string, string) error { time.Sleep(400 * time.Millisecond); return nil }
	r, err := s.Send(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := choice(t, r); m["content"] != "ab" {
		t.Errorf("got %v", m)
	}
}

func TestACallbacksErrorEndsTheCall(t *testing.T) {
	t.Parallel()
	srv := serve(t, llmtest.Text("one two three"))
	s, _ := sender(t, srv.URL())
	call := ask(true)
	stop := errors.New("enough")
	call.OnDelta = func(context.Context, string, string) error { return kernel.Errorf("x", kernel.Validation, "%w", stop) }
	if _, err := s.Send(t.Context(), call); !errors.Is(err, stop) || len(srv.Requests()) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestCancelEndsAStream(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{true, false} {
		reply := llmtest.Hang()
		if inside {
			reply = llmtest.HangInside("a long text")
		}
		srv := serve(t, reply)
		s, _ := sender(t, srv.URL())
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		start := time.Now()
		_, err := s.Send(ctx, ask(true))
		if kernel.KindOf(err) != kernel.Cancelled || time.Since(start) > time.Second || len(srv.Requests()) != 1 {
			t.Errorf("inside %v: %v after %s", inside, err, time.Since(start))
		}
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	flow := llmtest.Raw(`data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`+"\n\n", "data: [DONE]\n\n", "")
	flow.Fault = llmtest.Trickles // the end comes a little after [DONE]
	srv := serve(t, flow.Times(20))
	s, _ := sender(t, srv.URL())
	for range 20 {
		if _, err := s.Send(t.Context(), ask(true)); err != nil {
			t.Fatal(err)
		}
	}
	if n := srv.Connections(); n > 10 {
		t.Errorf("20 calls opened %d connections", n)
	}
}

func TestAReplyIsBounded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("sends 65 MB")
	}
	part := strings.Repeat("x", 1<<20)
	long := llmtest.Raw().WithHeader("Content-Type", "application/json")
	for range 65 {
		long.Chunks = append(long.Chunks, part)
	}
	srv := llmtest.New(t, long)
	s, _ := sender(t, srv.URL())
	_, err := s.Send(t.Context(), ask(false))
	if kernel.KindOf(err) != kernel.Limit {
		t.Errorf("got %v", err)
	}
}
