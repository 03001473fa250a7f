package anthropic

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheEnvironmentDecidesNothing(t *testing.T) {
	for _, name := range []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_PROFILE",
		"ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN",
	} {
		t.Setenv(name, "x-canary: canary-from-environment")
	}
	var seen http.Header
	var body string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		b, _ := io.ReadAll(r.Body)
		body = r.Method + " " + r.URL.Path + " " + string(b)
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "<html>no</html>")
	}))
	defer srv.Close()
	for _, c := range []struct {
		request Request
		want    string
	}{
		{Request{BaseURL: srv.URL, Path: "v1/messages", Key: "k-1", Body: []byte(`{"a":1}`), Headers: map[string]string{"X-One": "1"}}, `POST /v1/messages {"a":1}`},
		{Request{BaseURL: srv.URL + "/v1", Path: "v1/messages", Key: "k-1", Body: []byte(`{}`), Headers: map[string]string{"X-One": "1"}}, `POST /v1/messages {}`},
		{Request{BaseURL: srv.URL + "/proxy/v1/", Path: "v1/models/m", Key: "k-1", Headers: map[string]string{"X-One": "1"}}, `GET /proxy/v1/models/m `},
		{Request{BaseURL: srv.URL, Path: "v1/messages", Body: []byte(`{}`), Headers: map[string]string{"X-One": "1"}}, `POST /v1/messages {}`},
	} {
		res, err := Do(context.Background(), srv.Client(), c.request)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 400 || string(b) != "<html>no</html>" || body != c.want {
			t.Errorf("got %d %q, sent %q, want %q", res.StatusCode, b, body, c.want)
		}
		if seen.Get("X-Api-Key") != c.request.Key || seen.Get("Authorization") != "" || seen.Get("X-One") != "1" || seen.Get("Anthropic-Version") != Version {
			t.Errorf("headers %v", seen)
		}
		for name, values := range seen {
			if strings.Contains(strings.Join(values, " "), "canary") {
				t.Errorf("header %s came from the environment", name)
			}
		}
	}
}

func TestARedirectIsNotFollowedAndALongErrorIsCut(t *testing.T) {
	t.Parallel()
	followed := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stolen" {
			followed = true
			return
		}
		if r.URL.Query().Has("long") {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, strings.Repeat("x", 1<<16))
			return
		}
		http.Redirect(w, r, "/stolen", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	for path, want := range map[string]int{"v1/messages": 307, "v1/messages?long=1": 500} {
		res, err := Do(t.Context(), srv.Client(), Request{BaseURL: srv.URL, Path: path, Key: "k", Body: []byte(`{}`), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want || len(b) > 100 || followed {
			t.Errorf("%s: %d, %d bytes, followed %v", path, res.StatusCode, len(b), followed)
		}
	}
}
