package encode

import (
	"bytes"
	"crypto/sha256"
	"maps"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
)

// The place holders inside the two frames of a request. Log JSON escapes every
// control character, so no such byte can occur in it otherwise. A store uses 0x02
// for the strings that Cut finds.
const (
	MessagesHere = 0x01 // in Request.Frame: the array of messages, brackets included
	RequestHere  = 0x03 // in Request.Envelope: the request itself
)

// Request is the data of an llm_request, taken apart:
//
//	Envelope {"request":<0x03>,"window":{…}}   what changes with every beat
//	Frame    {"max_tokens":…,"messages":<0x01>,"system":…,"tools":[…]}   what seldom does
//	Messages one by one; Nodes[i] names the list up to and including message i
//
// Frame and Messages mostly are known to the store, so their Long is left to it.
type Request struct {
	Envelope Body
	Frame    Body
	Messages []Body
	Nodes    []event.Hash
}

// Node names a list of messages by the list before its last one (the zero Hash
// for none) and the hash of the last one's log JSON.
func Node(prev, message event.Hash) event.Hash {
	var both [64]byte
	copy(both[:32], prev[:])
	copy(both[32:], message[:])
	return sha256.Sum256(both[:])
}

// node is Node over plain arrays.
func node(prev, message [32]byte) [32]byte { return Node(prev, message) }

// Assemble gives the whole log JSON back.
func Assemble(envelope, frame []byte, messages [][]byte) ([]byte, error) {
	atRequest := bytes.IndexByte(envelope, RequestHere)
	atMessages := bytes.IndexByte(frame, MessagesHere)
	if atRequest < 0 || atMessages < 0 {
		return nil, kernel.Errorf("event", kernel.Corruption, "a request's frame has lost its place holder")
	}
	size := len(envelope) + len(frame) + len(messages)
	for _, m := range messages {
		size += len(m)
	}
	b := make([]byte, 0, size+2)
	b = append(b, envelope[:atRequest]...)
	b = append(b, frame[:atMessages]...)
	b = append(b, '[')
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m...)
	}
	b = append(b, ']')
	b = append(b, frame[atMessages+1:]...)
	return append(b, envelope[atRequest+1:]...), nil
}

// messagesOf gives data.request.messages of an llm_request. Any other shape is
// stored whole: the log refuses no request.
func messagesOf(d event.Draft) ([]any, bool) {
	if d.Kind != event.LLMRequest {
		return nil, false
	}
	request, _ := d.Data["request"].(map[string]any)
	messages, ok := request["messages"].([]any)
	return messages, ok
}

func request(data map[string]any, messages []any, redact Redactor) (*Request, Body, error) {
	r := &Request{Messages: make([]Body, len(messages)), Nodes: make([]event.Hash, len(messages))}
	parts := make([][]byte, len(messages))
	var prev event.Hash
	for i, m := range messages {
		body, err := message(m, redact)
		if err != nil {
			return nil, Body{}, kernel.Errorf("event", kernel.Validation, "request.messages[%d]: %s", i, kernel.Message(err))
		}
		parts[i], r.Messages[i] = body.Bytes, body
		if p, ok := m.(*logjson.Packed); ok && body.Hash == p.Hash {
			prev = p.Link(prev, node)
		} else {
			prev = Node(prev, body.Hash)
		}
		r.Nodes[i] = prev
	}
	frame, err := framed(data["request"].(map[string]any), "messages", MessagesHere, redact)
	if err != nil {
		return nil, Body{}, err
	}
	envelope, err := framed(data, "request", RequestHere, redact)
	if err != nil {
		return nil, Body{}, err
	}
	r.Frame, r.Envelope = Of(frame), Of(envelope)
	whole, err := Assemble(envelope, frame, parts)
	return r, Of(whole), err
}

// message encodes one message; a packed one is hashed already.
func message(m any, redact Redactor) (Body, error) {
	if p, ok := m.(*logjson.Packed); ok {
		b, changed, err := clean(p.JSON, redact)
		if err == nil && !changed {
			return Body{Bytes: p.JSON, Hash: p.Hash}, nil
		}
		return Of(b), err
	}
	b, err := piece(m, redact)
	return Of(b), err
}

// framed encodes m with one member replaced by a place holder. The redactor sees
// null in its place, since it is promised JSON.
func framed(m map[string]any, key string, holder byte, redact Redactor) ([]byte, error) {
	m = maps.Clone(m)
	m[key] = nil
	b, err := logjson.Marshal(m)
	if err != nil {
		return nil, err
	}
	out, changed, err := clean(b, redact)
	if err != nil {
		return nil, err
	}
	if changed {
		if m, err = logjson.Object(out); err != nil {
			return nil, err
		}
		if v, kept := m[key]; !kept || v != nil {
			return nil, kernel.Errorf("event", kernel.Validation, "redaction lost the member %q, so nothing is stored", key)
		}
	}
	m[key] = logjson.Raw{holder}
	return logjson.Marshal(m)
}
