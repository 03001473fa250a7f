package ashlar_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// collector takes OTLP/JSON as a real one does, or behaves as a broken one.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	raw     []string
	paths   []string
	headers []http.Header
}

func newCollector(t *testing.T, answer http.HandlerFunc) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		c.raw, c.paths, c.headers = append(c.raw, string(b)), append(c.paths, r.Method+" "+r.URL.Path), append(c.headers, r.Header)
		c.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(c.Close)
	return c
}

// span is one span as it came, its attributes as text.
type span struct {
	TraceID, SpanID, Parent, Name string
	Kind, Status                  int
	Links                         []struct{ TraceID, SpanID string }
	Took                          time.Duration
	Attrs                         map[string]string
}

type wireValue struct {
	StringValue, IntValue *string
	BoolValue             *bool
}

func (v wireValue) text() string {
	switch {
	case v.StringValue != nil:
		return *v.StringValue
	case v.IntValue != nil:
		return *v.IntValue
	case v.BoolValue != nil:
		return strconv.FormatBool(*v.BoolValue)
	}
	return "?"
}

type wireAttrs []struct {
	Key   string
	Value wireValue
}

func (a wireAttrs) object() map[string]string {
	m := map[string]string{}
	for _, kv := range a {
		m[kv.Key] = kv.Value.text()
	}
	return m
}

// spans reads what came, and the resource of the first request.
func (c *collector) spans(t *testing.T) (all []span, resource map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, raw := range c.raw {
		var m struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes wireAttrs }
				ScopeSpans []struct {
					Spans []struct {
						TraceID, SpanID, ParentSpanID, Name string
						Kind                                int
						StartTimeUnixNano, EndTimeUnixNano  string
						Attributes                          wireAttrs
						Links                               []struct{ TraceID, SpanID string }
						Status                              struct{ Code int }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(raw), &m); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, r := range m.ResourceSpans {
			resource = r.Resource.Attributes.object()
			for _, scope := range r.ScopeSpans {
				for _, s := range scope.Spans {
					from, err1 := strconv.ParseInt(s.StartTimeUnixNano, 10, 64)
					to, err2 := strconv.ParseInt(s.EndTimeUnixNano, 10, 64)
					if err1 != nil || err2 != nil || to < from {
						t.Errorf("times of %s: %q %q", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano)
					}
					all = append(all, span{s.TraceID, s.SpanID, s.ParentSpanID, s.Name, s.Kind, s.Status.Code, s.Links,
						time.Duration(to - from), s.Attributes.object()})
				}
			}
		}
	}
	return all, resource
}

// traced runs a script with further variables against a scripted model.
func traced(t *testing.T, source string, replies []llmtest.Reply, dotenv string, environ ...string) (res ashlar.Result, notices string) {
	t.Helper()
	return tracedWithin(t, ashlar.Bounds{}, source, replies, dotenv, environ...)
}

