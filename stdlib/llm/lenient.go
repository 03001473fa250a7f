package llm

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"ashlar/kernel/logjson"
	"ashlar/vm"
)

// lenient reads what is nearly JSON, in one pass: comments, commas too many or too few,
// other quotes or none, the literals of Python, and an end that never came. A library
// that does so took 28 s for 64 KB of open brackets, which a model may well write; this
// is linear. What it cannot read it refuses: it never guesses a member's name.
type lenient struct {
	text string
	at   int
	bad  bool // a member without a colon, or nested too deep
}

// repair reads an object or a list at the start of a text; ok is false where it cannot.
func repair(text string) (v any, ok bool) {
	l := &lenient{text: text}
	v = l.value(0)
	return v, !l.bad
}

func (l *lenient) peek() byte {
	if l.at < len(l.text) {
		return l.text[l.at]
	}
	return 0
}

// space skips white space, comments and, where commas says so, commas.
func (l *lenient) space(commas bool) {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.HasPrefix(rest, "//") || rest[0] == '#':
			l.skipTo("\n")
		case strings.HasPrefix(rest, "/*"):
			l.at += 2
			l.skipTo("*/")
		case commas && rest[0] == ',':
			l.at++
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) && r != '\ufeff' {
				return
			}
			l.at += n
		}
	}
}

func (l *lenient) skipTo(end string) {
	if i := strings.Index(l.text[l.at:], end); i >= 0 {
		l.at += i + len(end)
	} else {
		l.at = len(l.text)
	}
}

func (l *lenient) value(depth int) any {
	if depth >= vm.MaxDepth {
		l.bad = true
		return nil
	}
	l.space(false)
	switch c := l.peek(); c {
	case '{':
		return l.object(depth)
	case '[':
		return l.list(depth)
	case '"', '\'', '`':
		return l.quoted(c)
	}
	return l.word(",]}\n")
}

func (l *lenient) object(depth int) any {
	out := map[string]any{}
	l.at++
	for !l.bad {
		l.space(true)
		switch l.peek() {
		case 0:
			return out
		case '}':
			l.at++
			return out
		case ']': // the object's own end is missing
			return out
		}
		name := l.name()
		l.space(false)
		if l.peek() != ':' {
			// Cut inside the name, there is no member; else it is none of ours.
			l.bad = l.at < len(l.text)
			return out
		}
		l.at++
		out[name] = l.value(depth + 1)
	}
	return out
}

func (l *lenient) list(depth int) any {
	out := []any{}
	l.at++
	for !l.bad {
		l.space(true)
		switch l.peek() {
		case 0:
			return out
		case ']':
			l.at++
			return out
		case '}': // the list's own end is missing
			return out
		}
		before := l.at
		out = append(out, l.value(depth+1))
		if l.at == before {
			l.at++ // a sign that stands for nothing
		}
	}
	return out
}

func (l *lenient) name() string {
	switch c := l.peek(); c {
	case '"', '\'', '`':
		return l.quoted(c)
	}
	from := l.at
	for l.at < len(l.text) && !strings.ContainsRune(":,{}[]\n", rune(l.text[l.at])) {
		l.at++
	}
	return strings.TrimSpace(l.text[from:l.at])
}

// word reads what stands without quotes up to one of the ends.
func (l *lenient) word(ends string) any {
	from := l.at
	for l.at < len(l.text) && !strings.ContainsRune(ends, rune(l.text[l.at])) && !strings.HasPrefix(l.text[l.at:], "//") {
		l.at++
	}
	text := strings.TrimSpace(l.text[from:l.at])
	switch text {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	case "", "null", "None", "nil", "undefined", "NaN", "NULL":
		return nil
	}
	if v, err := logjson.Unmarshal([]byte(text)); err == nil {
		return v
	}
	return text
}

// quoted reads a string. A quote that stands inside of it, where nothing could follow
// a string, is a part of it.
func (l *lenient) quoted(quote byte) string {
	var b strings.Builder
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == quote && l.ends(quote):
			l.at++
			return b.String()
		case c == '\\' && l.at+1 < len(l.text):
			l.escape(&b)
		case c == '\\': // cut inside an escape
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// ends reports whether the quote at hand ends its string.
func (l *lenient) ends(quote byte) bool {
	for i := l.at + 1; i < len(l.text); i++ {
		switch c := l.text[i]; c {
		case ' ', '\t', '\r':
		case ',', ':', ']', '}', '\n', '/', '#', quote:
			return true
		default:
			return false
		}
	}
	return true
}

// escape reads the escape at hand and leaves its last byte to the caller's step.
func (l *lenient) escape(b *strings.Builder) {
	l.at++
	switch c := l.text[l.at]; c {
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'u':
		r, ok := l.hex(l.at + 1)
		if !ok {
			b.WriteByte('u')
			return
		}
		l.at += 4
		if utf16.IsSurrogate(r) {
			low, paired := rune(0), false
			if strings.HasPrefix(l.text[l.at+1:], `\u`) {
				low, paired = l.hex(l.at + 3)
			}
			if r = utf16.DecodeRune(r, low); paired && r != unicode.ReplacementChar {
				l.at += 6
			}
		}
		b.WriteRune(r)
	default:
		b.WriteByte(c)
	}
}

// hex reads four digits.
func (l *lenient) hex(from int) (r rune, ok bool) {
	if from+4 > len(l.text) {
		return 0, false
	}
	for _, c := range []byte(l.text[from : from+4]) {
		i := strings.IndexByte("0123456789abcdef", c|0x20)
		if i < 0 {
			return 0, false
		}
		r = r<<4 | rune(i)
	}
	return r, true
}
