package assemble

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ashlar/kernel/logjson"
)

// block is one content block as its pieces come.
type block struct {
	index  int64
	closed bool
	fields map[string]any
	texts  map[string]*strings.Builder // the fields that come in pieces
	input  *strings.Builder            // the JSON of a call's input; nil where none came
}

// find gives the newest block of an index, the newest of all where there is no index.
func (m *Messages) find(at any) *block {
	index, indexed := number(at)
	for i := len(m.blocks) - 1; i >= 0; i-- {
		if b := m.blocks[i]; !indexed || b.index == index {
			return b
		}
	}
	return nil
}

// begin begins a block.
func (m *Messages) begin(at any, fields map[string]any) error {
	if fields == nil {
		m.note("malformed_chunk")
		return nil
	}
	b := &block{fields: maps.Clone(fields), texts: map[string]*strings.Builder{}}
	b.index, _ = number(at)
	if at == nil {
		b.index = int64(len(m.blocks))
	}
	if raw, ok := fields["input"].(string); ok { // as the other wire has it
		b.input = &strings.Builder{}
		b.input.WriteString(raw)
	}
	m.blocks = append(m.blocks, b)
	for _, key := range []string{"text", "thinking"} {
		if piece, ok := fields[key].(string); ok {
			if err := m.text(b, key, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// textual knows the deltas of text: the field that each adds to, and the type of a
// block that had no beginning.
func textual(kind string) (field, typ string) {
	switch kind {
	case "text_delta":
		return "text", "text"
	case "thinking_delta":
		return "thinking", "thinking"
	case "signature_delta":
		return "signature", "thinking"
	}
	return "", ""
}

// piece adds to a block.
func (m *Messages) piece(at any, delta map[string]any) error {
	kind, _ := delta["type"].(string)
	b := m.find(at)
	if field, typ := textual(kind); field != "" {
		piece, _ := delta[field].(string)
		if b == nil || b.closed && b.fields["type"] != typ {
			if err := m.begin(at, map[string]any{"type": typ}); err != nil {
				return err
			}
			b = m.blocks[len(m.blocks)-1]
			m.note("block_without_start")
		}
		return m.text(b, field, piece)
	}
	if b == nil {
		m.note("malformed_chunk")
		m.malformed = m.malformed || kind == "input_json_delta"
		return nil
	}
	switch kind {
	case "input_json_delta":
		if b.input == nil {
			b.input = &strings.Builder{}
		}
		switch piece := delta["partial_json"].(type) {
		case nil:
		case string:
			b.input.WriteString(piece)
		default:
			if text, err := logjson.Marshal(piece); err == nil {
				b.input.Write(text)
			}
		}
	case "citations_delta":
		have, _ := b.fields["citations"].([]any)
		b.fields["citations"] = append(have, delta["citation"])
	default: // what is not known yet: text grows, of the rest the last stands
		for key, value := range delta {
			if piece, ok := value.(string); ok && key != "type" {
				b.text(key).WriteString(piece)
			} else if key != "type" && value != nil {
				b.fields[key] = value
			}
		}
	}
	return nil
}

func (b *block) text(key string) *strings.Builder {
	if b.texts[key] == nil {
		b.texts[key] = &strings.Builder{}
	}
	return b.texts[key]
}

// text joins a piece to a field of a block, and tells the delta.
func (m *Messages) text(b *block, key, piece string) error {
	b.text(key).WriteString(piece)
	if piece == "" || m.delta == nil || key == "signature" {
		return nil
	}
	if m.halves {
		if piece = m.whole(fmt.Sprint(b.index, key), piece); piece == "" {
			return nil
		}
	}
	return m.delta(key, piece)
}

// maxInputDepth is how deep a call's input may nest, so that a body that holds it still
// has its JSON.
const maxInputDepth = 100

// deeper reports whether a value nests deeper than so many levels.
func deeper(v any, levels int) bool {
	var inner []any
	switch x := v.(type) {
	case []any:
		inner = x
	case map[string]any:
		inner = slices.Collect(maps.Values(x))
	default:
		return false
	}
	return levels == 0 || slices.ContainsFunc(inner, func(e any) bool { return deeper(e, levels-1) })
}

// finished gives the block as the non-streamed form has it. Where a call's input does
// not parse, or nests too deep, input is empty and input_json is what came. A call that was cut before its
// input began has lost it: then input_json is "".
func (b *block) finished(cut bool) map[string]any {
	fields := maps.Clone(b.fields)
	for key, text := range b.texts {
		fields[key] = text.String()
	}
	typ, _ := fields["type"].(string)
	if !strings.HasSuffix(typ, "tool_use") {
		return fields
	}
	given, _ := fields["input"].(map[string]any)
	raw := ""
	if b.input != nil {
		raw = b.input.String()
	}
	switch {
	case strings.TrimSpace(raw) != "":
		input, err := logjson.Object([]byte(raw))
		if err != nil || deeper(input, maxInputDepth) {
			input, fields["input_json"] = map[string]any{}, raw
		}
		fields["input"] = input
	case len(given) > 0:
	default:
		fields["input"] = map[string]any{}
		if cut && !b.closed {
			fields["input_json"] = ""
		}
	}
	return fields
}
