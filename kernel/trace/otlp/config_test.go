package otlp

import (
	"strings"
	"testing"
	"time"
)

func TestTheStandardVariablesAreRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, environ, url, problem string
		timeout                     time.Duration
		headers                     map[string]string
	}{
		{name: "nothing"},
		{name: "endpoint", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4318", url: "http://c:4318/v1/traces"},
		{name: "endpoint with a path", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=https://c/otlp/", url: "https://c/otlp/v1/traces"},
		{name: "endpoint of traces, taken as it is", environ: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318/;OTEL_EXPORTER_OTLP_ENDPOINT=http://d", url: "http://c:4318/"},
		{name: "no URL", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=secret@c:4317", problem: "OTEL_EXPORTER_OTLP_ENDPOINT is no http or https URL"},
		{name: "disabled", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_SDK_DISABLED=True"},
		{name: "grpc", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_PROTOCOL=grpc", url: "http://c/v1/traces", problem: "does not speak"},
		{name: "grpc for other signals", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_PROTOCOL=grpc;OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", url: "http://c/v1/traces"},
		{name: "timeout", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_TIMEOUT=1500", url: "http://c/v1/traces", timeout: 1500 * time.Millisecond},
		{name: "bad timeout", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_TIMEOUT=soon", url: "http://c/v1/traces", problem: "milliseconds"},
		{name: "headers", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_HEADERS= api-key = a%2Cb==, x=1", url: "http://c/v1/traces",
			headers: map[string]string{"Api-Key": "a,b==", "X": "1"}},
		{name: "bad headers", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_EXPORTER_OTLP_HEADERS=secret,a b=secret,c=secret%0d%0ax,d=%zz,e=5", url: "http://c/v1/traces",
			headers: map[string]string{"E": "5"}, problem: "OTEL_EXPORTER_OTLP_HEADERS: 4 of its entries are not name=value"},
		{name: "bad resource", environ: "OTEL_EXPORTER_OTLP_ENDPOINT=http://c;OTEL_RESOURCE_ATTRIBUTES=a", url: "http://c/v1/traces", problem: "OTEL_RESOURCE_ATTRIBUTES: 1 "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{}
			for kv := range strings.SplitSeq(c.environ, ";") {
				name, value, _ := strings.Cut(kv, "=")
				env[name] = value
			}
			got, on, problem := FromEnviron(func(name string) string { return env[name] })
			if got.URL != c.url || on != (c.url != "") || !strings.Contains(problem, c.problem) || c.problem == "" && problem != "" || strings.Contains(problem, "secret") {
				t.Fatalf("%v %q, %q", on, got.URL, problem)
			}
			if want := max(c.timeout, 0); on && got.Timeout != want && (want != 0 || got.Timeout != DefaultTimeout) {
				t.Errorf("timeout %s", got.Timeout)
			}
			if len(got.Headers) != len(c.headers) {
				t.Errorf("headers %v", got.Headers)
			}
			for name, want := range c.headers {
				if got.Headers.Get(name) != want {
					t.Errorf("%s is %q", name, got.Headers.Get(name))
				}
			}
		})
	}
}
