package llm

import (
	"context"
	"strings"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/vm"
)

// Bounds of extract_json.
const (
	MaxExtractBytes = 4 << 20
	maxStarts       = 64 // places where an object or a list may begin
)

// extraction declares what finds JSON in a reply's text.
func extraction() []vm.Function {
	text := []vm.Param{{Name: "text", Type: vm.String}}
	return []vm.Function{
		{
			Name: "extract_json", Doc: "The JSON that a model wrote among other text: out of fences, found by its brackets, repaired where it is nearly right; raises where there is none.",
			Params: text, Results: []vm.Param{{Name: "value", Type: vm.Any}}, Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				v, err := ExtractJSON(c.Str(0))
				return []vm.Value{v}, err
			},
		},
		{
			Name: "strip_fences", Doc: "What stands in the first fenced block of a text, or the text without white space around it.",
			Params: text, Results: text, Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				return []vm.Value{StripFences(c.Str(0))}, nil
			},
		},
	}
}

// StripFences gives what stands inside the first fenced block of a text, and the text
// without white space around it where there is none. A fence that is never closed ends
// with the text.
func StripFences(text string) string {
	body, _ := fenced(text)
	return strings.TrimSpace(body)
}

// fenced cuts the first block between ``` or ~~~ out; ok is false without one.
func fenced(text string) (body string, ok bool) {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		fence := fenceOf(line)
		if fence == "" {
			continue
		}
		for j := i + 1; j < len(lines); j++ {
			end := strings.TrimSpace(lines[j])
			if strings.HasPrefix(end, fence) && strings.Trim(end, fence[:1]) == "" {
				return strings.Join(lines[i+1:j], ""), true
			}
		}
		return strings.Join(lines[i+1:], ""), true
	}
	return text, false
}

// fenceOf is the mark that a line opens a block with, "" for any other line. An info
// string holds no mark, so a line of code in backticks opens none.
func fenceOf(line string) string {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"`", "~"} {
		rest := strings.TrimLeft(line, mark)
		if n := len(line) - len(rest); n >= 3 && !strings.Contains(rest, mark) {
			return line[:n]
		}
	}
	return ""
}

// ExtractJSON finds the JSON that a model wrote among other text: a whole document, or
// else the first object or list, and where none parses the first that can be repaired.
// What is no object and no list is JSON only where it is all of the text. Kinds:
// validation where there is none, limit for a text that is too long.
func ExtractJSON(text string) (any, error) {
	const op = "llm.extract_json"
	if len(text) > MaxExtractBytes {
		return nil, kernel.Errorf(op, kernel.Limit, "the text is longer than %d bytes", MaxExtractBytes)
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	body, isFenced := fenced(text)
	places := []string{strings.TrimSpace(body)}
	if isFenced {
		places = append(places, strings.TrimSpace(text))
	}
	for _, place := range places {
		if v, err := logjson.Unmarshal([]byte(place)); err == nil {
			return v, nil
		}
	}
	for _, place := range places {
		for _, candidate := range candidates(place) {
			if v, err := logjson.Unmarshal([]byte(candidate)); err == nil {
				return v, nil
			}
		}
	}
	for _, place := range places {
		for _, candidate := range candidates(place) {
			if v, ok := repair(candidate); ok {
				return v, nil
			}
		}
	}
	return nil, kernel.Errorf(op, kernel.Validation, "no JSON is in the text, and none that could be repaired")
}

// candidates lists the parts of a text that begin like an object or a list, each to
// where its brackets close, or to the end. One inside another is not listed.
func candidates(text string) []string {
	var out []string
	for at := 0; at < len(text) && len(out) < maxStarts; {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		end := closing(text[at:])
		if end < 0 {
			out = append(out, text[at:])
			at++ // a stray bracket does not hide what comes after
			continue
		}
		out = append(out, text[at:at+end])
		at += end
	}
	return out
}

// closing is where the bracket that a text begins with is closed, -1 where it is not.
// Brackets inside strings do not count.
func closing(text string) int {
	depth, inside, escaped := 0, false, false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case inside:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
