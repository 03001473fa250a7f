package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// messagesWire says that an exchange speaks Anthropic's Messages API.
type messagesWire bool

// named sends one event with its name, as the provider does.
func (x *exchange) named(v map[string]any) {
	x.write(fmt.Sprintf("event: %s\ndata: %s\n\n", v["type"], encode(v)))
}

// message is a whole reply.
func (x *exchange) message() map[string]any {
	m := x.head()
	content := []any{}
	for _, b := range x.blocks() {
		content = append(content, b.full)
	}
	m["content"], m["stop_reason"], m["stop_sequence"] = content, x.stopReason(), nil
	if d := x.stopDetails(); d != nil {
		m["stop_details"] = d
	}
	if !x.reply.NoUsage {
		m["usage"] = x.messagesUsage()
	}
	return m
}

func (x *exchange) head() map[string]any {
	model, _ := x.request["model"].(string)
	if model == "" {
		model = Model
	}
	return map[string]any{
		"id": fmt.Sprintf("msg_llmtest%d", x.n), "type": "message", "role": "assistant", "model": model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil,
	}
}

// messageBlock is one content block: its empty form, the deltas that fill it, and what
// they make of it.
type messageBlock struct {
	empty  map[string]any
	deltas []map[string]any
	full   map[string]any
}

func (x *exchange) blocks() (list []messageBlock) {
	if x.reply.Reasoning != "" {
		b := messageBlock{empty: map[string]any{"type": "thinking", "thinking": "", "signature": ""}}
		for _, p := range pieces(x.reply.Reasoning) {
			b.deltas = append(b.deltas, map[string]any{"type": "thinking_delta", "thinking": p})
		}
		signature := fmt.Sprintf("sig+%d/==", x.n)
		b.deltas = append(b.deltas, map[string]any{"type": "signature_delta", "signature": signature})
		b.full = map[string]any{"type": "thinking", "thinking": x.reply.Reasoning, "signature": signature}
		list = append(list, b)
	}
	if text := x.reply.Text + x.reply.Refusal; text != "" {
		b := messageBlock{empty: map[string]any{"type": "text", "text": ""}}
		for _, p := range pieces(text) {
			b.deltas = append(b.deltas, map[string]any{"type": "text_delta", "text": p})
		}
		b.full = map[string]any{"type": "text", "text": text}
		list = append(list, b)
	}
	for i, c := range x.reply.Calls {
		id := c.id(i)
		b := messageBlock{empty: map[string]any{"type": "tool_use", "id": id, "name": c.Name, "input": map[string]any{}}}
		b.deltas = append(b.deltas, map[string]any{"type": "input_json_delta", "partial_json": ""})
		for _, p := range pieces(c.Args) {
			b.deltas = append(b.deltas, map[string]any{"type": "input_json_delta", "partial_json": p})
		}
		input := map[string]any{}
		_ = json.Unmarshal([]byte(c.Args), &input)
		b.full = map[string]any{"type": "tool_use", "id": id, "name": c.Name, "input": input}
		list = append(list, b)
	}
	return list
}

// messagesStream answers in events.
func (x *exchange) messagesStream() {
	x.begin()
	start := x.head()
	if !x.reply.NoUsage {
		usage := x.messagesUsage()
		usage["output_tokens"] = 1
		start["usage"] = usage
	}
	x.named(map[string]any{"type": "message_start", "message": start})
	x.named(map[string]any{"type": "ping"})
	n := 0
	for i, b := range x.blocks() {
		x.named(map[string]any{"type": "content_block_start", "index": i, "content_block": b.empty})
		for _, d := range b.deltas {
			if n == 1 && x.misbehave() {
				return
			}
			n++
			x.delta(i, d)
		}
		x.named(map[string]any{"type": "content_block_stop", "index": i})
	}
	if n < 2 && x.misbehave() || x.reply.Fault == WithoutTerminal {
		return
	}
	last := map[string]any{"stop_reason": x.stopReason(), "stop_sequence": nil}
	if d := x.stopDetails(); d != nil {
		last["stop_details"] = d
	}
	end := map[string]any{"type": "message_delta", "delta": last}
	if !x.reply.NoUsage {
		end["usage"] = map[string]any{"output_tokens": x.counts().Completion, "output_tokens_details": x.messagesUsage()["output_tokens_details"]}
	}
	x.named(end)
	x.named(map[string]any{"type": "message_stop"})
}

// delta sends a piece of a block; with HalfCharacter, a character in two events, each
// with half of its bytes.
func (x *exchange) delta(index int, d map[string]any) {
	event := map[string]any{"type": "content_block_delta", "index": index, "delta": d}
	text, _ := d["text"].(string)
	at := strings.IndexFunc(text, func(r rune) bool { return r > 0x7f }) + 1
	if x.reply.Fault != HalfCharacter || at == 0 {
		x.named(event)
		return
	}
	const hole = "@@half@@"
	d["text"] = hole
	form := encode(event)
	for _, half := range []string{text[:at], text[at:]} {
		x.write("event: content_block_delta\ndata: " + strings.Replace(form, hole, half, 1) + "\n\n")
	}
}

func (x *exchange) stopReason() string {
	if x.reply.Refusal != "" {
		return "refusal"
	}
	switch finish := x.finish(); finish {
	case "stop":
		return "end_turn"
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	default:
		return finish
	}
}

func (x *exchange) stopDetails() map[string]any {
	if x.stopReason() != "refusal" {
		return nil
	}
	return map[string]any{"type": "refusal", "category": "other", "explanation": x.reply.Refusal}
}

func (x *exchange) messagesUsage() map[string]any {
	u := x.counts()
	return map[string]any{
		"input_tokens": u.Prompt - u.Cached, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": 0,
		"output_tokens": u.Completion, "output_tokens_details": map[string]any{"thinking_tokens": u.Reasoning}, "service_tier": "standard",
	}
}

// messagesError gives an error that was scripted in OpenAI's form as Anthropic has it;
// anything else stays as it is.
func messagesError(status int, body string) string {
	var given struct {
		Error *struct {
			Message, Code string
		}
		Type string
	}
	if json.Unmarshal([]byte(body), &given) != nil || given.Error == nil || given.Type != "" {
		return body
	}
	types := map[int]string{
		401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
		429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
	}
	typ, message := types[status], given.Error.Message
	switch {
	case given.Error.Code == "insufficient_quota":
		typ = "billing_error"
	case given.Error.Code == "context_length_exceeded":
		message = "prompt is too long: 210000 tokens > 200000 maximum"
	}
	if typ == "" && status < 500 {
		typ = "invalid_request_error"
	} else if typ == "" {
		typ = "api_error"
	}
	return encode(map[string]any{"type": "error", "error": map[string]any{"type": typ, "message": message}, "request_id": "req_llmtest"})
}
