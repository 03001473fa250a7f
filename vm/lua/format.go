package lua

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// formatSpec is one conversion of string.format.
type formatSpec struct {
	minus, plus, space, alt, zero bool
	width, prec                   int // -1: not given
	verb                          byte
}

// parseSpec reads what stands between % and the verb.
func parseSpec(s string, verb byte) (formatSpec, error) {
	f := formatSpec{width: -1, prec: -1, verb: verb}
	i := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			f.minus = true
		case '+':
			f.plus = true
		case ' ':
			f.space = true
		case '#':
			f.alt = true
		case '0':
			f.zero = true
		default:
			goto width
		}
	}
width:
	number := func() (int, error) {
		start := i
		for i < len(s) && isDigit(s[i]) {
			i++
		}
		if i-start > 2 {
			return 0, fmt.Errorf("invalid format (width or precision too long)")
		}
		n, _ := strconv.Atoi(s[start:i])
		return n, nil
	}
	var err error
	if i < len(s) && s[i] != '.' {
		if f.width, err = number(); err != nil {
			return f, err
		}
	}
	if i < len(s) && s[i] == '.' {
		i++
		if f.prec, err = number(); err != nil {
			return f, err
		}
	}
	if i < len(s) || strings.IndexByte("cdiouxXaAeEfFgGqs", verb) < 0 {
		return f, fmt.Errorf("invalid conversion '%%%s%c' to 'format'", s, verb)
	}
	return f, nil
}

// format gives argument i of the running function under the conversion.
func (f formatSpec) format(L *glua.LState, i int) string {
	switch f.verb {
	case 's':
		s := formatArgument(L, i)
		if f.prec >= 0 && f.prec < len(s) {
			s = s[:f.prec]
		}
		return f.pad(s)
	case 'q':
		return quote(L.CheckAny(i))
	}
	v := L.CheckAny(i)
	n, ok := toNumber(v)
	if !ok {
		L.ArgError(i, argMessage(f.verb, v))
	}
	switch f.verb {
	case 'c':
		return f.pad(string([]byte{byte(int(n))}))
	case 'd', 'i':
		return f.integer(n, 10)
	case 'o':
		return f.unsigned(n, 8)
	case 'u':
		return f.unsigned(n, 10)
	case 'x', 'X':
		return f.unsigned(n, 16)
	}
	return f.float(n)
}

func toNumber(v glua.LValue) (float64, bool) {
	switch x := v.(type) {
	case glua.LNumber:
		return float64(x), true
	case glua.LString:
		text := strings.TrimSpace(string(x))
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			return float64(n), true
		}
		n, err := strconv.ParseFloat(text, 64)
		return n, err == nil
	}
	return 0, false
}

func (f formatSpec) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case f.plus:
		return "+"
	case f.space:
		return " "
	}
	return ""
}

func (f formatSpec) integer(n float64, base int) string {
	v := int64(n)
	digits := strconv.FormatUint(magnitude(v), base)
	return f.number(f.sign(v < 0), digits)
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

func (f formatSpec) unsigned(n float64, base int) string {
	var v uint64
	if n < 0 {
		v = uint64(int64(n))
	} else {
		v = uint64(n)
	}
	digits := strconv.FormatUint(v, base)
	prefix := ""
	switch {
	case f.alt && base == 8:
		prefix = "0"
	case f.alt && base == 16 && v != 0:
		prefix = "0x"
	}
	if f.verb == 'X' {
		digits, prefix = strings.ToUpper(digits), strings.ToUpper(prefix)
	}
	return f.number(prefix, digits)
}

// number puts precision and padding to the digits of an integer.
func (f formatSpec) number(sign, digits string) string {
	if f.prec >= 0 {
		if f.prec == 0 && digits == "0" {
			digits = ""
		}
		digits = strings.Repeat("0", max(f.prec-len(digits), 0)) + digits
		return f.pad(sign + digits)
	}
	return f.padSigned(sign, digits)
}

func (f formatSpec) float(n float64) string {
	sign := f.sign(math.Signbit(n) && !math.IsNaN(n))
	if math.IsInf(n, 0) || math.IsNaN(n) {
		text := "inf"
		if math.IsNaN(n) {
			text = "nan"
		}
		if f.verb < 'a' {
			text = strings.ToUpper(text)
		}
		return f.pad(sign + text)
	}
	n = math.Abs(n)
	var digits string
	switch f.verb {
	case 'a', 'A':
		digits = strconv.FormatFloat(n, 'x', f.prec, 64)
	case 'g', 'G':
		digits = f.general(n)
	default:
		prec := f.prec
		if prec < 0 {
			prec = 6
		}
		verb := f.verb | 0x20
		digits = strconv.FormatFloat(n, verb, prec, 64)
		if f.alt && prec == 0 && verb == 'f' {
			digits += "."
		}
	}
	if f.verb < 'a' {
		digits = strings.ToUpper(digits)
	}
	return f.padSigned(sign, digits)
}

// general is %g: precision counts significant digits, zeros at the end go.
func (f formatSpec) general(n float64) string {
	prec := f.prec
	switch {
	case prec < 0:
		prec = 6
	case prec == 0:
		prec = 1
	}
	if !f.alt {
		return strconv.FormatFloat(n, 'g', prec, 64)
	}
	return fmt.Sprintf("%#.*g", prec, n)
}

// padSigned pads with zeros between sign and digits where the flag asks for it.
func (f formatSpec) padSigned(sign, digits string) string {
	if f.zero && !f.minus {
		digits = strings.Repeat("0", max(f.width-len(sign)-len(digits), 0)) + digits
	}
	return f.pad(sign + digits)
}

func (f formatSpec) pad(s string) string {
	fill := strings.Repeat(" ", max(f.width-len(s), 0))
	if f.minus {
		return s + fill
	}
	return fill + s
}

// quote is %q: a literal that Lua reads back.
func quote(v glua.LValue) string {
	s, ok := v.(glua.LString)
	if !ok {
		return v.String()
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString("\\\n")
		case '\r':
			b.WriteString("\\r")
		case 0:
			b.WriteString("\\000")
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
