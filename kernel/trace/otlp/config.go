package otlp

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultTimeout bounds one request where the environment says nothing.
const DefaultTimeout = 10 * time.Second

// Config says where spans go. The zero value is nowhere.
type Config struct {
	URL      string // of the traces, whole
	Headers  http.Header
	Timeout  time.Duration
	Service  string // service.name of the resource; "" where Resource has one
	Resource []Attribute
}

// Attribute is one fact of the resource.
type Attribute struct{ Key, Value string }

// FromEnviron reads the standard variables (OTEL_EXPORTER_OTLP_ENDPOINT and its like)
// of an environment. on is false where no endpoint is configured, or where the
// environment turns traces off. problem says what of the configuration is not used and
// what to do; it never repeats a value that may hold a secret.
func FromEnviron(get func(name string) string) (c Config, on bool, problem string) {
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") || get("OTEL_TRACES_EXPORTER") == "none" {
		return c, false, ""
	}
	either := func(name string) (value, from string) {
		if v := get("OTEL_EXPORTER_OTLP_TRACES_" + name); v != "" {
			return v, "OTEL_EXPORTER_OTLP_TRACES_" + name
		}
		return get("OTEL_EXPORTER_OTLP_" + name), "OTEL_EXPORTER_OTLP_" + name
	}
	endpoint, from := either("ENDPOINT")
	if endpoint == "" {
		return c, false, ""
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return c, false, from + " is no http or https URL: no spans are sent"
	}
	if from == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	}
	c = Config{URL: u.String(), Timeout: DefaultTimeout, Headers: http.Header{}}
	var problems []string
	if p, from := either("PROTOCOL"); p == "grpc" {
		problems = append(problems, from+" is grpc, which this build does not speak: spans are sent as http/json; name the collector's HTTP port, usually 4318")
	}
	if ms, from := either("TIMEOUT"); ms != "" {
		if n, err := strconv.Atoi(ms); err != nil || n < 1 {
			problems = append(problems, from+" is no number of milliseconds: "+DefaultTimeout.String()+" are used")
		} else {
			c.Timeout = time.Duration(n) * time.Millisecond
		}
	}
	list, from := either("HEADERS")
	headers, bad := pairs(list)
	for _, h := range headers {
		if !token(h.Key) || strings.ContainsAny(h.Value, "\r\n\x00") {
			bad++
			continue
		}
		c.Headers.Set(h.Key, h.Value)
	}
	if bad > 0 {
		problems = append(problems, fmt.Sprintf("%s: %d of its entries are not name=value and are left out", from, bad))
	}
	if c.Resource, bad = pairs(get("OTEL_RESOURCE_ATTRIBUTES")); bad > 0 {
		problems = append(problems, fmt.Sprintf("OTEL_RESOURCE_ATTRIBUTES: %d of its entries are not name=value and are left out", bad))
	}
	c.Service = get("OTEL_SERVICE_NAME")
	return c, true, strings.Join(problems, "; ")
}

// pairs reads "a=1,b=2", values percent-encoded; bad counts what is none.
func pairs(list string) (all []Attribute, bad int) {
	for entry := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, ok := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil {
			bad++
			continue
		}
		all = append(all, Attribute{name, value})
	}
	return all, bad
}

// token reports whether a text can be a header's name.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}
