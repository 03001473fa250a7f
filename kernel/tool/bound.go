package tool

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// MaxModelBytes bounds one result as the model sees it. What is larger is shown as
// its head and its tail; the whole is kept by content hash.
const MaxModelBytes = 32 << 10

// bound makes a value what a model may see: redacted, valid text, at most
// MaxModelBytes. It notes in r what it had to do; a value that cannot be said makes
// the call a failed one.
func (b *Bus) bound(ctx context.Context, c Call, r *Result, value any) any {
	w := washer{redact: b.Redact}
	clean, err := w.wash(value, 0)
	if err == nil && w.repaired {
		r.Sanitised = true
		// Raw bytes are kept as they came, so not where they hold a secret.
		if raw, ok := value.(string); ok && !w.redacted {
			r.Raw = keep(ctx, c, []byte(raw))
		}
	}
	text, isText := clean.(string)
	if err == nil && !isText {
		var encoded []byte
		encoded, err = logjson.Marshal(clean)
		if err == nil && len(encoded) <= MaxModelBytes {
			return clean
		}
		text = string(encoded)
	}
	if err != nil {
		text = b.Redact(fmt.Sprintf("tool '%s' returned what cannot be said as JSON: %s", c.Name, kernel.Message(err)))
		*r = Result{Value: text, Kind: "failed"}
	}
	if len(text) <= MaxModelBytes {
		return text
	}
	r.Truncated = &Truncated{Bytes: len(text), Handle: keep(ctx, c, []byte(text))}
	return headAndTail(text, r.Truncated.Handle)
}

// keep keeps bytes by hash where the call is recorded; "" where they could not be.
func keep(ctx context.Context, c Call, body []byte) string {
	if c.Record == nil {
		return ""
	}
	hash, err := c.Record.Keep(context.WithoutCancel(ctx), body)
	if err != nil {
		return ""
	}
	return hash
}

// headAndTail cuts text in the middle, never inside a character.
func headAndTail(text, handle string) string {
	const room = 200 // for the line between
	half := (MaxModelBytes - room) / 2
	head, tail := text[:half], text[len(text)-half:]
	for !utf8.ValidString(head) && len(head) > 0 {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	cut := len(text) - len(head) - len(tail)
	line := fmt.Sprintf("\n[… %d of %d bytes left out", cut, len(text))
	if handle != "" {
		line += "; the whole is kept as " + handle
	}
	return head + line + " …]\n" + tail
}

// washer redacts every text of a value and makes it valid: bytes that are no UTF-8,
// and NUL, which providers refuse, become U+FFFD.
type washer struct {
	redact             func(string) string
	repaired, redacted bool
}

func (w *washer) wash(value any, depth int) (any, error) {
	if depth > logjson.MaxDepth {
		return nil, kernel.Errorf("tool", kernel.Validation, "it is nested deeper than %d, or holds itself", logjson.MaxDepth)
	}
	switch v := value.(type) {
	case string:
		return w.text(v), nil
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			c, err := w.wash(e, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = c
		}
		return list, nil
	case map[string]any:
		m := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // two keys may become one: the last stands
			c, err := w.wash(v[k], depth+1)
			if err != nil {
				return nil, err
			}
			m[w.text(k)] = c
		}
		return m, nil
	}
	return value, nil
}

func (w *washer) text(s string) string {
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
		w.repaired = true
	}
	out := w.redact(s)
	w.redacted = w.redacted || out != s
	return out
}
