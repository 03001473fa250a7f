package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/llmtest"
)

func TestWhatIsAskedForAgain(t *testing.T) {
	t.Parallel()
	ok := llmtest.Text("fine")
	overloaded := llmtest.Error(529, "overloaded_error", "", "Overloaded")
	for name, c := range map[string]struct {
		replies []llmtest.Reply
		status  int // of the last reply
		retries []llm.Retry
	}{
		"429, then 200":   {[]llmtest.Reply{llmtest.RateLimited("7"), ok}, 200, []llm.Retry{{Attempt: 1, Kind: "rate_limited", Status: 429, Wait: 7 * time.Second}}},
		"529 and 503":     {[]llmtest.Reply{overloaded, llmtest.HTML(503), ok}, 200, []llm.Retry{{Attempt: 1, Kind: "overloaded", Status: 529}, {Attempt: 2, Kind: "overloaded", Status: 503}}},
		"500 for ever":    {[]llmtest.Reply{llmtest.HTML(500).Times(3)}, 500, []llm.Retry{{Attempt: 1, Kind: "server", Status: 500}, {Attempt: 2, Kind: "server", Status: 500}}},
		"quota":           {[]llmtest.Reply{llmtest.QuotaExceeded()}, 429, nil},
		"quota as a text": {[]llmtest.Reply{llmtest.Status(429, nil, `{"error":"monthly quota is used up"}`)}, 429, nil},
		"a rate called a quota": {[]llmtest.Reply{llmtest.Status(429, map[string]string{"Retry-After": "3"}, `{"error":{"code":429,"message":"Quota exceeded for requests per minute"}}`), ok}, 200,
			[]llm.Retry{{Attempt: 1, Kind: "rate_limited", Status: 429, Wait: 3 * time.Second}}},
		"a quota of a minute": {[]llmtest.Reply{llmtest.Status(429, nil, `{"error":{"code":429,"message":"You exceeded your current quota","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"4s"}]}}`), ok}, 200,
			[]llm.Retry{{Attempt: 1, Kind: "rate_limited", Status: 429, Wait: 4 * time.Second}}},
		"a code of quota":   {[]llmtest.Reply{llmtest.Status(429, map[string]string{"Retry-After": "3"}, `{"error":{"code":"insufficient_quota","message":"no"}}`)}, 429, nil},
		"a day":             {[]llmtest.Reply{llmtest.RateLimited("86400")}, 429, nil},
		"400 with a page":   {[]llmtest.Reply{llmtest.HTML(400)}, 400, nil},
		"401":               {[]llmtest.Reply{llmtest.Error(401, "invalid_request_error", "invalid_api_key", "Incorrect API key")}, 401, nil},
		"a fault in a flow": {[]llmtest.Reply{llmtest.ErrorInStream("a long text of pieces")}, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, c.replies...)
			s, n := sender(t, srv.URL())
			call := ask(true)
			var retries []llm.Retry
			call.OnRetry = func(_ context.Context, r llm.Retry) error {
				retries = append(retries, r)
				if got := len(srv.Requests()); got != r.Attempt {
					t.Errorf("retry %d was told after %d requests", r.Attempt, got)
				}
				if len(n.all) != r.Attempt-1 {
					t.Errorf("it slept before it told")
				}
				return nil
			}
			r, err := s.Send(t.Context(), call)
			if err != nil || r.Status != c.status {
				t.Fatalf("got %d, %v", r.Status, err)
			}
			if len(retries) != len(c.retries) || len(n.all) != len(retries) {
				t.Fatalf("retries %v, naps %v", retries, n.all)
			}
			for i, want := range c.retries {
				got := retries[i]
				if want.Wait == 0 { // ours: between 3/4 and 5/4 of half a second, then of one
					base := 500 * time.Millisecond << i
					if got.Wait < base*3/4 || got.Wait > base*5/4 {
						t.Errorf("pause %d is %s", i+1, got.Wait)
					}
					got.Wait = 0
				}
				if got != want {
					t.Errorf("retry %+v, want %+v", got, want)
				}
			}
		})
	}
}

func TestEqualRequestsPauseEqually(t *testing.T) {
	t.Parallel()
	srv := serve(t, llmtest.HTML(500).Times(6))
	s, n := sender(t, srv.URL())
	for range 2 {
		if _, err := s.Send(t.Context(), ask(true)); err != nil {
			t.Fatal(err)
		}
	}
	if len(n.all) != 4 || n.all[0] != n.all[2] || n.all[1] != n.all[3] {
		t.Errorf("paused %v: a replay would record other pauses", n.all)
	}
}

