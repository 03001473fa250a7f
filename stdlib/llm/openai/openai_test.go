package openai

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheEnvironmentDecidesNothing(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "OPENAI_BASE_URL"} {
		t.Setenv(name, "x-canary: canary-from-environment")
	}
	var seen http.Header
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		b, _ := io.ReadAll(r.Body)
		body = r.URL.Path + " " + string(b)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "<html>no</html>")
	}))
	defer srv.Close()
	res, err := Do(context.Background(), srv.Client(), Request{
		BaseURL: srv.URL + "/v1", Path: "chat/completions", Key: "k-1", Body: []byte(`{"a":1}`), Headers: map[string]string{"X-One": "1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	if res.StatusCode != 400 || string(b) != "<html>no</html>" {
		t.Errorf("got %d %q", res.StatusCode, b)
	}
	if body != `/v1/chat/completions {"a":1}` {
		t.Errorf("sent %q", body)
	}
	if seen.Get("Authorization") != "Bearer k-1" || seen.Get("X-One") != "1" {
		t.Errorf("headers %v", seen)
	}
	for name, values := range seen {
		if strings.Contains(strings.Join(values, " "), "canary") {
			t.Errorf("header %s came from the environment", name)
		}
	}
	res, err = Do(context.Background(), srv.Client(), Request{BaseURL: srv.URL + "/v1/", Path: "chat/completions", Body: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got := seen.Get("Authorization"); got != "" {
		t.Errorf("without a key it sent Authorization %q", got)
	}
}
