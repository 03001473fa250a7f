package llm

import (
	"context"
	"net/http"

	"ashlar/stdlib/llm/anthropic"
	"ashlar/stdlib/llm/assemble"
	"ashlar/stdlib/llm/openai"
)

// wire is the protocol of a provider: "openai" for Chat Completions, "anthropic" for
// Messages. What differs between them in this room is below.
type wire string

func (t Target) wire() wire { return wire(t.Kind) }

// path is where a call goes, below the base URL.
func (w wire) path() string {
	if w == "anthropic" {
		return "v1/messages"
	}
	return "chat/completions"
}

// request is one request; without a body it is a GET.
type request struct {
	base, path, key string
	headers         map[string]string
	body            []byte
	stream          bool
}

// do sends a request through the provider's SDK.
func (w wire) do(ctx context.Context, client *http.Client, r request) (*http.Response, error) {
	if w == "anthropic" {
		return anthropic.Do(ctx, client, anthropic.Request{
			BaseURL: r.base, Path: r.path, Key: r.key, Headers: r.headers, Body: r.body, Stream: r.stream, Limit: MaxReplyBytes + 1,
		})
	}
	return openai.Do(ctx, client, openai.Request{
		BaseURL: r.base, Path: r.path, Key: r.key, Headers: r.headers, Body: r.body, Stream: r.stream, Limit: MaxReplyBytes + 1,
	})
}

// assembler puts a stream together.
type assembler interface {
	Add(data []byte) error
	Ping(data []byte) bool // an event that is no progress
	Done() bool
	Result(cut bool) assemble.Result
}

func (w wire) assembler(delta func(kind, text string) error) assembler {
	if w == "anthropic" {
		return assemble.NewMessages(delta)
	}
	return assemble.New(delta)
}

// limit names the field of a request that bounds its reply.
func (t Target) limit(model string) string {
	if t.Kind == "openai" && t.Dialect == "openai" && reasoning(model) {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// said is the part of a reply's body that the model wrote.
func (w wire) said(body map[string]any) any {
	if w == "anthropic" {
		return body["content"]
	}
	return body["choices"]
}