func TestARetryThatCannotBeRecordedDoesNotLeave(t *testing.T) {
	t.Parallel()
	srv := serve(t, llmtest.HTML(503))
	s, _ := sender(t, srv.URL())
	call := ask(true)
	full := errors.New("disk full")
	call.OnRetry = func(context.Context, llm.Retry) error { return full }
	if _, err := s.Send(t.Context(), call); !errors.Is(err, full) || len(srv.Requests()) != 1 {
		t.Errorf("got %v after %d requests", err, len(srv.Requests()))
	}
}

func TestARefusedConnectionIsTriedAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + l.Addr().String() + "/v1"
	l.Close()
	s, n := sender(t, base)
	_, err = s.Send(t.Context(), ask(true))
	if kernel.KindOf(err) != kernel.Network || len(n.all) != llm.DefaultRetries || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v after %d pauses", err, len(n.all))
	}
}

func TestARequestThatMayHaveArrivedIsNotSentTwice(t *testing.T) {
	t.Parallel()
	for name, warm := range map[string]bool{"on a new connection": false, "on a used one": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies []llmtest.Reply
			if warm {
				replies = append(replies, llmtest.Text("x"))
			}
			srv := serve(t, append(replies, llmtest.Drop())...)
			s, n := sender(t, srv.URL())
			if warm {
				if _, err := s.Send(t.Context(), ask(true)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := s.Send(t.Context(), ask(true))
			if kernel.KindOf(err) != kernel.Network || len(n.all) != 0 || len(srv.Requests()) != len(replies)+1 {
				t.Errorf("got %v after %d requests", err, len(srv.Requests()))
			}
		})
	}
}

func TestARedirectTakesNeitherKeyNorPromptElsewhere(t *testing.T) {
	t.Parallel()
	var stranger []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stranger = append(stranger, fmt.Sprint(r.Header))
	}))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 307, 308} {
		srv := serve(t, llmtest.Status(status, map[string]string{"Location": other.URL + "/v1/chat/completions"}, ""))
		s, _ := sender(t, srv.URL())
		r, err := s.Send(t.Context(), ask(true))
		if err != nil || r.Status != status || !strings.Contains(errorText(r), "redirect") {
			t.Errorf("%d: got %v, %v", status, r, err)
		}
	}
	if len(stranger) != 0 {
		t.Errorf("the stranger was asked: %s", stranger)
	}
}

func TestTheKeyIsSentAndNeverSaid(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]llmtest.Reply{
		"a page": llmtest.HTML(400), "cut": llmtest.Drop(), "hang": llmtest.Hang(), "fine": llmtest.Text("x"),
	} {
		srv := serve(t, reply)
		s, _ := sender(t, srv.URL())
		call := ask(true)
		call.Progress = 400 * time.Millisecond
		r, err := s.Send(t.Context(), call)
		if got := srv.Requests()[0].Header.Get("Authorization"); got != "Bearer "+canary {
			t.Errorf("%s: Authorization %q", name, got)
		}
		if said := fmt.Sprintf("%v %+v", err, r); strings.Contains(said, canary) {
			t.Errorf("%s: the key is in %s", name, said)
		}
	}
	for _, bad := range []string{"sk-\x01canary", "sk-a\nb"} {
		s, _ := sender(t, "http://127.0.0.1:1/v1")
		call := ask(true)
		call.Ask.Key = bad
		if _, err := s.Send(t.Context(), call); kernel.KindOf(err) != kernel.Validation || strings.Contains(err.Error(), bad) {
			t.Errorf("got %v", err)
		}
	}
}

func TestOnlyListedHeadersComeBack(t *testing.T) {
	t.Parallel()
	srv := serve(t, llmtest.Text("x").WithHeader("Set-Cookie", "a=b").WithHeader("X-Ratelimit-Remaining-Tokens", "12").WithHeader("X-Secret", canary))
	s, _ := sender(t, srv.URL())
	r, err := s.Send(t.Context(), ask(false))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Headers) != 3 || r.Headers["x-ratelimit-remaining-tokens"] != "12" || r.Headers["x-request-id"] != "req_1" || r.Headers["content-type"] == nil {
		t.Errorf("headers %v", r.Headers)
	}
}
