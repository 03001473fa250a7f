package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// created is every reply's time: equal replies have equal bytes.
const created = 1767225600

// commentPause is the time between two comment lines, or two pieces that trickle.
const commentPause = 5 * time.Millisecond

// exchange answers one request.
type exchange struct {
	w       http.ResponseWriter
	n       int
	reply   Reply
	request map[string]any
	raw     []byte
	wire    messagesWire    // set: it speaks the Messages API
	ctx     context.Context // of the client
	done    context.Context // of the server
}

func (x *exchange) answer() {
	for name, value := range x.reply.Header {
		x.w.Header().Set(name, value)
	}
	x.w.Header().Set("X-Request-Id", fmt.Sprintf("req_%d", x.n))
	stream, _ := x.request["stream"].(bool)
	switch {
	case x.reply.Fault == HangsBefore:
		x.hang()
	case x.reply.Fault == Drops:
		x.cut()
	case x.reply.Chunks != nil:
		x.begin()
		for _, c := range x.reply.Chunks {
			if x.reply.Fault == Trickles && !x.pause(commentPause) {
				return
			}
			x.write(c)
		}
	case x.reply.Status != 0 && x.reply.Status != http.StatusOK:
		x.w.WriteHeader(x.reply.Status)
		body := x.reply.Body
		if x.wire {
			body = messagesError(x.reply.Status, body)
		}
		_, _ = x.w.Write([]byte(body))
	case stream && bool(x.wire):
		x.messagesStream()
	case stream:
		x.stream()
	case bool(x.wire):
		x.send(encode(x.message()))
	default:
		x.whole()
	}
}

// begin sends the headers of a stream.
func (x *exchange) begin() {
	if x.w.Header().Get("Content-Type") == "" {
		x.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	x.w.WriteHeader(http.StatusOK)
	x.flush()
}

func (x *exchange) write(text string) {
	_, _ = x.w.Write([]byte(text))
	x.flush()
}

func (x *exchange) flush() { _ = http.NewResponseController(x.w).Flush() }

// pause waits, or until client or server go away; false says that they did.
func (x *exchange) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.ctx.Done():
	case <-x.done.Done():
	}
	return false
}

// hang waits for the client to go away, then cuts what is left of the connection.
func (x *exchange) hang() {
	x.pause(MaxHang)
	x.cut()
}

// cut ends the connection with a reset, so that no client takes it for an end.
func (x *exchange) cut() {
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// event sends one chunk.
func (x *exchange) event(v any) { x.write("data: " + encode(v) + "\n\n") }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a script's own value
	}
	return string(b)
}

// chunk is the envelope of a stream's chunk.
func (x *exchange) chunk(choices ...any) map[string]any {
	c := x.envelope("chat.completion.chunk")
	c["choices"] = append([]any{}, choices...)
	if x.wantsUsage() {
		c["usage"] = nil
	}
	return c
}

func (x *exchange) envelope(object string) map[string]any {
	model, _ := x.request["model"].(string)
	if model == "" {
		model = Model
	}
	return map[string]any{
		"id": fmt.Sprintf("chatcmpl-llmtest%d", x.n), "object": object, "created": created, "model": model,
		"service_tier": "default", "system_fingerprint": "fp_llmtest",
	}
}

func delta(fields map[string]any, finish any) map[string]any {
	return map[string]any{"index": 0, "delta": fields, "logprobs": nil, "finish_reason": finish}
}

func (x *exchange) wantsUsage() bool {
	options, _ := x.request["stream_options"].(map[string]any)
	include, _ := options["include_usage"].(bool)
	return include && !x.reply.NoUsage
}

// stream answers in chunks.
func (x *exchange) stream() {
	x.begin()
	first := map[string]any{"role": "assistant", "content": "", "refusal": nil}
	if len(x.reply.Calls) > 0 && x.reply.Text == "" {
		first["content"] = nil
	}
	x.event(x.chunk(delta(first, nil)))
	deltas := x.deltas()
	for i, d := range deltas {
		if i == 1 && x.misbehave() {
			return
		}
		x.write("data: " + d + "\n\n")
	}
	if len(deltas) < 2 && x.misbehave() || x.reply.Fault == WithoutTerminal {
		return
	}
	x.event(x.chunk(delta(map[string]any{}, x.finish())))
	if x.wantsUsage() {
		last := x.chunk()
		last["usage"] = x.usage()
		x.event(last)
	}
	x.write("data: [DONE]\n\n")
}

