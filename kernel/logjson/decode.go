package logjson

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Unmarshal reads one JSON text: an integer that fits becomes int64, a longer
// one json.Number, every other number float64. It takes any spelling of JSON,
// but refuses what log JSON cannot say: invalid UTF-8, a lone surrogate, a
// number beyond float64, a key that occurs twice in one object, nesting over
// MaxDepth, and anything after the value. Errors are of kind validation and
// name the path and the byte.
func Unmarshal(b []byte) (any, error) {
	// One copy: every string without escapes is then a slice of it.
	d := decoder{src: string(b)}
	d.space()
	v, f := d.value(0)
	if f == nil {
		d.space()
		if d.pos != len(d.src) {
			f = d.faultf("data after the value")
		}
	}
	if f != nil {
		return nil, f.err("logjson.unmarshal")
	}
	return v, nil
}

// Object reads one JSON text that must be an object.
func Object(b []byte) (map[string]any, error) {
	v, err := Unmarshal(b)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, faultf("not an object").err("logjson.unmarshal")
	}
	return m, nil
}

type decoder struct {
	src string
	pos int
}

func (d *decoder) faultf(format string, args ...any) *fault {
	f := faultf(format, args...)
	f.at = d.pos
	return f
}

func (d *decoder) space() {
	for d.pos < len(d.src) {
		switch d.src[d.pos] {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return
		}
	}
}

// peek gives the byte at the position, 0 at the end: no JSON token begins with it.
func (d *decoder) peek() byte {
	if d.pos < len(d.src) {
		return d.src[d.pos]
	}
	return 0
}

func (d *decoder) value(depth int) (any, *fault) {
	switch c := d.peek(); {
	case c == '{':
		return d.object(depth)
	case c == '[':
		return d.array(depth)
	case c == '"':
		return d.str()
	case c == '-' || c >= '0' && c <= '9':
		return d.number()
	case c == 'n':
		return nil, d.word("null")
	case c == 't':
		return true, d.word("true")
	case c == 'f':
		return false, d.word("false")
	case d.pos >= len(d.src):
		return nil, d.faultf("the text ends where a value should begin")
	default:
		return nil, d.faultf("no value begins with %q", c)
	}
}

func (d *decoder) word(w string) *fault {
	if !strings.HasPrefix(d.src[d.pos:], w) {
		return d.faultf("not %q", w)
	}
	d.pos += len(w)
	return nil
}

func (d *decoder) object(depth int) (any, *fault) {
	if depth == MaxDepth {
		return nil, tooDeep()
	}
	d.pos++
	m := map[string]any{}
	d.space()
	if d.peek() == '}' {
		d.pos++
		return m, nil
	}
	for {
		d.space()
		if d.peek() != '"' {
			return nil, d.faultf("an object's key must be a string")
		}
		k, f := d.str()
		if f != nil {
			return nil, f
		}
		if _, twice := m[k]; twice {
			return nil, d.faultf("the key occurs twice").inKey(k)
		}
		d.space()
		if d.peek() != ':' {
			return nil, d.faultf("no ':' after the key").inKey(k)
		}
		d.pos++
		d.space()
		v, f := d.value(depth + 1)
		if f != nil {
			return nil, f.inKey(k)
		}
		m[k] = v
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			return m, nil
		default:
			return nil, d.faultf("no ',' or '}' after a member")
		}
	}
}

func (d *decoder) array(depth int) (any, *fault) {
	if depth == MaxDepth {
		return nil, tooDeep()
	}
	d.pos++
	a := []any{}
	d.space()
	if d.peek() == ']' {
		d.pos++
		return a, nil
	}
	for {
		d.space()
		v, f := d.value(depth + 1)
		if f != nil {
			return nil, f.inIndex(len(a))
		}
		a = append(a, v)
		d.space()
		switch d.peek() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			return a, nil
		default:
			return nil, d.faultf("no ',' or ']' after an element")
		}
	}
}

