package lua

import (
	"bytes"
	"fmt"
	"strconv"
)

// A lexer for the guard alone: it knows where strings, comments, words and marks
// are, and leaves every other question to the parser.

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokName
	tokWord // a reserved word
	tokNumber
	tokString
	tokMark
)

type token struct {
	kind tokenKind
	text string // of names, words and marks
}

type lexer struct {
	src  []byte
	pos  int
	line int
}

func reserved(s string) bool {
	switch s {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
		"local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while":
		return true
	}
	return false
}

// next gives the next token; problem says why the source is refused.
func (l *lexer) next() (t token, problem string) {
	if problem := l.skipBlanks(); problem != "" {
		return token{}, problem
	}
	if l.pos >= len(l.src) {
		return token{kind: tokEnd}, ""
	}
	c := l.src[l.pos]
	switch {
	case isLetter(c):
		start := l.pos
		for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
			l.pos++
		}
		text := string(l.src[start:l.pos])
		if reserved(text) {
			return token{kind: tokWord, text: text}, ""
		}
		return token{kind: tokName, text: text}, ""
	case isDigit(c), c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		l.number()
		return token{kind: tokNumber}, ""
	case c == '"', c == '\'':
		return token{kind: tokString}, l.quoted(c)
	case c == '[':
		if level, ok := l.longOpen(); ok {
			return token{kind: tokString}, l.long(level, "string")
		}
	}
	return l.mark()
}

// mark reads an operator or a bracket, the longest that matches.
func (l *lexer) mark() (token, string) {
	rest := l.src[l.pos:]
	for _, m := range []string{"...", "..", "==", "~=", "<=", ">=", "::", "//", "<<", ">>"} {
		if bytes.HasPrefix(rest, []byte(m)) {
			l.pos += len(m)
			return token{kind: tokMark, text: m}, later(m)
		}
	}
	m := string(rest[:1])
	l.pos++
	return token{kind: tokMark, text: m}, later(m)
}

// skipBlanks passes white space and comments.
func (l *lexer) skipBlanks() string {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			l.pos++
		case c == '-' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '-':
			l.pos += 2
			if level, ok := l.longOpen(); ok {
				if problem := l.long(level, "comment"); problem != "" {
					return problem
				}
				continue
			}
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		default:
			return ""
		}
	}
	return ""
}

// longOpen reports whether a long bracket opens here, and its level.
func (l *lexer) longOpen() (level int, ok bool) {
	i := l.pos
	if i >= len(l.src) || l.src[i] != '[' {
		return 0, false
	}
	for i++; i < len(l.src) && l.src[i] == '='; i++ {
		level++
	}
	return level, i < len(l.src) && l.src[i] == '['
}

func (l *lexer) long(level int, what string) string {
	opened := l.line
	l.pos += level + 2
	closing := append([]byte{']'}, bytes.Repeat([]byte{'='}, level)...)
	closing = append(closing, ']')
	at := bytes.Index(l.src[l.pos:], closing)
	if at < 0 {
		return fmt.Sprintf("a long %s that is never closed", what)
	}
	l.line = opened + bytes.Count(l.src[l.pos:l.pos+at], []byte{'\n'})
	l.pos += at + len(closing)
	return ""
}

func (l *lexer) quoted(quote byte) string {
	for l.pos++; l.pos < len(l.src); l.pos++ {
		switch l.src[l.pos] {
		case quote:
			l.pos++
			return ""
		case '\n':
			return "a string that is not closed on its line"
		case '\\':
			l.pos++
			if l.pos >= len(l.src) {
				break
			}
			if problem := l.escape(); problem != "" {
				return problem
			}
		}
	}
	return "a string that is never closed"
}

// escape looks at the character after a backslash.
func (l *lexer) escape() string {
	rest := l.src[l.pos:]
	switch rest[0] {
	case '\n':
		l.line++
	case 'x':
		if len(rest) >= 3 {
			if n, err := strconv.ParseUint(string(rest[1:3]), 16, 8); err == nil {
				return fmt.Sprintf(`\x%s is Lua 5.2; write \%03d`, rest[1:3], n)
			}
		}
		return `\x is Lua 5.2; write the byte as \ and three decimal digits`
	case 'u':
		if end := bytes.IndexByte(rest, '}'); len(rest) > 1 && rest[1] == '{' && end > 0 && end < 12 {
			return fmt.Sprintf(`\u%s is Lua 5.3; write the character itself or utf8.char(0x%s)`, rest[1:end+1], rest[2:end])
		}
		return `\u is Lua 5.3; write the character itself or utf8.char(code)`
	case 'z':
		return `\z is Lua 5.2; join two strings with ..`
	}
	return ""
}

// number passes a numeral, an exponent's sign included.
func (l *lexer) number() {
	hex := bytes.HasPrefix(l.src[l.pos:], []byte("0x")) || bytes.HasPrefix(l.src[l.pos:], []byte("0X"))
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		exp := !hex && (c == 'e' || c == 'E') || hex && (c == 'p' || c == 'P')
		switch {
		case exp && l.pos+1 < len(l.src) && (l.src[l.pos+1] == '+' || l.src[l.pos+1] == '-'):
			l.pos += 2
		case c == '.' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '.':
			return // 1..x
		case isLetter(c) || isDigit(c) || c == '.':
			l.pos++
		default:
			return
		}
	}
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