func tracedWithin(t *testing.T, bounds ashlar.Bounds, source string, replies []llmtest.Reply, dotenv string, environ ...string) (res ashlar.Result, notices string) {
	t.Helper()
	dir := t.TempDir()
	model := llmtest.New(t, replies...)
	for name, content := range map[string]string{"block.lua": source, ".env": dotenv} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var said []string
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Notice: func(s string) { said = append(said, s) },
		Environ: append([]string{"ASHLAR_HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"),
			"ASHLAR_MODEL=scripted-1", "ASHLAR_BASE_URL=" + model.URL(), "ASHLAR_API_KEY=sk-rig-0123456789abcdef"}, environ...)})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	run, err := ws.Prepare(ashlar.Task{Script: filepath.Join(dir, "block.lua"), Bounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	res = run.Execute(context.Background())
	return res, strings.Join(said, "\n")
}

const asking = `
tool.register("add", { description = "adds", input_schema = { type = "object" } }, function(input) return input.a + input.b end)
local r = require("agent").run({ prompt = "hunter2, a prompt", system = "hunter2 of the system" })
return r.ok`

func askingReplies() []llmtest.Reply {
	return []llmtest.Reply{
		llmtest.Calls(llmtest.Call{ID: "c1", Name: "add", Args: `{"a":2,"b":3,"why":"hunter2"}`}, llmtest.Call{ID: "c2", Name: "absent", Args: `{}`}).
			WithUsage(llmtest.Usage{Prompt: 20, Completion: 4, Cached: 5, Reasoning: 1}),
		llmtest.Text("hunter2 is the answer").WithUsage(llmtest.Usage{Prompt: 30, Completion: 6}),
	}
}

func TestARunIsSpansByTheConventions(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	c := newCollector(t, nil)
	res, notices := traced(t, asking, askingReplies(), "", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL+"/base/", "ASHLAR_TRACE_ID="+id,
		"ASHLAR_AGENT_NAME=mason", "ASHLAR_AGENT_ID=a-1", "OTEL_EXPORTER_OTLP_HEADERS=x-team=a%20b,authorization=Bearer%20key-of-the-collector",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test,service.name=other", "OTEL_SERVICE_NAME=quarry")
	if res.Err != nil || res.Value != true || notices != "" {
		t.Fatalf("%v %v %q", res.Err, res.Value, notices)
	}
	all, resource := c.spans(t)
	if resource["service.name"] != "quarry" || resource["deployment.environment.name"] != "test" || resource["service.version"] != ashlar.Version {
		t.Errorf("resource %v", resource)
	}
	if c.paths[0] != "POST /base/v1/traces" || c.headers[0].Get("X-Team") != "a b" || c.headers[0].Get("Authorization") != "Bearer key-of-the-collector" ||
		c.headers[0].Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", c.paths[0], c.headers[0])
	}
	byName := map[string][]span{}
	for _, s := range all {
		byName[s.Name] = append(byName[s.Name], s)
		if s.TraceID != id {
			t.Errorf("%s is in trace %s", s.Name, s.TraceID)
		}
	}
	if len(all) != 5 || len(byName["invoke_agent mason"]) != 1 || len(byName["chat scripted-1"]) != 2 || len(byName["execute_tool add"]) != 1 || len(byName["execute_tool absent"]) != 1 {
		t.Fatalf("%d spans: %v", len(all), byName)
	}
	agent := byName["invoke_agent mason"][0]
	same(t, "invoke_agent", agent, 1, 0, map[string]string{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "mason", "gen_ai.agent.id": "a-1", "ashlar.run.id": res.Run,
		"ashlar.run.status": "completed", "gen_ai.usage.input_tokens": "50", "gen_ai.usage.output_tokens": "10", "ashlar.genai.conventions": "v0.1.0",
	})
	first := byName["chat scripted-1"][0]
	same(t, "chat", first, 3, 0, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "scripted-1", "gen_ai.conversation.id": res.Sessions[0],
		"gen_ai.usage.input_tokens": "20", "gen_ai.usage.cache_read.input_tokens": "5", "gen_ai.usage.output_tokens": "4", "gen_ai.usage.reasoning.output_tokens": "1",
	})
	same(t, "tool", byName["execute_tool add"][0], 1, 0, map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add", "gen_ai.tool.call.id": "c1", "gen_ai.tool.type": "function",
		"gen_ai.conversation.id": res.Sessions[0], "ashlar.beat.id": first.Attrs["ashlar.beat.id"],
	})
	same(t, "failed tool", byName["execute_tool absent"][0], 1, 2, map[string]string{"error.type": "not_found"})
	for _, s := range all {
		if s.Name != agent.Name && s.Parent != agent.SpanID || s.Name == agent.Name && s.Parent != "" {
			t.Errorf("%s is under %q", s.Name, s.Parent)
		}
	}
	if raw := strings.Join(c.raw, ""); strings.Contains(raw, "hunter2") || strings.Contains(raw, "key-of-the-collector") {
		t.Errorf("a prompt, an argument, an answer or a secret is in:\n%s", raw)
	}
}

// same wants a kind, a status and some attributes of a span.
func same(t *testing.T, what string, s span, kind, status int, attrs map[string]string) {
	t.Helper()
	if s.Kind != kind || s.Status != status {
		t.Errorf("%s: kind %d, status %d", what, s.Kind, s.Status)
	}
	for key, want := range attrs {
		if s.Attrs[key] != want {
			t.Errorf("%s: %s is %q, want %q", what, key, s.Attrs[key], want)
		}
	}
}

func TestSpansGoUnderTheCallers(t *testing.T) {
	t.Parallel()
	const id, other, parent = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for name, c := range map[string]struct {
		environ              []string
		trace, under, linked string
		none                 bool
	}{
		"traceparent alone":         {environ: []string{"TRACEPARENT=00-" + id + "-" + parent + "-01"}, trace: id, under: parent},
		"both, one trace":           {environ: []string{"TRACEPARENT=00-" + id + "-" + parent + "-01", "ASHLAR_TRACE_ID=" + id}, trace: id, under: parent},
		"both, two traces":          {environ: []string{"TRACEPARENT=00-" + id + "-" + parent + "-01", "ASHLAR_TRACE_ID=" + other}, trace: other, linked: parent},
		"not sampled":               {environ: []string{"TRACEPARENT=00-" + id + "-" + parent + "-00"}, none: true},
		"no trace id of W3C's form": {environ: []string{"ASHLAR_TRACE_ID=job 17"}},
		"neither":                   {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			col := newCollector(t, nil)
			res, notices := traced(t, `return 1`, nil, "", append(c.environ, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+col.URL+"/own/path")...)
			if res.Err != nil || notices != "" {
				t.Fatalf("%v %q", res.Err, notices)
			}
			all, _ := col.spans(t)
			if c.none {
				if len(all) != 0 {
					t.Errorf("%v", all)
				}
				return
			}
			if len(all) != 1 || col.paths[0] != "POST /own/path" {
				t.Fatalf("%v %v", all, col.paths)
			}
			s := all[0]
			if len(s.TraceID) != 32 || c.trace != "" && s.TraceID != c.trace || s.Parent != c.under {
				t.Errorf("trace %s, parent %q", s.TraceID, s.Parent)
			}
			if (len(s.Links) == 1 && s.Links[0].SpanID == c.linked) != (c.linked != "") {
				t.Errorf("links %v", s.Links)
			}
			if (s.Attrs["ashlar.trace_id"] == "job 17") != (name == "no trace id of W3C's form") || s.Name != "invoke_agent block.lua" {
				t.Errorf("%s %v", s.Name, s.Attrs)
			}
		})
	}
}

