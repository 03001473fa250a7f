package llmtest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestAStreamIsAsTheProviderSendsIt(t *testing.T) {
	t.Parallel()
	s := New(t, Calls(Call{Name: "add", Args: `{"a":17}`}), Text("hi"))
	_, text := post(t, s.URL(), `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}`)
	var chunks []map[string]any
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c map[string]any
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		chunks = append(chunks, c)
	}
	if !strings.HasSuffix(text, "data: [DONE]\n\n") || len(chunks) != 6 {
		t.Fatalf("got %s", text)
	}
	args := ""
	for i, c := range chunks {
		if c["object"] != "chat.completion.chunk" || c["id"] != chunks[0]["id"] || c["model"] != "m" {
			t.Errorf("chunk %v", c)
		}
		choices := c["choices"].([]any)
		if last := i == len(chunks)-1; last != (len(choices) == 0) || last != (c["usage"] != nil) {
			t.Fatalf("chunk %d: %v", i, c)
		}
		if len(choices) == 0 {
			continue
		}
		d := choices[0].(map[string]any)["delta"].(map[string]any)
		if i == 0 && d["role"] != "assistant" {
			t.Errorf("the first delta is %v", d)
		}
		if calls, ok := d["tool_calls"].([]any); ok {
			args += calls[0].(map[string]any)["function"].(map[string]any)["arguments"].(string)
		}
	}
	if args != `{"a":17}` {
		t.Errorf("arguments %q", args)
	}
	if _, text = post(t, s.URL(), `{"stream":true}`); strings.Contains(text, "usage") {
		t.Errorf("usage that nobody asked for: %s", text)
	}
	if got := s.Requests(); len(got) != 2 || got[0].Body["model"] != "m" || got[0].Header.Get("Content-Type") != "application/json" {
		t.Errorf("requests %+v", got)
	}
}

func TestTheScriptIsFollowed(t *testing.T) {
	t.Parallel()
	n := 0
	s := New(t, Text("a").Times(2), Func(func(req map[string]any) Reply { n++; return Text(req["q"].(string)) }))
	if s.Left() != 2 {
		t.Errorf("left %d", s.Left())
	}
	for i, want := range []string{`"content":"a"`, `"content":"a"`, `"content":"x2"`, `"content":"x3"`} {
		if _, got := post(t, s.URL(), `{"q":"x`+string(rune('0'+i))+`"}`); !strings.Contains(got, want) {
			t.Errorf("%d: %s", i, got)
		}
	}
	if s.Left() != 0 || n != 2 {
		t.Errorf("left %d, asked %d", s.Left(), n)
	}
	empty := New(t)
	if status, got := post(t, empty.URL(), `{}`); status != 400 || !strings.Contains(got, "no reply is left") {
		t.Errorf("%d %s", status, got)
	}
	if status, _ := post(t, empty.URL(), `nonsense`); status != 400 {
		t.Errorf("%d", status)
	}
}

func TestAScriptFileIsServed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script.json")
	script := `{"replies": [{"text": "one"}, {"calls": [{"name": "add", "args": "{}"}], "repeat": -1}]}`
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	urls, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- Serve(ctx, "127.0.0.1:0", path, func(url string) { urls <- url }) }()
	url := <-urls
	for i, want := range []string{"one", "call_1", "call_1"} {
		if _, got := post(t, url, `{}`); !strings.Contains(got, want) {
			t.Errorf("%d: %s", i, got)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{"unknown field": `[{"txt":"x"}]`, "no JSON": `{`, "wrong type": `{"replies":1}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if list, err := Parse([]byte(` [{"text":"x"}]`)); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

func TestCloseEndsAHang(t *testing.T) {
	t.Parallel()
	s, err := Start(Hang())
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		res, err := http.Post(s.URL()+"/chat/completions", "application/json", strings.NewReader("{}"))
		if err == nil {
			res.Body.Close()
		}
		failed <- err
	}()
	for len(s.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	s.Close()
	s.Close()
	if err := <-failed; err == nil {
		t.Error("the hang answered")
	}
}

func BenchmarkStream(b *testing.B) {
	s, err := Start(Text(strings.Repeat("word ", 20)).Times(-1))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for b.Loop() {
		res, err := http.Post(s.URL()+"/chat/completions", "application/json", strings.NewReader(`{"stream":true}`))
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
