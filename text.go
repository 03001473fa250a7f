package ashlar

import (
	"strings"
	"unicode"
)

// valid gives text as it can be recorded: bytes that are no UTF-8 become U+FFFD.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// validValue does so with every text of a value.
func validValue(v any) any {
	switch x := v.(type) {
	case string:
		return valid(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = validValue(e)
		}
		return out
	case map[string]any:
		return validMap(x)
	}
	return v
}

func validMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[valid(k)] = validValue(v)
	}
	return out
}

// Printable makes text of a script, a model or a tool fit for a terminal: control
// characters but tab and newline, which a terminal would obey, become U+FFFD.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
