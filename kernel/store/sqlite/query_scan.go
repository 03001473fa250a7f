package sqlite

import (
	"strings"
	"unicode/utf8"

	"ashlar/kernel"
)

const opQuery = "store.query"

// A token is a piece of SQL, cut as SQLite's own tokenizer cuts it.
type token struct {
	kind tokenKind
	text string
}

type tokenKind int

const (
	blank  tokenKind = iota // white space and comments
	word                    // a keyword, a bare name or a number
	quoted                  // 'text', "name", `name`, [name]
	param                   // ? ?1 :n @n $n
	mark                    // one other character
)

// scan cuts a statement into tokens. It follows tokenize.c: what is not closed runs
// to the end, and a block comment needs no end.
func scan(sql string) []token {
	var out []token
	for len(sql) > 0 {
		kind, n := next(sql)
		out = append(out, token{kind, sql[:n]})
		sql = sql[n:]
	}
	return out
}

func next(s string) (tokenKind, int) {
	c := s[0]
	switch {
	case isSpace(c):
		n := 1
		for n < len(s) && isSpace(s[n]) {
			n++
		}
		return blank, n
	case strings.HasPrefix(s, "--"):
		if n := strings.IndexByte(s, '\n'); n >= 0 {
			return blank, n + 1
		}
		return blank, len(s)
	case strings.HasPrefix(s, "/*") && len(s) > 2:
		if n := strings.Index(s[2:], "*/"); n >= 0 {
			return blank, n + 4
		}
		return blank, len(s)
	case c == '\'' || c == '"' || c == '`':
		return quoted, closed(s, c)
	case c == '[':
		if n := strings.IndexByte(s, ']'); n >= 0 {
			return quoted, n + 1
		}
		return quoted, len(s)
	case c == '?':
		n := 1
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		return param, n
	case (c == ':' || c == '@' || c == '$' || c == '#') && len(s) > 1 && isName(s[1]):
		n := 1
		for n < len(s) && isName(s[n]) {
			n++
		}
		return param, n
	case isName(c):
		n := 1
		for n < len(s) && isName(s[n]) {
			n++
		}
		return word, n
	}
	return mark, 1
}

// closed is the length of a quoted piece; its quote, doubled, stands for itself.
func closed(s string, quote byte) int {
	for i := 1; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= utf8.RuneSelf
}

// one checks that the text is one SELECT or WITH and gives its tokens without what
// follows it: a semicolon, white space and comments. Which of the statements that
// begin with WITH are a SELECT is not told here: the authorizer allows no other.
func one(sql string) ([]token, error) {
	refuse := func(format string, args ...any) ([]token, error) {
		return nil, kernel.Errorf(opQuery, kernel.Validation, format, args...)
	}
	switch {
	case strings.IndexByte(sql, 0) >= 0:
		return refuse("the statement has a NUL byte in it")
	case !utf8.ValidString(sql):
		return refuse("the statement is not UTF-8")
	}
	tokens := scan(sql)
	first, end := -1, len(tokens)
	for i, t := range tokens {
		switch {
		case t.kind == blank:
		case end < len(tokens):
			return refuse("one statement, not several: there is more after the semicolon")
		case t.text == ";" && t.kind == mark:
			end = i
		case first < 0:
			first = i
		}
	}
	if first < 0 {
		return refuse("there is no statement; give one SELECT or WITH")
	}
	if w := strings.ToUpper(tokens[first].text); tokens[first].kind != word || w != "SELECT" && w != "WITH" {
		return refuse("a query begins with SELECT or WITH, not with %q", clip(tokens[first].text))
	}
	for end > first && tokens[end-1].kind == blank {
		end--
	}
	return tokens[first:end], nil
}

func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}
