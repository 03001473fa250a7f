package assemble

import (
	"bytes"
	"fmt"
	"maps"
)

// Messages puts one reply of the Messages API together. It is used by one goroutine.
type Messages struct {
	delta   func(kind, text string) error
	body    map[string]any // the envelope, without content and usage
	usage   map[string]any
	counted bool // the figures of the end came
	blocks  []*block
	fault   map[string]any
	done    bool
	intake
}

// NewMessages returns a Messages; delta gets each piece of text as it comes, kind
// "text" or "thinking". An error of delta ends the stream.
func NewMessages(delta func(kind, text string) error) *Messages {
	return &Messages{delta: delta, body: map[string]any{}, usage: map[string]any{}, intake: intake{held: map[string]string{}}}
}

// Done reports whether nothing more is to be expected.
func (m *Messages) Done() bool { return m.done || m.fault != nil }

// Ping reports whether an event only keeps the connection alive: it is no progress.
func (m *Messages) Ping(data []byte) bool {
	if len(data) > 256 || !bytes.Contains(data, []byte(`"ping"`)) {
		return false
	}
	event, _ := Object(data)
	return event["type"] == "ping"
}

// Add takes the data of one event. Its error is the delta's, or limit for a reply
// over MaxBytes. An event that is no JSON is noted and passed over; where it began as
// an object, the reply is Incomplete.
func (m *Messages) Add(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		m.done = true
		return nil
	}
	event, err := m.take(data)
	if event == nil {
		return err
	}
	return m.event(event)
}

// event applies one event; a type that is not known is passed over, as the provider
// asks of its clients.
func (m *Messages) event(event map[string]any) error {
	switch event["type"] {
	case "message_start":
		message, _ := event["message"].(map[string]any)
		return m.envelope(message)
	case "message": // some servers send the whole at once
		m.counted = true
		m.done = event["stop_reason"] != nil
		return m.envelope(event)
	case "content_block_start":
		fields, _ := event["content_block"].(map[string]any)
		return m.begin(event["index"], fields)
	case "content_block_delta":
		delta, _ := event["delta"].(map[string]any)
		return m.piece(event["index"], delta)
	case "content_block_stop":
		if b := m.find(event["index"]); b != nil {
			b.closed = true
		}
	case "message_delta":
		delta, _ := event["delta"].(map[string]any)
		m.merge(m.body, delta)
		m.merge(m.body, map[string]any{"context_management": event["context_management"]})
		if usage, ok := event["usage"].(map[string]any); ok {
			m.counted = m.counted || usage["output_tokens"] != nil
			m.merge(m.usage, usage)
		}
	case "message_stop":
		m.done = true
	case "ping":
		m.chunks--
	default:
		m.fail(event["error"])
	}
	if event["type"] == "error" {
		m.fail(event["error"])
		m.fail(event) // without an object of its own
	}
	return nil
}

// fail takes the provider's error, if it is one.
func (m *Messages) fail(fault any) {
	if fault == nil || m.fault != nil {
		return
	}
	switch e := fault.(type) {
	case map[string]any:
		m.fault = e
	default:
		m.fault = map[string]any{"message": fmt.Sprint(e)}
	}
}

func (m *Messages) merge(into, more map[string]any) {
	for key, value := range more {
		if value != nil {
			into[key] = value
		}
	}
}

// envelope takes what a message says of itself.
func (m *Messages) envelope(message map[string]any) error {
	for key, value := range message {
		switch {
		case key == "content" || key == "usage" || value == nil:
		case key == "id" && m.body["id"] != nil && m.body["id"] != value:
			m.note("id_changed") // the first one stays
		default:
			m.body[key] = value
		}
	}
	if usage, ok := message["usage"].(map[string]any); ok {
		m.merge(m.usage, usage)
	}
	content, _ := message["content"].([]any)
	for i, v := range content {
		if fields, ok := v.(map[string]any); ok {
			if err := m.begin(int64(i), fields); err != nil {
				return err
			}
		}
	}
	return nil
}

// Result gives the body as far as it came. cut reports that the stream ended by a
// fault of its transport.
func (m *Messages) Result(cut bool) Result { return m.mended(m.result(cut)) }

func (m *Messages) result(cut bool) Result {
	usage := m.usage
	if !m.counted {
		// What the beginning says of the output is the count of its first token.
		usage = maps.Clone(usage)
		delete(usage, "output_tokens")
	}
	if m.fault != nil {
		body := map[string]any{"type": "error", "error": m.fault}
		if len(usage) > 0 {
			body["usage"] = usage
		}
		m.note("stream_error")
		return Result{Body: body}
	}
	stop, _ := m.body["stop_reason"].(string)
	incomplete := ""
	switch {
	case m.chunks <= 0:
		incomplete = "empty"
	case stop == "" && (cut || !m.done):
		incomplete = "closed"
	case stop == "":
		incomplete = "no_finish"
	case m.malformed:
		incomplete = "malformed"
	}
	body := maps.Clone(m.body)
	body["type"], body["role"] = "message", "assistant"
	if stop == "" {
		body["stop_reason"] = nil
	}
	content := make([]any, len(m.blocks))
	for i, b := range m.blocks {
		content[i] = b.finished(i == len(m.blocks)-1 && (incomplete != "" || stop == "max_tokens"))
	}
	body["content"] = content
	if len(usage) > 0 {
		body["usage"] = usage
	}
	return Result{Body: body, Incomplete: incomplete}
}
