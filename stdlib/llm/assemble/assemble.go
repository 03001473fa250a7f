package assemble

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
)

// Assembler puts one reply together. It is used by one goroutine.
type Assembler struct {
	delta    func(kind, text string) error
	body     map[string]any // everything of the envelope but choices
	extra    map[string]any // of the choice, beside message and finish_reason
	message  map[string]any // fields of the message that are no text we join
	texts    map[string]*strings.Builder
	calls    []*call
	width    int   // how many pieces the delta at hand has
	function *call // the old function_call
	finish   string
	fault    map[string]any // an error object that came inside the stream
	done     bool           // [DONE] came
	intake
}

// New returns an Assembler; delta gets each piece of text as it comes, kind "text"
// or "thinking". An error of delta ends the stream.
func New(delta func(kind, text string) error) *Assembler {
	return &Assembler{
		delta: delta, body: map[string]any{}, extra: map[string]any{}, message: map[string]any{},
		texts: map[string]*strings.Builder{}, intake: intake{held: map[string]string{}},
	}
}

// Done reports whether nothing more is to be expected.
func (a *Assembler) Done() bool { return a.done || a.fault != nil }

// Ping reports whether an event only keeps the connection alive. This wire has
// comments for that.
func (a *Assembler) Ping([]byte) bool { return false }

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
	chunk, err := a.take(data)
	if chunk == nil {
		return err
	}
	return a.chunk(chunk)
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
	return a.mended(a.result(cut))
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
