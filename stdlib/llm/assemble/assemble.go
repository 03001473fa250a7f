package assemble

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// MaxBytes bounds the text of one assembled reply.
const MaxBytes = 64 << 20

// Assembler puts one reply together. It is used by one goroutine.
type Assembler struct {
	delta     func(kind, text string) error
	body      map[string]any // everything of the envelope but choices
	extra     map[string]any // of the choice, beside message and finish_reason
	message   map[string]any // fields of the message that are no text we join
	texts     map[string]*strings.Builder
	calls     []*call
	width     int   // how many pieces the delta at hand has
	function  *call // the old function_call
	finish    string
	fault     map[string]any // an error object that came inside the stream
	done      bool           // [DONE] came
	malformed bool           // a chunk was lost, and nobody knows what it said
	chunks    int
	size      int
	notes     []any
	halves    bool              // a chunk held half a character
	held      map[string]string // such a half at the end of a field, until its next piece
}

// New returns an Assembler; delta gets each piece of text as it comes, kind "text"
// or "thinking". An error of delta ends the stream.
func New(delta func(kind, text string) error) *Assembler {
	return &Assembler{
		delta: delta, body: map[string]any{}, extra: map[string]any{}, message: map[string]any{},
		texts: map[string]*strings.Builder{}, held: map[string]string{},
	}
}

// Done reports whether nothing more is to be expected.
func (a *Assembler) Done() bool { return a.done || a.fault != nil }

// Add takes the data of one event. Its error is the delta's, or limit for a reply
// over MaxBytes. A chunk that is no JSON is noted and passed over; where it began
// as an object, the reply is Incomplete.
func (a *Assembler) Add(data []byte) error {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	if string(data) == "[DONE]" {
		a.done = true
		return nil
	}
	if a.size += len(data); a.size > MaxBytes {
		return kernel.Errorf("llm.stream", kernel.Limit, "the reply is longer than %d bytes", MaxBytes)
	}
	if text, ok := marked(data); ok {
		data, a.halves = text, true
	}
	chunk, repaired := Object(data)
	if chunk == nil {
		a.note("malformed_chunk")
		a.malformed = a.malformed || data[0] == '{'
		return nil
	}
	if repaired {
		a.note("invalid_utf8")
	}
	a.chunks++
	return a.chunk(chunk)
}

// Object decodes a chunk or a whole reply, nil when it is no JSON object; repaired
// reports that text in it was not valid. A server that cuts text by
// bytes or by UTF-16 units leaves halves of characters at the ends of its pieces:
// each becomes U+FFFD.
func Object(data []byte) (chunk map[string]any, repaired bool) {
	if !utf8.Valid(data) {
		data, repaired = bytes.ToValidUTF8(data, []byte("\uFFFD")), true
	}
	if chunk, err := logjson.Object(data); err == nil {
		return chunk, repaired
	}
	// The standard decoder puts U+FFFD for a lone surrogate, which log JSON refuses.
	// It also takes the last of two equal keys, and numbers that nothing can hold.
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var loose map[string]any
	if decoder.Decode(&loose) != nil || decoder.More() {
		return nil, false
	}
	strict, err := logjson.Marshal(finite(loose))
	if err != nil {
		return nil, false
	}
	chunk, err = logjson.Object(strict)
	if err != nil {
		return nil, false
	}
	halves := bytes.Count(strict, []byte("\uFFFD")) > bytes.Count(data, []byte("\uFFFD"))+bytes.Count(bytes.ToLower(data), []byte(`\ufffd`))
	return chunk, repaired || halves
}

// finite replaces numbers beyond float64 by null.
func finite(v any) any {
	switch x := v.(type) {
	case json.Number:
		if _, err := x.Float64(); err != nil {
			return nil
		}
	case []any:
		for i, e := range x {
			x[i] = finite(e)
		}
	case map[string]any:
		for k, e := range x {
			x[k] = finite(e)
		}
	}
	return v
}

func (a *Assembler) note(n string) {
	for _, have := range a.notes {
		if have == n {
			return
		}
	}
	a.notes = append(a.notes, n)
}

// chunk applies one chunk.
func (a *Assembler) chunk(chunk map[string]any) error {
	if chunk["object"] == "error" && chunk["error"] == nil {
		fault := map[string]any{}
		for _, key := range []string{"message", "type", "param", "code"} {
			if chunk[key] != nil {
				fault[key] = chunk[key]
			}
		}
		a.fail(fault)
		return nil
	}
	if a.fail(chunk["error"]) {
		return nil
	}
	for key, value := range chunk {
		switch {
		case key == "choices", value == nil:
		case key == "id" && a.body["id"] != nil && a.body["id"] != value:
			a.note("id_changed") // the first one stays
		default:
			a.body[key] = value
		}
	}
	choices, _ := chunk["choices"].([]any)
	for _, c := range choices {
		choice, ok := c.(map[string]any)
		if index, _ := number(choice["index"]); !ok || index > 0 {
			continue // one reply was asked for
		}
		if a.fail(choice["error"]) {
			return nil
		}
		if err := a.choice(choice); err != nil {
			return err
		}
	}
	return nil
}

// fail takes the provider's error, if it is one.
func (a *Assembler) fail(fault any) bool {
	switch e := fault.(type) {
	case nil:
		return false
	case map[string]any:
		a.fault = e
	case string:
		a.fault = map[string]any{"message": e}
	default:
		a.fault = map[string]any{"message": fmt.Sprint(e)}
	}
	return true
}

// Result is what came of a stream.
type Result struct {
	Body       map[string]any // the provider's non-streamed form, or {"error": …}
	Incomplete string         // how it ended when it is not whole: "closed", "no_finish", "empty", "malformed"; "" when finished
	Notes      []any          // what was odd: id_changed, malformed_chunk, invalid_utf8, synthetic_id, stream_error
}

// Result gives the body as far as it came. cut reports that the stream ended by a
// fault of its transport.
func (a *Assembler) Result(cut bool) Result {
	r := a.result(cut)
	if a.halves {
		body, lone := mended(r.Body)
		r.Body, _ = body.(map[string]any)
		if lone {
			a.note("invalid_utf8")
		}
	}
	r.Notes = a.notes
	return r
}

func (a *Assembler) result(cut bool) Result {
	if a.fault != nil {
		body := map[string]any{"error": a.fault}
		if u, ok := a.body["usage"]; ok {
			body["usage"] = u
		}
		a.note("stream_error")
		return Result{Body: body}
	}
	incomplete := ""
	switch {
	case a.chunks == 0:
		incomplete = "empty"
	case a.finish == "" && (cut || !a.done):
		incomplete = "closed"
	case a.finish == "":
		incomplete = "no_finish"
	case a.malformed:
		incomplete = "malformed"
	}
	choice := maps.Clone(a.extra)
	choice["index"] = int64(0)
	choice["message"] = a.finishedMessage(incomplete != "" || a.finish == "length")
	choice["finish_reason"] = nil
	if a.finish != "" {
		choice["finish_reason"] = a.finish
	}
	body := maps.Clone(a.body)
	body["object"] = "chat.completion"
	body["choices"] = []any{choice}
	return Result{Body: body, Incomplete: incomplete}
}
