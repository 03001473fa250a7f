package scripttest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var sent atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		rw.Header().Set("X-Many", "one")
		rw.Header().Add("X-Many", "two")
		rw.WriteHeader(418)
		fmt.Fprintf(rw, "%s %s trace=%s run=%s host=%s", r.Method, b, r.Header.Get("X-Trace-Id"), r.Header.Get("X-Run-Id"), r.Host)
	})
	mux.HandleFunc("/bytes", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write([]byte("a\xffb")) })
	mux.HandleFunc("/huge", func(rw http.ResponseWriter, r *http.Request) {
		part := make([]byte, 1<<20)
		for range 1000 {
			if n, err := rw.Write(part); err != nil || r.Context().Err() != nil {
				return
			} else {
				sent.Add(int64(n))
			}
		}
	})
	hang := func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/half" {
			_, _ = rw.Write([]byte("half"))
			_ = http.NewResponseController(rw).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-time.After(20 * time.Second):
		}
	}
	mux.HandleFunc("/hang", hang)
	mux.HandleFunc("/half", hang)
	mux.HandleFunc("/sse", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{"data: gr\xc3", "\xb6\xc3\x9fe \xf0\x9d", "\x84\x9e\r\n", "\r\n: comment\r\n", "data: one\r\ndata: two\r\n\r\n", "event: x\ndata: {\"a\":1}\n\n", "data: bad\xff\n\n", "data: last"} {
			_, _ = rw.Write([]byte(part))
			_ = http.NewResponseController(rw).Flush()
			time.Sleep(2 * time.Millisecond)
		}
	})
	mux.HandleFunc("/done", func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("data: a\n\ndata: [DONE]\n\ndata: b\n\n"))
	})
	mux.HandleFunc("/flood", func(rw http.ResponseWriter, r *http.Request) {
		line := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
		for range 100 {
			if _, err := rw.Write([]byte(line)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/line", func(rw http.ResponseWriter, r *http.Request) { // one that never ends
		_, _ = rw.Write([]byte("data: "))
		for range 100 {
			if _, err := rw.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	gone := httptest.NewServer(mux)
	gone.Close()
	w.host.Globals = map[string]any{"URL": srv.URL, "GONE": gone.URL}
	w.passes(`
		local r = http.request(URL .. "/echo", {method = "post", body = "b\0dy", headers = {["X-Run-Id"] = "mine"}})
		assert(r.status == 418 and r.headers["x-many"] == "two", std.json.encode(r.headers))
		assert(r.body:find("POST b\0dy trace=trace-1 run=mine", 1, true), r.body)
		assert(http.request(URL .. "/echo", {headers = {["x-trace-id"] = "over"}}).body:find("trace=over run= ", 1, true))
		assert(http.request(URL .. "/echo", {headers = {host = "other.example"}}).body:find("host=other.example", 1, true))
		assert(http.request(URL .. "/none").status == 404)
		r = http.request(URL .. "/bytes")
		assert(r.body == "a\239\191\189b" and r.sanitised == true and r.body_raw == "raw0")
	`)
	w.passes(`
		local got = {}
		local r = http.request(URL .. "/sse", {stream = true, on_data = function(d) std.time.sleep(0.001) got[#got + 1] = d end})
		assert(r.status == 200 and r.body == nil)
		local want = {"größe 𝄞", "one\ntwo", '{"a":1}', "bad\239\191\189", "last"}
		for i = 1, 5 do assert(got[i] == want[i], i .. ": " .. tostring(got[i])) end
		assert(#got == 5)
		got = {}
		http.request(URL .. "/done", {stream = true, on_data = function(d) got[#got + 1] = d end})
		assert(#got == 1 and got[1] == "a")
		r = http.request(URL .. "/echo", {stream = true, on_data = function() error("never") end})
		assert(r.status == 418 and r.body:find("GET"))
	`)
	start := time.Now()
	for src, want := range map[string]string{
		`http.request(GONE)`:                                                                   "http: request: network: http connection error: ",
		`http.request(URL .. "/hang", {timeout = 0.15})`:                                       "http: request: timeout: http timeout after 150ms",
		`http.request(URL .. "/half", {timeout = 0.15})`:                                       "http: request: timeout: http timeout after 150ms",
		`http.request(URL .. "/half", {timeout = 0.15, stream = true, on_data = print})`:       "http timeout after 150ms",
		`http.request(URL .. "/huge")`:                                                         "http: request: limit: the reply is larger than 10485760 bytes",
		`http.request(URL .. "/flood", {stream = true, on_data = function() end})`:             "limit: the stream is larger than 10485760 bytes",
		`http.request(URL .. "/line", {stream = true, on_data = print})`:                       "limit",
		`http.request(URL .. "/sse", {stream = true, on_data = function() error("mine") end})`: "mine",
		`http.request(URL, {timeout = "5"})`:                                                   "opts.timeout: got string, want number",
		`http.request(URL, {timeout = 0})`:                                                     "opts.timeout",
		`http.request(URL, {headers = "x"})`:                                                   "opts.headers",
		`http.request(URL, {headers = {a = 1}})`:                                               "opts.headers.a",
		`http.request(URL, {headers = {a = "x\ny"}})`:                                          "line break",
		`http.request(URL, {stream = true})`:                                                   "opts.on_data",
		`http.request(URL, {on_data = 1})`:                                                     "opts.on_data",
		`http.request(URL, {metod = "GET"})`:                                                   `unknown option "metod"`,
		`http.request(URL, {method = "A B"})`:                                                  "method",
		`http.request("file:///etc/passwd")`:                                                   "no http or https URL",
		`http.request("")`:                                                                     "no http or https URL",
	} {
		w.fails(src, want)
	}
	if took := time.Since(start); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
	if n := sent.Load(); n > 100<<20 {
		t.Errorf("%d bytes were read before the bound was seen", n)
	}
	_, err := w.run(`http.request("http://user:` + canary + `@127.0.0.1:1/?key=` + canary + `")`)
	if err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}
