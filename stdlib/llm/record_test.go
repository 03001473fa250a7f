package llm_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
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

// told is everything that a caller sees of some calls.
type told struct {
	lines []string
	body  func(i int) llm.Call
}

func (o *told) run(ctx context.Context, s *llm.Sender, n int) {
	for i := range n {
		c := o.body(i)
		c.OnDelta = func(_ context.Context, kind, text string) error {
			o.lines = append(o.lines, kind+" "+text)
			return nil
		}
		c.OnRetry = func(_ context.Context, r llm.Retry) error {
			o.lines = append(o.lines, fmt.Sprintf("retry %+v", r))
			return nil
		}
		r, err := s.Send(ctx, c)
		b, merr := logjson.Marshal([]any{int64(r.Status), r.Headers, r.Body, r.Notes})
		o.lines = append(o.lines, fmt.Sprintf("%s %v %v", b, err, merr))
	}
}

func TestAReplayIsTheRun(t *testing.T) {
	t.Parallel()
	replies := []llmtest.Reply{
		llmtest.Reasoning("größe", "Grüße 𝄞, a longer text."), llmtest.Calls(llmtest.Call{Name: "a", Args: `{"x":1}`}),
		llmtest.RateLimited("30"), llmtest.Text("after a pause"), llmtest.HTML(400), llmtest.HalfUTF8("naïve"),
		llmtest.CloseEarly("a long text of many pieces"), llmtest.Drop(), llmtest.HangInside("a long text of many pieces"),
		llmtest.Hang(), llmtest.ErrorInStream("a long text of many pieces"), llmtest.FinishWithoutText(), llmtest.NoDone("x"),
	}
	const calls = 13 // one reply is a retry, one call finds nobody
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + gone.Addr().String() + "/v1"
	gone.Close()
	body := func(i int) llm.Call {
		c := ask(true)
		c.Progress = 200 * time.Millisecond
		if i%2 == 1 { // equal requests are answered in order, others by what they ask
			c.Body["seed"] = int64(i % 4)
		}
		if i == calls-1 {
			c.Ask.BaseURL = nobody
		}
		return c
	}
	srv := serve(t, replies...)
	s, _ := sender(t, srv.URL())
	path := filepath.Join(t.TempDir(), "traffic.jsonl")
	if s.Seam.Record, err = record.Create(path, "test", "digest", redactor().Bytes); err != nil {
		t.Fatal(err)
	}
	live := &told{body: body}
	live.run(t.Context(), s, calls)
	if err := s.Seam.Record.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	again := &told{body: body}
	r, n := sender(t, srv.URL())
	r.Seam, r.Directory.Replay = llm.Seam{Player: p}, &llm.Ask{Provider: "openai"}
	start := time.Now()
	again.run(t.Context(), r, calls)
	if took := time.Since(start); took > time.Second || len(n.all) != 0 {
		t.Errorf("a replay waited: %s, %v", took, n.all)
	}
	for i := range max(len(live.lines), len(again.lines)) {
		a, b := "nothing", "nothing"
		if i < len(live.lines) {
			a = live.lines[i]
		}
		if i < len(again.lines) {
			b = again.lines[i]
		}
		if a != b {
			t.Fatalf("line %d\nlive   %s\nreplay %s", i, a, b)
		}
	}
	if p.Left() != 0 {
		t.Errorf("%d answers are left", p.Left())
	}
	if _, err := r.Send(t.Context(), ask(true)); kernel.KindOf(err) != kernel.NotFound || !strings.Contains(err.Error(), "--record") {
		t.Errorf("one too many: %v", err)
	}
}

func TestARecordingIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "traffic.jsonl")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Create(path, "v", "d", redactor().Bytes); kernel.KindOf(err) != kernel.Validation {
		t.Errorf("got %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "mine" {
		t.Errorf("the file is %q", b)
	}
}

