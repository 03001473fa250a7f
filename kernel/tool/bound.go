package tool

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"ashlar/kernel/logjson"
)

// MaxModelBytes bounds one result as the model sees it. What is larger is shown as
// its head and its tail; the whole is kept by content hash.
const MaxModelBytes = 32 << 10

// bound makes a value what a model may see: redacted, valid text, at most
// MaxModelBytes. It notes in r what it had to do.
func (b *Bus) bound(ctx context.Context, c Call, r *Result, value any) any {
	clean, changed := b.clean(value)
	if changed {
		r.Sanitised = true
		if raw, ok := value.(string); ok {
			r.Raw = keep(ctx, c, []byte(raw))
		}
	}
	text, ok := clean.(string)
	if !ok {
		encoded, err := logjson.Marshal(clean)
		if err != nil {
			r.OK, r.Kind = false, "failed"
			return fmt.Sprintf("tool '%s' returned what has no JSON: %v", c.Name, err)
		}
		if len(encoded) <= MaxModelBytes {
			return clean
		}
		text = string(encoded)
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

// clean redacts every text of a value and makes it valid: bytes that are no UTF-8,
// and NUL, which providers refuse, become U+FFFD. changed reports the latter.
func (b *Bus) clean(value any) (out any, changed bool) {
	switch v := value.(type) {
	case string:
		text := v
		if !utf8.ValidString(text) || strings.IndexByte(text, 0) >= 0 {
			text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
			changed = true
		}
		return b.Redact(text), changed
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			c, ch := b.clean(e)
			list[i], changed = c, changed || ch
		}
		return list, changed
	case map[string]any:
		m := make(map[string]any, len(v))
		for k, e := range v {
			key, ch := b.clean(k)
			c, ch2 := b.clean(e)
			m[key.(string)], changed = c, changed || ch || ch2
		}
		return m, changed
	}
	return value, false
}
