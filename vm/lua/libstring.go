package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// openString makes the string library. All of it is ours, since gopher-lua's makes
// strings without a bound and matches without a look at the context.
func (e *Engine) openString() {
	t := e.table("string", map[string]glua.LGFunction{
		"byte": strByte, "char": strChar, "len": strLen, "sub": strSub,
		"dump":    func(L *glua.LState) int { L.RaiseError("string.dump is not supported"); return 0 },
		"rep":     e.strRep,
		"reverse": strReverse, "upper": strUpper, "lower": strLower,
		"format": e.strFormat,
		"find":   strFind, "match": strMatch,
		"gmatch": strGmatch,
		"gsub":   e.strGsub,
	})
	t.RawSetString("gfind", t.RawGetString("gmatch"))
	t.RawSetString("__index", t)
	e.proto.SetMetatable(glua.LString(""), t)
}

// sizeCheck raises when a builtin would make a string beyond the bound.
func (e *Engine) sizeCheck(L *glua.LState, n int) {
	if n > e.opts.Limits.StringBytes || n < 0 {
		L.RaiseError("resulting string too large (the limit is %d bytes)", e.opts.Limits.StringBytes)
	}
}

// pushString pushes a string without another copy.
func pushString(L *glua.LState, s string) int {
	L.Push(glua.LString(s))
	return 1
}

// span resolves string.sub's positions to a half-open range within n bytes.
func span(n, i, j int) (from, to int) {
	if i < 0 {
		i = max(n+i+1, 1)
	} else if i == 0 {
		i = 1
	}
	if j < 0 {
		j = n + j + 1
	} else if j > n {
		j = n
	}
	if i > j {
		return 0, 0
	}
	return i - 1, j
}

func strByte(L *glua.LState) int {
	s := L.CheckString(1)
	i := L.OptInt(2, 1)
	from, to := span(len(s), i, L.OptInt(3, i))
	if to-from > maxUnpack {
		L.RaiseError("string slice too long (the limit is %d)", maxUnpack)
	}
	for k := from; k < to; k++ {
		L.Push(glua.LNumber(s[k]))
	}
	return to - from
}

func strChar(L *glua.LState) int {
	b := make([]byte, L.GetTop())
	for i := range b {
		n := int(L.CheckNumber(i + 1))
		if n < 0 || n > 255 {
			L.ArgError(i+1, "value out of range (a byte is 0 to 255; see utf8.char)")
		}
		b[i] = byte(n)
	}
	return pushString(L, string(b))
}

func strLen(L *glua.LState) int {
	L.Push(glua.LNumber(len(L.CheckString(1))))
	return 1
}

func strSub(L *glua.LState) int {
	s := L.CheckString(1)
	from, to := span(len(s), toInt(L, 2, 1), toInt(L, 3, -1))
	return pushString(L, s[from:to])
}

// toInt is an optional integer argument, numerals in strings included.
func toInt(L *glua.LState, i, def int) int {
	if L.Get(i) == glua.LNil {
		return def
	}
	return int(L.CheckNumber(i))
}

// strRep is string.rep(s, n, sep).
func (e *Engine) strRep(L *glua.LState) int {
	s, n, sep := L.CheckString(1), L.CheckNumber(2), L.OptString(3, "")
	if n < 1 {
		return pushString(L, "")
	}
	if size := float64(n) * float64(len(s)+len(sep)); size > float64(e.opts.Limits.StringBytes) {
		e.sizeCheck(L, e.opts.Limits.StringBytes+1)
	}
	count := int(n)
	if len(s)+len(sep) == 0 {
		return pushString(L, "")
	}
	if sep == "" {
		return pushString(L, strings.Repeat(s, count))
	}
	return pushString(L, strings.Repeat(s+sep, count-1)+s)
}

func strReverse(L *glua.LState) int {
	s := L.CheckString(1)
	b := make([]byte, len(s))
	for i := range len(s) {
		b[len(s)-1-i] = s[i]
	}
	return pushString(L, string(b))
}

// mapBytes changes bytes as the C locale does: what is not ASCII stays.
func mapBytes(L *glua.LState, first, last byte) int {
	b := []byte(L.CheckString(1))
	for i, c := range b {
		if c >= first && c <= last {
			b[i] = c ^ 0x20
		}
	}
	return pushString(L, string(b))
}

func strUpper(L *glua.LState) int { return mapBytes(L, 'a', 'z') }

func strLower(L *glua.LState) int { return mapBytes(L, 'A', 'Z') }

// strFormat is string.format as C's printf does it, each width and precision at
// most 99, so that only the arguments decide the size.
func (e *Engine) strFormat(L *glua.LState) int {
	f := L.CheckString(1)
	var b strings.Builder
	arg := 1
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		i++
		if i < len(f) && f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		end := i
		for end < len(f) && strings.IndexByte("-+ #0123456789.", f[end]) >= 0 {
			end++
		}
		if end >= len(f) {
			L.RaiseError("invalid conversion '%%%s' to 'format'", shorten(f[i:]))
		}
		spec, err := parseSpec(f[i:end], f[end])
		if err != nil {
			L.RaiseError("%s", err.Error())
		}
		i = end
		arg++
		b.WriteString(spec.format(L, arg))
		e.sizeCheck(L, b.Len())
	}
	return pushString(L, b.String())
}

// formatArgument is the text of an argument under %s.
func formatArgument(L *glua.LState, i int) string {
	return L.ToStringMeta(L.CheckAny(i)).String()
}

func argMessage(verb byte, v glua.LValue) string {
	return fmt.Sprintf("number expected for %%%c, got %s", verb, v.Type())
}
