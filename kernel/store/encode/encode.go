package encode

import (
	"bytes"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
)

// Body is log JSON and its SHA-256. Long are the strings in it that are kept once
// wherever they occur, in order; Prepared bodies have them, Cut finds them.
type Body struct {
	Bytes []byte
	Hash  event.Hash
	Long  []Literal
}

// Of hashes bytes that are final.
func Of(b []byte) Body { return Body{Bytes: b, Hash: event.HashOf(b)} }

// Encoded is a draft ready to be stored. Request is nil unless Data is a request
// with a list of messages.
type Encoded struct {
	Kind    string
	Meta    Body
	Data    Body
	Request *Request
}

// Redactor takes secrets out of one piece of log JSON and gives valid JSON back;
// nil takes out nothing.
type Redactor func([]byte) []byte

// Draft encodes d for a kernel author. Errors are of kind validation: a draft
// that breaks event.Validate, a value without log JSON (the path says where,
// beginning with meta or data), or a piece that its redactor broke.
func Draft(d event.Draft, redact Redactor) (*Encoded, error) {
	if e, ok := d.Prepared.(*Encoded); ok {
		return e, nil
	}
	if err := event.Validate(d, true); err != nil {
		return nil, err
	}
	if redact != nil && string(redact([]byte(d.Kind))) != d.Kind {
		return nil, kernel.Errorf("event", kernel.Validation, "the event's kind holds a secret: a kind is a word of the code")
	}
	enc := &Encoded{Kind: d.Kind}
	meta, err := piece(d.Meta, redact)
	if err != nil {
		return nil, kernel.Errorf("event", kernel.Validation, "meta of %s: %s", d.Kind, kernel.Message(err))
	}
	enc.Meta = Of(meta)
	if messages, ok := messagesOf(d); ok {
		enc.Request, enc.Data, err = request(d.Data, messages, redact)
	} else {
		var data []byte
		data, err = piece(d.Data, redact)
		enc.Data = Of(data)
	}
	if err != nil {
		return nil, kernel.Errorf("event", kernel.Validation, "data of %s: %s", d.Kind, kernel.Message(err))
	}
	enc.Meta.Long = Cut(enc.Meta.Bytes)
	if enc.Request == nil {
		enc.Data.Long = Cut(enc.Data.Bytes)
	} else {
		enc.Request.Envelope.Long = Cut(enc.Request.Envelope.Bytes)
	}
	if !isObject(enc.Meta.Bytes) || !isObject(enc.Data.Bytes) {
		return nil, kernel.Errorf("event", kernel.Validation, "%s: the redactor left no object", d.Kind)
	}
	return enc, nil
}

func isObject(b []byte) bool { return len(b) > 1 && b[0] == '{' }

// piece encodes one value and redacts it.
func piece(v any, redact Redactor) ([]byte, error) {
	b, err := logjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	out, _, err := clean(b, redact)
	return out, err
}

// clean redacts one piece and reports whether that changed it.
func clean(b []byte, redact Redactor) ([]byte, bool, error) {
	if redact == nil {
		return b, false, nil
	}
	out := redact(b)
	if bytes.Equal(out, b) {
		return b, false, nil
	}
	v, err := logjson.Unmarshal(out)
	if err != nil {
		return nil, true, kernel.Errorf("event", kernel.Validation, "redaction left no JSON, so nothing is stored: %s", kernel.Message(err))
	}
	out, err = logjson.Marshal(v)
	return out, true, err
}
