package assemble

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A server that cuts text by UTF-16 units sends the two halves of a character in two
// deltas, each an escape that alone is no character. While the reply is put together
// such a half stands as a character of the end of plane 16, which is for private use:
// its unit plus an offset.
const (
	firstHalf = 0x10F800
	lastHalf  = 0x10FFFF
	offset    = firstHalf - 0xD800
)

// marked gives a chunk in which each half that stands alone is a character; ok is
// false where there is none, or where the text itself holds such characters.
func marked(data []byte) (out []byte, ok bool) {
	if !bytes.Contains(data, []byte(`\u`)) || privates(data) {
		return nil, false
	}
	for i := 0; i < len(data); {
		if data[i] != '\\' || i+1 >= len(data) {
			out = append(out, data[i])
			i++
			continue
		}
		unit, isUnit := unitAt(data, i)
		if !isUnit {
			out = append(out, data[i], data[i+1])
			i += 2
			continue
		}
		low, _ := unitAt(data, i+6)
		switch {
		case utf16.DecodeRune(unit, low) >= firstHalf && utf16.DecodeRune(unit, low) <= lastHalf:
			return nil, false
		case utf16.DecodeRune(unit, low) != utf8.RuneError:
			out = append(out, data[i:i+12]...)
			i += 12
			continue
		case utf16.IsSurrogate(unit):
			out, ok = utf8.AppendRune(out, unit+offset), true
		default:
			out = append(out, data[i:i+6]...)
		}
		i += 6
	}
	return out, ok
}

// unitAt reads \uXXXX.
func unitAt(data []byte, i int) (rune, bool) {
	if i+6 > len(data) || data[i] != '\\' || data[i+1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(data[i+2:i+6]), 16, 16)
	return rune(u), err == nil
}

func privates(data []byte) bool {
	for i := bytes.Index(data, []byte("\xF4\x8F")); i >= 0 && i+2 < len(data); {
		if data[i+2] >= 0xA0 {
			return true
		}
		next := bytes.Index(data[i+2:], []byte("\xF4\x8F"))
		if next < 0 {
			break
		}
		i += 2 + next
	}
	return false
}

func isHalf(r rune) bool { return r >= firstHalf && r <= lastHalf }

func isHigh(r rune) bool { return r >= firstHalf && r < firstHalf+0x400 }

// joined makes characters of the halves in a text; one that stays alone is U+FFFD,
// and lone says that there was one.
func joined(s string) (out string, lone bool) {
	if strings.IndexFunc(s, isHalf) < 0 {
		return s, false
	}
	var b strings.Builder
	runes := []rune(s)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		if isHalf(r) {
			half := r - offset
			r = utf8.RuneError
			if i+1 < len(runes) && isHalf(runes[i+1]) {
				if both := utf16.DecodeRune(half, runes[i+1]-offset); both != utf8.RuneError {
					r = both
					i++
				}
			}
			lone = lone || r == utf8.RuneError
		}
		b.WriteRune(r)
	}
	return b.String(), lone
}

// mended gives a value with its halves joined.
func mended(v any) (out any, lone bool) {
	switch x := v.(type) {
	case string:
		return joined(x)
	case []any:
		list := make([]any, len(x))
		for i, e := range x {
			one, bad := mended(e)
			list[i], lone = one, lone || bad
		}
		return list, lone
	case map[string]any:
		m := make(map[string]any, len(x))
		for k, e := range x {
			key, badKey := joined(k)
			one, bad := mended(e)
			m[key], lone = one, lone || bad || badKey
		}
		return m, lone
	}
	return v, false
}

// whole gives what of a piece may be told already: a half at its end waits for the
// next piece of its field.
func (a *intake) whole(key, piece string) string {
	piece = a.held[key] + piece
	delete(a.held, key)
	if r, n := utf8.DecodeLastRuneInString(piece); isHigh(r) {
		a.held[key] = piece[len(piece)-n:]
		piece = piece[:len(piece)-n]
	}
	piece, _ = joined(piece)
	return piece
}
