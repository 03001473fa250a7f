// Package openai carries one request to an OpenAI-compatible server through the
// provider's SDK: authentication, base URL, proxies, TLS. The SDK is built without
// its environment defaults and without its retries; its raw reply is ours to read.
package openai

import (
	"context"
	"io"
	"net/http"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// Request is one request; it is a POST where Body is set, else a GET.
type Request struct {
	BaseURL string
	Path    string // below the base URL
	Key     string // "" sends no Authorization
	Headers map[string]string
	Body    []byte // JSON
	Stream  bool
	Limit   int64 // bytes of the reply that are read at most; 0 is no limit
}

// Do sends a request. A reply of any status is a reply, a redirect too: it is not
// followed, since it would take the prompt, and with a port of the same host the key,
// to a place that nobody named. An error is one of the transport. The caller closes
// the body.
func Do(ctx context.Context, client *http.Client, r Request) (*http.Response, error) {
	direct := *client
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	opts := []option.RequestOption{
		option.WithBaseURL(r.BaseURL),
		option.WithHTTPClient(&direct),
		option.WithMaxRetries(0),
	}
	if r.Limit > 0 { // the SDK reads the body of an error whole
		opts = append(opts, option.WithMiddleware(func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
			res, err := next(req)
			if res != nil && res.Body != nil {
				res.Body = limited{io.LimitReader(res.Body, r.Limit), res.Body}
			}
			return res, err
		}))
	}
	if r.Key != "" {
		opts = append(opts, option.WithAPIKey(r.Key))
	}
	if r.Stream {
		opts = append(opts, option.WithHeader("Accept", "text/event-stream"))
	}
	for name, value := range r.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	// The literal, not sdk.NewClient: that one reads OPENAI_* from the environment.
	c := sdk.Client{Options: opts}
	method, body := http.MethodGet, any(nil)
	if r.Body != nil {
		method, body = http.MethodPost, r.Body
	}
	var res *http.Response
	err := c.Execute(ctx, method, r.Path, body, &res)
	if res != nil {
		// A status of 400 and more is the SDK's error; its body was read and put back.
		return res, nil
	}
	return nil, err
}

// limited is a body that ends at a limit.
type limited struct {
	io.Reader
	io.Closer
}