// str reads a string that begins at the position.
func (d *decoder) str() (string, *fault) {
	d.pos++
	start := d.pos
	for d.pos < len(d.src) {
		switch c := d.src[d.pos]; {
		case plain[c]:
			d.pos++
		case c == '"':
			s := d.src[start:d.pos]
			d.pos++
			return s, nil
		case c == '\\':
			return d.escaped(start)
		default:
			if f := d.rune(); f != nil {
				return "", f
			}
		}
	}
	return "", d.faultf("the text ends inside a string")
}

// escaped goes on with a string in which an escape was met.
func (d *decoder) escaped(start int) (string, *fault) {
	b := append(make([]byte, 0, d.pos-start+64), d.src[start:d.pos]...)
	for d.pos < len(d.src) {
		from := d.pos
		switch c := d.src[d.pos]; {
		case plain[c]:
			d.pos++
			b = append(b, c)
		case c == '"':
			d.pos++
			return string(b), nil
		case c == '\\':
			r, f := d.escape()
			if f != nil {
				return "", f
			}
			b = utf8.AppendRune(b, r)
		default:
			if f := d.rune(); f != nil {
				return "", f
			}
			b = append(b, d.src[from:d.pos]...)
		}
	}
	return "", d.faultf("the text ends inside a string")
}

// rune passes over one character beyond ASCII; a control character or broken
// UTF-8 is a fault.
func (d *decoder) rune() *fault {
	if d.src[d.pos] < 0x20 {
		return d.faultf("a control character in a string must be escaped")
	}
	r, n := utf8.DecodeRuneInString(d.src[d.pos:])
	if r == utf8.RuneError && n == 1 {
		return d.faultf("invalid UTF-8")
	}
	d.pos += n
	return nil
}

var escapes = map[byte]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func (d *decoder) escape() (rune, *fault) {
	d.pos++
	c := d.peek()
	if r, ok := escapes[c]; ok {
		d.pos++
		return r, nil
	}
	if c != 'u' {
		return 0, d.faultf("no escape is written with %q", c)
	}
	r, f := d.unit()
	if f != nil || !utf16.IsSurrogate(r) {
		return r, f
	}
	if strings.HasPrefix(d.src[d.pos:], `\u`) {
		d.pos++
		low, f := d.unit()
		if f != nil {
			return 0, f
		}
		if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
			return both, nil
		}
	}
	return 0, d.faultf("a lone surrogate is no character")
}

// unit reads uXXXX.
func (d *decoder) unit() (rune, *fault) {
	d.pos++
	if d.pos+4 > len(d.src) {
		return 0, d.faultf("the text ends inside an escape")
	}
	u, err := strconv.ParseUint(d.src[d.pos:d.pos+4], 16, 16)
	if err != nil {
		return 0, d.faultf("an escape needs four hexadecimal digits")
	}
	d.pos += 4
	return rune(u), nil
}

func (d *decoder) digits() bool {
	from := d.pos
	for c := d.peek(); c >= '0' && c <= '9'; c = d.peek() {
		d.pos++
	}
	return d.pos > from
}

// number reads a number by JSON's grammar, which is narrower than strconv's.
func (d *decoder) number() (any, *fault) {
	start := d.pos
	if d.peek() == '-' {
		d.pos++
	}
	zero := d.peek() == '0'
	from := d.pos
	if !d.digits() {
		return nil, d.faultf("a number needs digits")
	}
	if zero && d.pos-from > 1 {
		return nil, d.faultf("a number must not begin with 0")
	}
	integer := true
	if d.peek() == '.' {
		integer = false
		d.pos++
		if !d.digits() {
			return nil, d.faultf("a fraction needs digits")
		}
	}
	if c := d.peek(); c == 'e' || c == 'E' {
		integer = false
		d.pos++
		if c := d.peek(); c == '+' || c == '-' {
			d.pos++
		}
		if !d.digits() {
			return nil, d.faultf("an exponent needs digits")
		}
	}
	text := d.src[start:d.pos]
	if integer {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
		return json.Number(text), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, d.faultf("the number is beyond float64")
	}
	return f, nil
}
