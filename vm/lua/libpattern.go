package lua

import (
	"context"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm/lua/pattern"
)

// matcher makes a matcher that stops with the running Lua's context.
func matcher(L *glua.LState, src, pat string) *pattern.Matcher {
	ctx := L.Context()
	return pattern.New(src, pat, func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
}

// nextMatch is Matcher.Next with failures raised.
func nextMatch(L *glua.LState, m *pattern.Matcher, init int) (start, end int, ok bool) {
	start, end, ok, err := m.Next(init)
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	return start, end, ok
}

// captures gives the captures of a match as values; the whole match when the
// pattern has none and whole is set.
func captures(L *glua.LState, m *pattern.Matcher, src string, start, end int, whole bool) []glua.LValue {
	caps, err := m.Captures()
	if err != nil {
		L.RaiseError("%s", err.Error())
	}
	if len(caps) == 0 && whole {
		return []glua.LValue{glua.LString(src[start:end])}
	}
	out := make([]glua.LValue, len(caps))
	for i, c := range caps {
		if c.Position {
			out[i] = glua.LNumber(c.Start + 1)
		} else {
			out[i] = glua.LString(src[c.Start:c.End])
		}
	}
	return out
}

// initial resolves the position at which a search begins; ok is false past the end.
func initial(n, i int) (int, bool) {
	if i > 0 {
		i--
	} else if i < 0 {
		i = max(n+i, 0)
	}
	return i, i <= n
}

func strFind(L *glua.LState) int { return find(L, true) }

func strMatch(L *glua.LState) int { return find(L, false) }

func find(L *glua.LState, positions bool) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	init, ok := initial(len(src), toInt(L, 3, 1))
	if !ok {
		L.Push(glua.LNil)
		return 1
	}
	if positions && (glua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		at := strings.Index(src[init:], pat)
		if at < 0 {
			L.Push(glua.LNil)
			return 1
		}
		L.Push(glua.LNumber(init + at + 1))
		L.Push(glua.LNumber(init + at + len(pat)))
		return 2
	}
	m := matcher(L, src, pat)
	start, end, ok := nextMatch(L, m, init)
	if !ok {
		L.Push(glua.LNil)
		return 1
	}
	n := 0
	if positions {
		L.Push(glua.LNumber(start + 1))
		L.Push(glua.LNumber(end))
		n = 2
	}
	for _, c := range captures(L, m, src, start, end, !positions) {
		L.Push(c)
		n++
	}
	return n
}

func strGmatch(L *glua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	m := matcher(L, src, pat)
	if m.Anchored() { // in gmatch a caret is no anchor, it matches itself
		m = matcher(L, src, "%"+pat)
	}
	pos, last := 0, -1
	L.Push(L.NewFunction(func(L *glua.LState) int {
		for pos <= len(src) {
			start, end, ok := nextMatch(L, m, pos)
			if !ok {
				break
			}
			if end == last { // an empty match right behind the last one
				pos = start + 1
				continue
			}
			pos, last = end, end
			caps := captures(L, m, src, start, end, true)
			for _, c := range caps {
				L.Push(c)
			}
			return len(caps)
		}
		pos = len(src) + 1
		return 0
	}))
	return 1
}

func (e *Engine) strGsub(L *glua.LState) int {
	src, pat := L.CheckString(1), L.CheckString(2)
	repl := L.CheckAny(3)
	switch repl.(type) {
	case glua.LNumber:
		repl = glua.LString(repl.String())
	case glua.LString, *glua.LTable, *glua.LFunction:
	default:
		L.ArgError(3, "string or function or table expected, got "+repl.Type().String())
	}
	most := toInt(L, 4, len(src)+1)
	m := matcher(L, src, pat)
	var b strings.Builder
	pos, count := 0, 0
	for count < most {
		start, end, ok := nextMatch(L, m, pos)
		if !ok {
			break
		}
		b.WriteString(src[pos:start])
		count++
		e.replacement(L, &b, m, src, start, end, repl)
		e.sizeCheck(L, b.Len())
		pos = end
		if end == start { // an empty match: keep the byte behind it
			if start >= len(src) {
				pos = len(src) + 1
				break
			}
			b.WriteByte(src[start])
			pos = start + 1
		}
		if m.Anchored() {
			break
		}
	}
	if pos < len(src) {
		b.WriteString(src[pos:])
	}
	e.sizeCheck(L, b.Len())
	L.Push(glua.LString(b.String()))
	L.Push(glua.LNumber(count))
	return 2
}

// replacement writes what stands for one match.
func (e *Engine) replacement(L *glua.LState, b *strings.Builder, m *pattern.Matcher, src string, start, end int, repl glua.LValue) {
	whole := src[start:end]
	caps := captures(L, m, src, start, end, true)
	var v glua.LValue
	switch r := repl.(type) {
	case glua.LString:
		writeTemplate(L, b, string(r), whole, caps)
		return
	case *glua.LTable:
		v = L.GetTable(r, caps[0])
	case *glua.LFunction:
		L.Push(r)
		for _, c := range caps {
			L.Push(c)
		}
		L.Call(len(caps), 1)
		v = L.Get(-1)
		L.Pop(1)
	}
	switch x := v.(type) {
	case glua.LString:
		b.WriteString(string(x))
	case glua.LNumber:
		b.WriteString(x.String())
	default:
		if !glua.LVIsFalse(v) {
			L.RaiseError("invalid replacement value (a %s)", v.Type())
		}
		b.WriteString(whole)
	}
}

// writeTemplate writes a replacement string: %0 is the match, %1 to %9 the captures.
func writeTemplate(L *glua.LState, b *strings.Builder, t, whole string, caps []glua.LValue) {
	for i := 0; i < len(t); i++ {
		if t[i] != '%' {
			b.WriteByte(t[i])
			continue
		}
		i++
		switch {
		case i >= len(t):
			L.RaiseError("invalid use of '%%' in replacement string")
		case t[i] == '0':
			b.WriteString(whole)
		case isDigit(t[i]):
			n := int(t[i] - '0')
			if n > len(caps) {
				L.RaiseError("invalid capture index %%%d in replacement string", n)
			}
			b.WriteString(glua.LVAsString(caps[n-1]))
		default: // %% and, as Lua 5.1 has it, any other character
			b.WriteByte(t[i])
		}
	}
}