func TestFailuresAreSpansOfTheirKind(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	res, _ := traced(t, `
local r = require("agent").run({ prompt = "x", retry = { max = 0 } })
std.fs.read("absent-hunter2.txt")`, []llmtest.Reply{llmtest.Error(400, "invalid_request_error", "bad", "hunter2")}, "", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	if res.Err == nil {
		t.Fatal("it did not fail")
	}
	all, _ := c.spans(t)
	kinds := map[string]string{}
	for _, s := range all {
		if s.Status == 2 {
			kinds[s.Name] = s.Attrs["error.type"]
		}
	}
	if kinds["invoke_agent block.lua"] != "not_found" || len(all) == 2 && kinds["chat scripted-1"] != "_OTHER" {
		t.Errorf("%v of %v", kinds, all)
	}
	if raw := strings.Join(c.raw, ""); strings.Contains(raw, "hunter2") {
		t.Errorf("the text of an error is in:\n%s", raw)
	}
}

// TestABrokenCollectorCostsSpansAndNothingElse holds the bound of a run's end too: the
// flush of a normal one is 2 s, of a cut one 0.5 s.
func TestABrokenCollectorCostsSpansAndNothingElse(t *testing.T) {
	t.Parallel()
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, c := range map[string]struct {
		answer  http.HandlerFunc
		url     string
		atLeast time.Duration
		most    time.Duration
		says    string
	}{
		"refuses": {url: "http://127.0.0.1:1", says: "spans not delivered: 1 (the collector cannot be reached"},
		"fails":   {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, says: "spans not delivered: 1 (the collector answered with status 503"},
		"redirects": {answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, says: "status 307"},
		"rejects": {answer: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"partialSuccess":{"rejectedSpans":"1"}}`))
		}, says: "rejected 1 of 1 spans"},
		"nonsense": {answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }},
		"hangs":    {answer: hangs, atLeast: time.Second, most: 6 * time.Second, says: "spans not delivered: 1 (the run ended before"},
		"hangs up": {answer: func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, says: "broke the connection off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.url == "" {
				c.url = newCollector(t, c.answer).URL
			}
			start := time.Now()
			res, notices := traced(t, `return 42`, nil, "", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.url)
			took := time.Since(start)
			if res.Err != nil || res.Value != int64(42) {
				t.Errorf("the run: %v %v", res.Value, res.Err)
			}
			if !strings.Contains(notices, c.says) || c.says == "" && notices != "" {
				t.Errorf("notices %q, want %q", notices, c.says)
			}
			if took < c.atLeast || c.most > 0 && took > c.most {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestACutRunWaitsLessForACollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	start := time.Now()
	res, notices := tracedWithin(t, ashlar.Bounds{Deadline: 100 * time.Millisecond}, `while true do end`, nil, "", "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
	if took := time.Since(start); res.StoppedBy != "deadline" || took >= 100*time.Millisecond+ashlar.StreamFlush {
		t.Errorf("stopped by %q after %s", res.StoppedBy, took)
	}
	contains(t, notices, "spans not delivered: 1 (")
	all, _ := c.spans(t)
	if len(all) != 1 || all[0].Status != 2 || all[0].Attrs["error.type"] == "" || all[0].Attrs["ashlar.run.stopped_by"] != "deadline" {
		t.Errorf("%v", all)
	}
}

func TestOnlyTheProcessesOwnEnvironmentNamesACollector(t *testing.T) {
	t.Parallel()
	c := newCollector(t, nil)
	for name, x := range map[string]struct {
		dotenv  string
		environ []string
		says    string
	}{
		"nothing":     {},
		"a project's": {dotenv: "OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL + "\nOTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + c.URL},
		"disabled":    {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_SDK_DISABLED=true"}},
		"no exporter": {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_TRACES_EXPORTER=none"}},
		"not a URL":   {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317"}, says: "OpenTelemetry: OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL: no spans are sent"},
	} {
		res, notices := traced(t, `return 1`, nil, x.dotenv, x.environ...)
		if res.Err != nil || notices != x.says {
			t.Errorf("%s: %v %q", name, res.Err, notices)
		}
	}
	if all, _ := c.spans(t); len(all) != 0 {
		t.Errorf("%v", all)
	}
}
