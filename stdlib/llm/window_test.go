package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"ashlar/stdlib/llm"
)

// answers is a server that answers each path with a body, and counts.
func answers(t *testing.T, paths map[string]string) (base string, asked *atomic.Int64) {
	t.Helper()
	asked = &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, ok := paths[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		if status, text, found := strings.Cut(body, " "); found && len(status) == 3 {
			var code int
			fmt.Sscan(status, &code)
			w.WriteHeader(code)
			body = text
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1", asked
}

func TestAWindowIsAskedOfTheServerInItsDialect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider, dialect, model string
		paths                    map[string]string
		want                     llm.Window
	}{
		"llama.cpp": {"llamacpp", "", "any name", map[string]string{
			"GET /v1/models": `{"models":[{"name":"x"}],"object":"list","data":[{"id":"smollm2-135m","meta":{"n_ctx":4096,"n_ctx_train":8192}}]}`}, llm.Window{Context: 4096}},
		"an older llama.cpp": {"llamacpp", "", "m", map[string]string{
			"GET /v1/models": `{"data":[{"id":"m","meta":{"n_ctx_train":8192}}]}`, "GET /props": `{"default_generation_settings":{"n_ctx":2048}}`}, llm.Window{Context: 2048}},
		"vLLM":               {"vllm", "", "b", map[string]string{"GET /v1/models": `{"data":[{"id":"a","max_model_len":1},{"id":"b","max_model_len":32768}]}`}, llm.Window{Context: 32768}},
		"OpenRouter":         {"openrouter", "", "org/b", map[string]string{"GET /v1/models": `{"data":[{"id":"a"},{"id":"org/b","context_length":200000,"top_provider":{"context_length":131072,"max_completion_tokens":8192}}]}`}, llm.Window{Context: 131072, MaxOutput: 8192}},
		"LM Studio":          {"lmstudio", "", "m", map[string]string{"GET /v1/models": `{"data":[{"id":"m","max_context_length":32768,"loaded_context_length":4096},{"id":"n"}]}`}, llm.Window{Context: 4096}},
		"Ollama":             {"ollama", "", "m", map[string]string{"POST /api/show": `{"parameters":"temperature 0.7\nnum_ctx    8192\n","model_info":{"llama.context_length":131072}}`}, llm.Window{Context: 8192}},
		"Ollama, own":        {"ollama", "", "m", map[string]string{"POST /api/show": `{"model_info":{"general.architecture":"llama","llama.context_length":131072}}`}, llm.Window{Context: 131072}},
		"Anthropic":          {"anthropic", "", "claude-x", map[string]string{"GET /v1/models/claude-x": `{"id":"claude-x","max_input_tokens":200000,"max_tokens":64000}`}, llm.Window{Context: 200000, MaxOutput: 64000}},
		"its wire elsewhere": {"anthropic", "", "m", map[string]string{"GET /v1/models": `{"data":[{"id":"x","meta":{"n_ctx":4096}}]}`}, llm.Window{Context: 4096}},
		"nobody says":        {"openai", "", "m", map[string]string{"GET /v1/models": `{"data":[{"id":"m"}]}`}, llm.Window{}},
		"no such":            {"openai", "", "m", map[string]string{"GET /v1/models": `{"data":[{"id":"a","context_length":5},{"id":"b","context_length":6}]}`}, llm.Window{}},
		"nonsense":           {"openai", "", "m", map[string]string{"GET /v1/models": `{"data":[7,{"id":"m","context_length":"big"}]}`}, llm.Window{}},
		"no answer":          {"openai", "", "m", nil, llm.Window{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, asked := answers(t, c.paths)
			s, _ := sender(t, base)
			ask := llm.Ask{Provider: c.provider, Model: c.model, BaseURL: base}
			got, found, err := s.Window(t.Context(), ask)
			if err != nil || got != c.want || found != (c.want.Context > 0) {
				t.Errorf("got %+v %v %v, want %+v", got, found, err, c.want)
			}
			n := asked.Load()
			if again, _, err := s.Window(t.Context(), ask); err != nil || again != got || asked.Load() != n {
				t.Errorf("asked again: %+v %v, %d requests", again, err, asked.Load())
			}
		})
	}
}

