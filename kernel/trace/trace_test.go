package trace

import (
	"reflect"
	"strings"
	"testing"
)

var me = Identity{TraceID: "t-1", RunID: "r-1", AgentID: "a-1"}

const head = `prefix=ashlar.obs event=http_request component=http trace_id=t-1 run_id=r-1 agent_id=a-1 agent_name=""`

func TestLineHasOneFormAndOneOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, key, value, want string }{
		{"plain", "method", "GET", "method=GET"},
		{"empty", "k", "", `k=""`},
		{"space", "k", "a b", `k="a b"`},
		{"tab and line break", "k", "a\tb\nc", `k="a\tb\nc"`},
		{"no-break space", "k", "a\u00a0b", "k=\"a\u00a0b\""},
		{"equals sign", "k", "a=b", `k="a=b"`},
		{"quote inside", "k", `a"b`, `k=a"b`},
		{"quote first, as if it were escaped", "k", `"a"`, `k="\"a\""`},
		{"control", "k", "a\x1b[31mb", `k="a\u001b[31mb"`},
		{"not UTF-8", "k", "a\xffb", `k="a\ufffdb"`},
		{"angle brackets", "k", "a <b>", `k="a <b>"`},
		{"authorization", "Authorization", "Bearer x", "Authorization=[REDACTED]"},
		{"proxy authorization", "proxy-authorization", "x", "proxy-authorization=[REDACTED]"},
		{"cookie", "set_cookie", "x", "set_cookie=[REDACTED]"},
		{"token", "access_token", "x", "access_token=[REDACTED]"},
		{"secret", "client_secret", "x", "client_secret=[REDACTED]"},
		{"password", "db_password", "x", "db_password=[REDACTED]"},
		{"passwd", "PASSWD", "x", "PASSWD=[REDACTED]"},
		{"api_key", "api_key", "x", "api_key=[REDACTED]"},
		{"apikey", "apikey", "x", "apikey=[REDACTED]"},
		{"api key as a header", "X-Api-Key", "x", "X-Api-Key=[REDACTED]"},
		{"access key", "aws_access_key_id", "x", "aws_access_key_id=[REDACTED]"},
		{"private key", "private_key", "x", "private_key=[REDACTED]"},
		{"an empty secret too", "token", "", "token=[REDACTED]"},
		{"url", "url", "https://me:hunter2@api.example/v1?key=s#f", "url=https://api.example/v1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := me.Line("http_request", HTTP, Field{c.key, c.value}); got != head+" "+c.want {
				t.Errorf("got  %s\nwant %s", got, head+" "+c.want)
			}
		})
	}
	got := Identity{TraceID: "a b", AgentName: "x=y"}.Line("tool_call", Tool, Field{"b", "1"}, Field{"a", "2"})
	want := `prefix=ashlar.obs event=tool_call component=tool trace_id="a b" run_id="" agent_id="" agent_name="x=y" b=1 a=2`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNoSecretOfAURLIsShown(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://api.example/v1/x":                   "https://api.example/v1/x",
		"https://u:hunter2@api.example:8443/a":       "https://api.example:8443/a",
		"https://hunter2@api.example/a":              "https://api.example/a",
		"https://api.example/a?key=hunter2":          "https://api.example/a",
		"https://api.example/a?":                     "https://api.example/a",
		"https://api.example/a#hunter2":              "https://api.example/a",
		"/only/a/path?hunter2":                       "/only/a/path",
		"https://u:hunter2@api.example/%zz?hunter2":  "https://api.exam...",
		"https://u:hunt/er2@api.example/":            "https://api.exam...",
		"https://u:p#hunter2@api.example/":           "https://api.exam...",
		"https://u:p?hunter2@api.example:bad/x":      "https://api.exam...",
		"u:hunter2@api.example/long/path/behind":     "api.example/long...",
		"mailto:hunter2@api.example":                 "api.example...",
		"https://[::1/é":                             "https://[::1/é...",
		"://ééééééééééééééééééééééééé":               "://ééééééééééééé...",
		"https://api.example:bad/hunter2hunter2long": "https://api.exam...",
	} {
		if got := CleanURL(raw); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", raw, got, want)
		} else if strings.Contains(got, "hunter2") {
			t.Errorf("%s: %s", raw, got)
		}
	}
}

func TestEnvelopeIsAddedWhereItCanBe(t *testing.T) {
	t.Parallel()
	env := map[string]any{"trace_id": "t-1", "run_id": "r-1", "agent_id": "a-1"}
	own := map[string]any{EnvelopeKey: map[string]any{"trace_id": "other"}}
	for _, c := range []struct {
		name          string
		id            Identity
		payload, want any
	}{
		{"object", me, map[string]any{"x": int64(1)}, map[string]any{"x": int64(1), EnvelopeKey: env}},
		{"empty object", me, map[string]any{}, map[string]any{EnvelopeKey: env}},
		{"nothing becomes an object", me, nil, map[string]any{EnvelopeKey: env}},
		{"nothing to say", Identity{}, nil, nil},
		{"nothing to say of an object", Identity{}, map[string]any{}, map[string]any{}},
		{"never written over", me, own, own},
		{"list", me, []any{int64(1)}, []any{int64(1)}},
		{"text", me, "x", "x"},
		{"false", me, false, false},
		{"all four", Identity{"t", "r", "a", "n"}, nil, map[string]any{EnvelopeKey: map[string]any{
			"trace_id": "t", "run_id": "r", "agent_id": "a", "agent_name": "n"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.id.Envelope(c.payload); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	payload := map[string]any{"x": int64(1)}
	me.Envelope(payload)
	if len(payload) != 1 {
		t.Errorf("the caller's payload was changed: %v", payload)
	}
}

func TestTraceIDIsTheCallersWhereItHasTheForm(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	hex, ok := HexID(id)
	if !ok || (Identity{TraceID: id}).W3C() != hex || (Identity{TraceID: strings.ToUpper(id)}).W3C() != hex {
		t.Errorf("%x %v", hex, ok)
	}
	one, two := Identity{TraceID: "job 17"}.W3C(), Identity{TraceID: "job 18"}.W3C()
	if one == two || one == [16]byte{} || one != (Identity{TraceID: "job 17"}).W3C() {
		t.Errorf("%x %x", one, two)
	}
	if _, ok := HexID(strings.Repeat("0", 32)); ok {
		t.Error("zero is no trace id")
	}
}

func TestTraceparentIsReadAsW3CSays(t *testing.T) {
	t.Parallel()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for s, want := range map[string]bool{
		"00-" + id + "-" + span + "-01":                      true,
		" 00-" + id + "-" + span + "-00 ":                    true,
		"01-" + id + "-" + span + "-01-later":                true,
		"00-" + id + "-" + span + "-01-more":                 false,
		"ff-" + id + "-" + span + "-01":                      false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":   false,
		"00-" + id + "-" + span:                              false,
		"00-" + id[1:] + "-" + span + "-01":                  false,
		"00-" + id + "-" + strings.Repeat("x", 16) + "-01":   false,
		"": false,
	} {
		p, ok := ParseParent(s)
		if ok != want {
			t.Errorf("%q: %v, want %v", s, ok, want)
		}
		if ok && p.Sampled != strings.Contains(s, "-01") {
			t.Errorf("%q: sampled %v", s, p.Sampled)
		}
	}
}
