// Package http is the namespace http: one request, bounded in time and size, or one
// stream of server-sent events. Any status is an answer; only what gave none raises.
package http

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/trace"
	"ashlar/stdlib/http/sse"
	"ashlar/vm"
)

// Bounds of a request whose options name none.
const (
	DefaultTimeout = 120 * time.Second
	MaxBodyBytes   = 10 << 20 // of a reply; of a stream, all its data
)

// Client is what the namespace needs of its run.
type Client struct {
	HTTP *http.Client
	// Trace gives the correlation headers of the run, which a caller's own win over.
	Trace map[string]string
	// Observe is told of each request and of what came of it, nil tells nobody; Now
	// times that.
	Observe func(event string, more ...trace.Field)
	Now     func() time.Time
	// Keep keeps a reply's raw bytes by their hash, when they had to be made valid
	// text; nil keeps none.
	Keep func(ctx context.Context, b []byte) string
	// Bounds of a request whose options name none; 0 is the default.
	Timeout time.Duration
	MaxBody int64 // bytes of a reply; of a stream, all its data
}

// Module declares the namespace.
func Module(c Client) *vm.Module {
	return &vm.Module{
		Name: "http",
		Doc:  "HTTP requests.",
		Funcs: []vm.Function{{
			Name: "request",
			Doc: "Sends a request and gives {status, headers, body}; header names are lower case. " +
				"With stream = true the reply's server-sent events go to on_data(text) one by one, until [DONE], and there is a body only where the status is 400 or more.",
			Params: []vm.Param{
				{Name: "url", Type: vm.String},
				{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
					{Name: "method", Type: vm.String, Optional: true, Doc: "default GET"},
					{Name: "headers", Type: vm.Map, Optional: true},
					{Name: "body", Type: vm.Bytes, Optional: true},
					{Name: "timeout", Type: vm.Number, Optional: true, Doc: "seconds for the whole request, with a fraction; default 120"},
					{Name: "stream", Type: vm.Boolean, Optional: true},
					{Name: "on_data", Type: vm.Callable, Optional: true},
				}},
			},
			Results: []vm.Param{{Name: "reply", Type: vm.Map}},
			Effect:  vm.Write, Capability: "net.http", Waits: true,
			Impl: c.request,
		}},
	}
}

func (c Client) request(ctx context.Context, call *vm.Call) ([]vm.Value, error) {
	o := call.Map(1)
	timeout := cmp.Or(c.Timeout, DefaultTimeout)
	most := cmp.Or(c.MaxBody, MaxBodyBytes)
	if o["timeout"] != nil {
		secs := o.Float("timeout", 0)
		if secs <= 0 || secs > 1e6 {
			return nil, vm.Errorf(string(kernel.Validation), "opts.timeout must be more than 0 seconds, got %v", secs)
		}
		timeout = time.Duration(secs * float64(time.Second))
	}
	if o.Bool("stream", false) && o.Func("on_data") == nil {
		return nil, vm.Errorf(string(kernel.Validation), "opts.stream needs opts.on_data")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		vm.Errorf(string(kernel.Timeout), "http timeout after %s", timeout))
	defer cancel()
	req, err := c.build(ctx, call.Str(0), o)
	if err != nil {
		return nil, err
	}
	told := c.tell(req)
	res, err := c.HTTP.Do(req)
	if err != nil {
		err = explain(ctx, err)
		told(0, err)
		return nil, err
	}
	told(res.StatusCode, nil)
	defer res.Body.Close()
	reply := map[string]any{"status": int64(res.StatusCode), "headers": headersOf(res.Header)}
	if o.Bool("stream", false) && res.StatusCode < 400 {
		return []vm.Value{reply}, stream(ctx, res.Body, most, o.Func("on_data"))
	}
	b, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	if err != nil {
		return nil, explain(ctx, err)
	}
	if int64(len(b)) > most {
		return nil, vm.Errorf(string(kernel.Limit), "the reply is larger than %d bytes", most)
	}
	c.text(ctx, call.Host, reply, b)
	return []vm.Value{reply}, nil
}

// text puts the body into the reply as valid text. Raw bytes are kept as they came,
// and so not where they hold a secret.
func (c Client) text(ctx context.Context, h *vm.Host, reply map[string]any, b []byte) {
	if utf8.Valid(b) {
		reply["body"] = string(b)
		return
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	reply["body"], reply["sanitised"] = text, true
	if c.Keep == nil || h.Redact(text) != text {
		return
	}
	if hash := c.Keep(context.WithoutCancel(ctx), b); hash != "" {
		reply["body_raw"] = hash
	}
}

func (c Client) build(ctx context.Context, target string, o vm.Opts) (*http.Request, error) {
	u, err := url.Parse(target)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, vm.Errorf(string(kernel.Validation), "url is no http or https URL")
	}
	method := o.Str("method", http.MethodGet)
	req, err := http.NewRequestWithContext(ctx, strings.ToUpper(method), target, bytes.NewReader([]byte(o.Str("body", ""))))
	if err != nil {
		return nil, vm.Errorf(string(kernel.Validation), "method %q is none", method)
	}
	for name, value := range c.Trace {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	headers, _ := o["headers"].(map[string]any)
	for name, v := range headers {
		value, ok := v.(string)
		if !ok {
			return nil, vm.Errorf(string(kernel.Validation), "opts.headers.%s: got %s, want string", name, vm.TypeName(v))
		}
		if strings.ContainsAny(name+value, "\r\n") {
			return nil, vm.Errorf(string(kernel.Validation), "opts.headers.%s holds a line break", name)
		}
		req.Header.Set(name, value)
		if strings.EqualFold(name, "host") {
			req.Host = value
		}
	}
	return req, nil
}

// stream hands the data of each event to fn, on this goroutine.
func stream(ctx context.Context, body io.Reader, most int64, fn *vm.Func) error {
	events := sse.NewDecoder(body)
	total := int64(0)
	for {
		e, err := events.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return explain(ctx, err)
		}
		data := strings.TrimSpace(strings.ToValidUTF8(string(e.Data), "\uFFFD"))
		if data == "[DONE]" {
			return nil
		}
		if total += int64(len(data)); total > most {
			return vm.Errorf(string(kernel.Limit), "the stream is larger than %d bytes", most)
		}
		if _, err := fn.Call(ctx, data); err != nil {
			return err
		}
	}
}

// explain gives a transport's failure its kind. The URL, which may hold a secret, is
// left out.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var own *kernel.Error
	if errors.As(err, &own) && own.Kind == kernel.Limit {
		return err
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return vm.Errorf(string(kernel.Network), "http connection error: %v", err)
}

func headersOf(h http.Header) map[string]any {
	out := make(map[string]any, len(h))
	for name, values := range h {
		out[strings.ToLower(name)] = strings.ToValidUTF8(values[len(values)-1], "\uFFFD")
	}
	return out
}