func TestAConfiguredWindowIsNotAsked(t *testing.T) {
	t.Parallel()
	base, asked := answers(t, nil)
	s, _ := sender(t, base)
	s.Directory.Facts = func(provider, model string) llm.Window {
		if provider == "openai" && model == "m" {
			return llm.Window{Context: 64000, MaxOutput: 100}
		}
		return llm.Window{}
	}
	if got, found, err := s.Window(t.Context(), llm.Ask{}); err != nil || found || got.Context != 64000 || got.MaxOutput != 100 || asked.Load() != 0 {
		t.Errorf("%+v %v %v, %d requests", got, found, err, asked.Load())
	}
}

func TestTokensAreCountedByTheServerThatCan(t *testing.T) {
	t.Parallel()
	base, asked := answers(t, map[string]string{"POST /v1/messages/count_tokens": `{"input_tokens":42}`, "POST /tokenize": `{"tokens":[1,2,3]}`})
	s, _ := sender(t, base)
	body := func(text string) map[string]any {
		return map[string]any{"model": "m", "max_tokens": int64(5), "stream": true, "messages": []any{map[string]any{"role": "user", "content": text}}}
	}
	count := func(provider, text string) string {
		n, ok, err := s.Count(t.Context(), llm.Ask{Provider: provider, Model: "m", BaseURL: base}, body(text))
		return fmt.Sprint(n, ok, err)
	}
	for provider, want := range map[string]string{"anthropic": "42 true <nil>", "llamacpp": "3 true <nil>", "openai": "0 false <nil>", "ollama": "0 false <nil>"} {
		if got := count(provider, "x"); got != want {
			t.Errorf("%s: %s", provider, got)
		}
	}
	n := asked.Load()
	for range 3 {
		count("anthropic", "x")
	}
	if asked.Load() != n {
		t.Error("a kept answer was asked for again")
	}
	for i := range 40 {
		count("anthropic", fmt.Sprint(i))
	}
	if count("anthropic", "x"); asked.Load() != n+41 {
		t.Errorf("%d requests: the last 32 are kept", asked.Load()-n)
	}
	dead, _ := sender(t, "http://127.0.0.1:1/v1")
	if n, ok, err := dead.Count(t.Context(), llm.Ask{Provider: "anthropic", Model: "m", BaseURL: "http://127.0.0.1:1"}, body("x")); n != 0 || ok || err != nil {
		t.Errorf("no server: %d %v %v", n, ok, err)
	}
}

func TestAProbeSaysHowAServerIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider string
		paths    map[string]string
		want     string
	}{
		"well":            {"openai", map[string]string{"GET /v1/models": `{"data":[]}`}, "true ok 200"},
		"Anthropic, well": {"anthropic", map[string]string{"GET /v1/models": `{"data":[]}`}, "true ok 200"},
		"loading":         {"llamacpp", map[string]string{"GET /health": `503 {"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`}, "true unavailable 503 Loading model"},
		"broken":          {"openai", map[string]string{"GET /v1/models": `500 {"error":"oops"}`}, "false down 500 oops"},
		"a bad key":       {"openai", map[string]string{"GET /v1/models": `401 {"error":{"message":"bad key sk-1"}}`}, "true unknown 401 Unauthorized"},
		"another place":   {"openai", nil, "true unknown 404"},
	} {
		base, _ := answers(t, c.paths)
		s, _ := sender(t, base)
		p, err := s.Probe(t.Context(), llm.Ask{Provider: c.provider, Model: "m", BaseURL: base})
		if got := strings.TrimSpace(fmt.Sprint(p.Alive, " ", p.Kind, " ", p.Status, " ", p.Message)); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	s, _ := sender(t, "http://127.0.0.1:1/v1")
	if p, err := s.Probe(t.Context(), llm.Ask{}); err != nil || p.Alive || p.Kind != "unreachable" || p.Message == "" {
		t.Errorf("nobody there: %+v %v", p, err)
	}
}
