package assemble

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// MaxBytes bounds the text of one assembled reply.
const MaxBytes = 64 << 20

// intake reads the events of one reply, whatever its wire: it bounds them, and knows
// what was odd about them.
type intake struct {
	malformed bool // a chunk was lost, and nobody knows what it said
	chunks    int
	size      int
	notes     []any
	halves    bool              // a chunk held half a character
	held      map[string]string // such a half at the end of a field, until its next piece
}

// take decodes the data of one event; nil for what is no JSON. Its error is limit.
func (a *intake) take(data []byte) (map[string]any, error) {
	if a.size += len(data); a.size > MaxBytes {
		return nil, kernel.Errorf("llm.stream", kernel.Limit, "the reply is longer than %d bytes", MaxBytes)
	}
	if text, ok := marked(data); ok {
		data, a.halves = text, true
	}
	chunk, repaired := Object(data)
	if chunk == nil {
		a.note("malformed_chunk")
		a.malformed = a.malformed || data[0] == '{'
		return nil, nil
	}
	if repaired {
		a.note("invalid_utf8")
	}
	a.chunks++
	return chunk, nil
}

func (a *intake) note(n string) {
	for _, have := range a.notes {
		if have == n {
			return
		}
	}
	a.notes = append(a.notes, n)
}

// mended gives a result with its halves joined, and with what was noted.
func (a *intake) mended(r Result) Result {
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