func TestNoSecretReachesARecording(t *testing.T) {
	t.Parallel()
	event := `data: {"id":"x","choices":[{"index":0,"delta":{"content":"the key is ` + canary + ` indeed"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	var replies []llmtest.Reply
	for cut := strings.Index(event, canary) - 1; cut < strings.Index(event, canary)+len(canary)+1; cut++ {
		replies = append(replies, llmtest.Raw(event[:cut], event[cut:]))
	}
	replies = append(replies, llmtest.Raw("data: {\"x\":\"\xff\"}\n\n", event), llmtest.HTML(400).WithHeader("X-Request-Id", canary))
	srv := serve(t, replies...)
	s, _ := sender(t, srv.URL())
	path := filepath.Join(t.TempDir(), "traffic.jsonl")
	red := redactor()
	var err error
	if s.Seam.Record, err = record.Create(path, "test", "digest", red.Bytes); err != nil {
		t.Fatal(err)
	}
	prompt := func(i int) llm.Call {
		c := ask(true)
		c.Body["messages"] = []any{map[string]any{"role": "user", "content": fmt.Sprintf("%d: my key is %s", i, canary)}}
		c.Headers = map[string]string{"X-Api-Key": canary}
		return c
	}
	for i := range replies {
		if _, err := s.Send(t.Context(), prompt(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Seam.Record.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil || bytes.Contains(b, []byte(canary)) || bytes.Count(b, []byte("\n")) != len(replies)+1 {
		t.Fatalf("%v, %d lines, canary %v", err, bytes.Count(b, []byte("\n")), bytes.Contains(b, []byte(canary)))
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	// A prompt that holds the secret is answered by the recording that does not.
	p, err := record.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p.Redact = red.Bytes
	r, _ := sender(t, srv.URL())
	r.Seam, r.Directory.Replay = llm.Seam{Player: p}, &llm.Ask{Provider: "openai"}
	reply, err := r.Send(t.Context(), prompt(0))
	if err != nil {
		t.Fatal(err)
	}
	if m, _ := choice(t, reply); m["content"] != "the key is [redacted:KEY] indeed" {
		t.Errorf("got %v", m)
	}
}

func TestWhatIsNoRecording(t *testing.T) {
	t.Parallel()
	const head = `{"v":1,"ashlar":"x","block":"d"}` + "\n"
	for name, text := range map[string]string{
		"empty": "", "no JSON": "hello\n", "another version": `{"v":2}` + "\n", "half a line": head + `{"n":1,"req`,
		"no request": head + `{"n":1}` + "\n", "no answer": head + `{"n":1,"request":{"provider":"p","path":"c","body":{}}}` + "\n",
		"a chunk that is a number": head + `{"n":1,"request":{"provider":"p","path":"c","body":{}},"response":{"status":200,"headers":{},"chunks":[1]}}` + "\n",
	} {
		if _, err := record.Parse("f", strings.NewReader(text)); kernel.KindOf(err) != kernel.Validation {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := record.Open(filepath.Join(t.TempDir(), "none")); kernel.KindOf(err) != kernel.NotFound {
		t.Errorf("got %v", err)
	}
	// Written by hand, in the plain form: the key is not needed, an error may be text.
	p, err := record.Parse("f", strings.NewReader(head+`{"n":2,"request":{"provider":"p","path":"c","body":{"b":1,"a":2}},"error":"cut"}`+"\n"+
		`{"n":1,"request":{"provider":"p","path":"c","body":{"a":2,"b":1}},"response":{"status":200,"headers":{},"chunks":["x"]}}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	x := record.Exchange{Provider: "p", Path: "c", Body: []byte(`{"a":2,"b":1}`)}
	if res, _, err := p.Answer(x); err != nil || res.StatusCode != 200 {
		t.Errorf("the first by number: %v", err)
	}
	if _, sent, err := p.Answer(x); kernel.KindOf(err) != kernel.Network || !sent {
		t.Errorf("the second: %v, sent %v", err, sent)
	}
}