// misbehave does what the reply's fault says inside a stream; true ends it.
func (x *exchange) misbehave() bool {
	switch x.reply.Fault {
	case HangsInside:
		x.hang()
	case ClosesEarly:
		x.cut()
	case OnlyComments:
		for end := time.Now().Add(MaxHang); time.Now().Before(end); {
			if x.wire {
				x.named(map[string]any{"type": "ping"})
			} else {
				x.write(": keep-alive\n\n")
			}
			if !x.pause(commentPause) {
				return true
			}
		}
	case FailsInside:
		if x.wire {
			x.named(map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": "Internal server error"}})
			return true
		}
		x.event(map[string]any{"error": map[string]any{
			"message": "The server had an error while processing your request.", "type": "server_error", "param": nil, "code": nil}})
	default:
		return false
	}
	return true
}

// deltas gives the chunks between the first and the last, as JSON.
func (x *exchange) deltas() []string {
	var out []string
	add := func(fields map[string]any) { out = append(out, encode(x.chunk(delta(fields, nil)))) }
	for _, p := range pieces(x.reply.Reasoning) {
		add(map[string]any{"reasoning_content": p})
	}
	if x.reply.Fault == HalfCharacter {
		out = append(out, x.halves()...)
	} else {
		for _, p := range pieces(x.reply.Text) {
			add(map[string]any{"content": p})
		}
	}
	for _, p := range pieces(x.reply.Refusal) {
		add(map[string]any{"refusal": p})
	}
	call := func(i int, fields map[string]any) {
		fields["index"] = i
		add(map[string]any{"tool_calls": []any{fields}})
	}
	for i, c := range x.reply.Calls {
		call(i, map[string]any{"id": c.id(i), "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}})
		for _, p := range pieces(c.Args) {
			call(i, map[string]any{"function": map[string]any{"arguments": p}})
		}
	}
	return out
}

func (c Call) id(i int) string {
	if c.ID != "" {
		return c.ID
	}
	return fmt.Sprintf("call_%d", i+1)
}

// halves gives two chunks that share one character of the text by bytes, which no
// JSON encoder would write.
func (x *exchange) halves() []string {
	text := x.reply.Text
	cut := strings.IndexFunc(text, func(r rune) bool { return r > 0x7f }) + 1
	const hole = "@@half@@"
	form := encode(x.chunk(delta(map[string]any{"content": hole}, nil)))
	return []string{strings.Replace(form, hole, text[:cut], 1), strings.Replace(form, hole, text[cut:], 1)}
}

func (x *exchange) finish() string {
	switch {
	case x.reply.Finish != "":
		return x.reply.Finish
	case len(x.reply.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

// counts gives the numbers that were scripted, or a quarter of what was sent.
func (x *exchange) counts() Usage {
	if x.reply.Usage != nil {
		return *x.reply.Usage
	}
	out := len(x.reply.Text) + len(x.reply.Reasoning) + len(x.reply.Refusal)
	for _, c := range x.reply.Calls {
		out += len(c.Name) + len(c.Args)
	}
	return Usage{Prompt: len(x.raw)/4 + 1, Completion: out/4 + 1, Reasoning: len(x.reply.Reasoning) / 4}
}

func (x *exchange) usage() map[string]any {
	u := x.counts()
	return map[string]any{
		"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning, "audio_tokens": 0},
	}
}

// whole answers in one object.
func (x *exchange) whole() {
	message := map[string]any{"role": "assistant", "content": x.reply.Text, "refusal": nil, "annotations": []any{}}
	if x.reply.Reasoning != "" {
		message["reasoning_content"] = x.reply.Reasoning
	}
	if x.reply.Refusal != "" {
		message["refusal"], message["content"] = x.reply.Refusal, nil
	}
	if len(x.reply.Calls) > 0 {
		var calls []any
		for i, c := range x.reply.Calls {
			calls = append(calls, map[string]any{"id": c.id(i), "type": "function",
				"function": map[string]any{"name": c.Name, "arguments": c.Args}})
		}
		message["tool_calls"] = calls
		if x.reply.Text == "" {
			message["content"] = nil
		}
	}
	reply := x.envelope("chat.completion")
	reply["choices"] = []any{map[string]any{"index": 0, "message": message, "logprobs": nil, "finish_reason": x.finish()}}
	if !x.reply.NoUsage {
		reply["usage"] = x.usage()
	}
	x.send(encode(reply))
}

// send answers with a body that is no stream.
func (x *exchange) send(text string) {
	x.w.Header().Set("Content-Type", "application/json")
	switch x.reply.Fault {
	case HalfCharacter:
		if i := strings.IndexFunc(text, func(r rune) bool { return r > 0x7f }); i >= 0 {
			_, size := utf8.DecodeRuneInString(text[i:])
			text = text[:i+1] + text[i+size:]
		}
	case HangsInside, ClosesEarly, OnlyComments, FailsInside:
		x.write(text[:len(text)/2])
		if x.reply.Fault == ClosesEarly || x.reply.Fault == FailsInside {
			x.cut()
			return
		}
		x.hang()
		return
	}
	_, _ = x.w.Write([]byte(text))
}
