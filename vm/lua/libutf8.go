package lua

import (
	"strings"
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"
)

// openUTF8 makes Lua 5.3's utf8 library over Go's decoder: surrogates and code
// points beyond 10FFFF are invalid.
func (e *Engine) openUTF8() {
	t := e.table("utf8", map[string]glua.LGFunction{
		"char": utf8Char, "codepoint": utf8Codepoint, "len": utf8Len,
		"offset": utf8Offset, "codes": utf8Codes,
	})
	t.RawSetString("charpattern", glua.LString("[%z\x01-\x7F\xC2-\xF4][\x80-\xBF]*"))
}

func utf8Char(L *glua.LState) int {
	var b strings.Builder
	for i := 1; i <= L.GetTop(); i++ {
		n := float64(L.CheckNumber(i))
		if !(n >= 0 && n <= utf8.MaxRune) || !utf8.ValidRune(rune(n)) {
			L.ArgError(i, "value out of range")
		}
		b.WriteRune(rune(n))
	}
	return pushString(L, b.String())
}

// position resolves a byte position that may count from the end; the result is
// counted from 1.
func position(i, n int) int {
	if i >= 0 {
		return i
	}
	if -i > n {
		return 0
	}
	return n + i + 1
}

func utf8Codepoint(L *glua.LState) int {
	s := L.CheckString(1)
	i := position(L.OptInt(2, 1), len(s))
	j := position(L.OptInt(3, i), len(s))
	if i < 1 {
		L.ArgError(2, "out of bounds")
	}
	if j > len(s) {
		L.ArgError(3, "out of bounds")
	}
	n := 0
	for at := i - 1; at < j; n++ {
		r, size := utf8.DecodeRuneInString(s[at:])
		if r == utf8.RuneError && size <= 1 {
			L.RaiseError("invalid UTF-8 code")
		}
		if n >= maxUnpack {
			L.RaiseError("string slice too long (the limit is %d)", maxUnpack)
		}
		L.Push(glua.LNumber(r))
		at += size
	}
	return n
}

// utf8Len gives the number of characters, or nil and the first bad byte's position.
func utf8Len(L *glua.LState) int {
	s := L.CheckString(1)
	i := position(L.OptInt(2, 1), len(s))
	j := position(L.OptInt(3, -1), len(s))
	if i < 1 || i > len(s)+1 {
		L.ArgError(2, "initial position out of bounds")
	}
	if j > len(s) {
		L.ArgError(3, "final position out of bounds")
	}
	n := 0
	for at := i - 1; at < j; n++ {
		r, size := utf8.DecodeRuneInString(s[at:])
		if r == utf8.RuneError && size <= 1 {
			L.Push(glua.LNil)
			L.Push(glua.LNumber(at + 1))
			return 2
		}
		at += size
	}
	L.Push(glua.LNumber(n))
	return 1
}

func continues(s string, i int) bool { return i < len(s) && s[i]&0xC0 == 0x80 }

// utf8Offset gives the byte position of the n-th character counted from i.
func utf8Offset(L *glua.LState) int {
	s, n := L.CheckString(1), L.CheckInt(2)
	def := 1
	if n <= 0 {
		def = len(s) + 1
	}
	at := position(L.OptInt(3, def), len(s)) - 1
	if at < 0 || at > len(s) {
		L.ArgError(3, "position out of bounds")
	}
	if n == 0 {
		for at > 0 && continues(s, at) {
			at--
		}
		L.Push(glua.LNumber(at + 1))
		return 1
	}
	if continues(s, at) {
		L.RaiseError("initial position is a continuation byte")
	}
	for ; n < 0 && at > 0; n++ {
		for at--; at > 0 && continues(s, at); at-- {
		}
	}
	if n > 0 {
		for n--; n > 0 && at < len(s); n-- {
			for at++; continues(s, at); at++ {
			}
		}
	}
	if n != 0 {
		L.Push(glua.LNil)
	} else {
		L.Push(glua.LNumber(at + 1))
	}
	return 1
}

// utf8Codes iterates over byte positions and code points.
func utf8Codes(L *glua.LState) int {
	s := L.CheckString(1)
	L.Push(L.NewFunction(func(L *glua.LState) int {
		at := L.CheckInt(2)
		if at > 0 {
			for continues(s, at) {
				at++
			}
		}
		if at >= len(s) {
			return 0
		}
		r, size := utf8.DecodeRuneInString(s[at:])
		if r == utf8.RuneError && size <= 1 {
			L.RaiseError("invalid UTF-8 code")
		}
		L.Push(glua.LNumber(at + 1))
		L.Push(glua.LNumber(r))
		return 2
	}))
	L.Push(L.Get(1))
	L.Push(glua.LNumber(0))
	return 3
}
