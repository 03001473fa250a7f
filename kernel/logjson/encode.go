package logjson

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting of arrays and objects, in both directions.
const MaxDepth = 128

// Raw is log JSON that was encoded before; Append copies it unread. It is for
// pieces that are encoded once and used several times, never for bytes that came
// from outside.
type Raw []byte

// Marshal gives the log JSON of v. The error is of kind validation and names
// the path of the value that has no log JSON.
func Marshal(v any) ([]byte, error) {
	scratch := scratches.Get().(*[]byte)
	b, err := Append((*scratch)[:0], v)
	var out []byte
	if err == nil {
		out = append(make([]byte, 0, len(b)), b...)
	}
	if cap(b) <= maxScratch {
		*scratch = b
		scratches.Put(scratch)
	}
	return out, err
}

// scratches are what Marshal encodes into, so that its result is as large as it
// is long and growing costs nothing; larger ones than maxScratch are not kept.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

const maxScratch = 2 << 20

// Append appends the log JSON of v to dst. On an error dst is returned at its
// old length.
func Append(dst []byte, v any) ([]byte, error) {
	e := encoders.Get().(*encoder)
	e.buf = dst
	f := e.value(v, 0)
	out := e.buf
	e.buf = nil
	clear(e.keys[:cap(e.keys)])
	e.keys = e.keys[:0]
	encoders.Put(e)
	if f != nil {
		return dst, f.err("logjson.marshal")
	}
	return out, nil
}

// encoders keeps the scratch space in which keys are sorted.
var encoders = sync.Pool{New: func() any { return new(encoder) }}

// encoder writes one value. keys is a stack: each open object owns its end, so
// that sorting allocates nothing once the stack has grown.
type encoder struct {
	buf  []byte
	keys []string
}

func (e *encoder) value(v any, depth int) *fault {
	switch v := v.(type) {
	case nil:
		e.buf = append(e.buf, "null"...)
	case bool:
		e.buf = strconv.AppendBool(e.buf, v)
	case string:
		return e.str(v)
	case int64:
		e.buf = strconv.AppendInt(e.buf, v, 10)
	case float64:
		return e.float(v)
	case map[string]any:
		return e.object(v, depth)
	case []any:
		return e.array(v, depth)
	case json.Number:
		return e.number(v)
	case Raw:
		e.buf = append(e.buf, v...)
	case *Packed:
		e.buf = append(e.buf, v.JSON...)
	default:
		name := fmt.Sprintf("%T", v)
		if n, ok := v.(interface{ TypeName() string }); ok {
			name = n.TypeName()
		}
		return faultf("a %s is no value of the log", name)
	}
	return nil
}

func (e *encoder) object(m map[string]any, depth int) *fault {
	if depth == MaxDepth {
		return tooDeep()
	}
	start := len(e.keys)
	for k := range m {
		e.keys = append(e.keys, k)
	}
	end := len(e.keys)
	slices.Sort(e.keys[start:end])
	e.buf = append(e.buf, '{')
	for i := start; i < end; i++ {
		k := e.keys[i]
		if i > start {
			e.buf = append(e.buf, ',')
		}
		if f := e.str(k); f != nil {
			return f.inKey(k)
		}
		e.buf = append(e.buf, ':')
		if f := e.value(m[k], depth+1); f != nil {
			return f.inKey(k)
		}
	}
	e.keys = e.keys[:start]
	e.buf = append(e.buf, '}')
	return nil
}

func (e *encoder) array(a []any, depth int) *fault {
	if depth == MaxDepth {
		return tooDeep()
	}
	e.buf = append(e.buf, '[')
	for i, v := range a {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		if f := e.value(v, depth+1); f != nil {
			return f.inIndex(i)
		}
	}
	e.buf = append(e.buf, ']')
	return nil
}

// plain reports for each byte whether it stands for itself inside a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	return t
}()

func (e *encoder) str(s string) *fault {
	b := append(e.buf, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				return faultf("invalid UTF-8 at byte %d of the string", i)
			}
			i += n
			continue
		}
		b = append(b, s[from:i]...)
		b = appendEscape(b, c)
		i++
		from = i
	}
	b = append(b, s[from:]...)
	e.buf = append(b, '"')
	return nil
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\b':
		return append(b, '\\', 'b')
	case '\t':
		return append(b, '\\', 't')
	case '\n':
		return append(b, '\\', 'n')
	case '\f':
		return append(b, '\\', 'f')
	case '\r':
		return append(b, '\\', 'r')
	default:
		return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}

// exact is the bound below which every integral float64 is exactly one integer.
const exact = 1 << 53

func (e *encoder) float(f float64) *fault {
	abs := math.Abs(f)
	switch {
	case math.IsNaN(f):
		return faultf("NaN has no log JSON")
	case math.IsInf(f, 0):
		return faultf("an infinity has no log JSON")
	case abs < exact && f == math.Trunc(f):
		e.buf = strconv.AppendInt(e.buf, int64(f), 10)
	case abs >= 1e-6 && abs < exact:
		e.buf = strconv.AppendFloat(e.buf, f, 'f', -1, 64)
	default:
		// From 2^53 on the exponent stays: without it the number would read
		// back as an integer, whose last digits the float never knew.
		b := strconv.AppendFloat(e.buf, f, 'e', -1, 64)
		if n := len(b); b[n-4] == 'e' && b[n-2] == '0' { // e-09 is e-9
			b = append(b[:n-2], b[n-1])
		}
		e.buf = b
	}
	return nil
}

func (e *encoder) number(n json.Number) *fault {
	s := string(n)
	d := decoder{src: s}
	v, f := d.number()
	if f != nil || d.pos != len(s) {
		return faultf("%q is no number", s)
	}
	if big, ok := v.(json.Number); ok {
		e.buf = append(e.buf, big...)
		return nil
	}
	return e.value(v, 0)
}
