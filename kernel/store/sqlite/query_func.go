package sqlite

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	sqlite "modernc.org/sqlite"

	"ashlar/kernel/store"
)

// errOver ends a function whose query is over; what the caller reads is the timeout.
var errOver = errors.New("the query is over")

var errArguments = errors.New("wrong number of arguments")

// functions replaces those of SQLite whose time grows with the product of their
// arguments, and which nothing can interrupt: with two texts of 16 MB one call of
// instr would run for hours.
func (g *guard) functions(d *sqlite.Driver) error {
	type impl = func(args []driver.Value) (driver.Value, error)
	var errs []error
	add := func(name string, n int32, f impl) {
		errs = append(errs, d.RegisterDeterministicScalarFunction(name, n, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			if g.over.Load() {
				return nil, errOver
			}
			for _, a := range args {
				if a == nil {
					return nil, nil
				}
			}
			return f(args)
		}))
	}
	add("instr", 2, instr)
	add("replace", 3, replace)
	// A driver has one function of a name: these take what SQLite's own take.
	for name, sides := range map[string][2]bool{"trim": {true, true}, "ltrim": {true, false}, "rtrim": {false, true}} {
		add(name, -1, func(a []driver.Value) (driver.Value, error) {
			switch len(a) {
			case 1:
				return trim(text(a[0]), " ", sides), nil
			case 2:
				return trim(text(a[0]), text(a[1]), sides), nil
			}
			return nil, errArguments
		})
	}
	add("like", -1, func(a []driver.Value) (driver.Value, error) {
		m := matcher{guard: g, many: '%', one: '_', escape: -1, fold: true}
		switch len(a) {
		case 3:
			e := []rune(text(a[2]))
			if len(e) != 1 {
				return nil, errors.New("ESCAPE expression must be a single character")
			}
			m.escape = e[0]
		case 2:
		default:
			return nil, errArguments
		}
		return m.match([]rune(text(a[0])), []rune(text(a[1])))
	})
	add("glob", 2, func(a []driver.Value) (driver.Value, error) {
		m := matcher{guard: g, many: '*', one: '?', escape: -1, classes: true}
		return m.match([]rune(text(a[0])), []rune(text(a[1])))
	})
	return errors.Join(errs...)
}

// text is a value as SQLite casts it to text.
func text(v driver.Value) string {
	switch x := v.(type) {
	case string:
		return x
	case []byte:
		return string(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		s := strconv.FormatFloat(x, 'g', 15, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	}
	return ""
}

// instr counts characters in text and bytes in blobs.
func instr(a []driver.Value) (driver.Value, error) {
	x, blobs := a[0].([]byte)
	y, both := a[1].([]byte)
	if blobs && both {
		return int64(bytes.Index(x, y) + 1), nil
	}
	in := text(a[0])
	at := strings.Index(in, text(a[1]))
	if at < 0 {
		return int64(0), nil
	}
	return int64(utf8.RuneCountInString(in[:at]) + 1), nil
}

func replace(a []driver.Value) (driver.Value, error) {
	in, what, with := text(a[0]), text(a[1]), text(a[2])
	if what == "" {
		return a[0], nil
	}
	if n := strings.Count(in, what); n > 0 {
		if grown := len(in) + n*(len(with)-len(what)); grown > store.MaxQueryValue {
			return nil, errors.New("string or blob too big")
		}
	}
	return strings.ReplaceAll(in, what, with), nil
}

func trim(s, cut string, sides [2]bool) string {
	set := make(map[rune]bool, len(cut))
	for _, r := range cut {
		set[r] = true
	}
	in := func(r rune) bool { return set[r] }
	if sides[0] {
		s = strings.TrimLeftFunc(s, in)
	}
	if sides[1] {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// matcher is LIKE and GLOB. It goes back to the last wildcard for many only, so its
// time is the product of the lengths at worst, and it looks at the clock.
type matcher struct {
	guard             *guard
	many, one, escape rune
	fold, classes     bool
}

func (m matcher) match(pattern, s []rune) (driver.Value, error) {
	p, i, star, from := 0, 0, -1, 0
	for steps := 0; i < len(s); steps++ {
		if steps&0xffff == 0xffff && m.guard.over.Load() {
			return nil, errOver
		}
		if p < len(pattern) && pattern[p] == m.many && m.many != m.escape {
			star, from = p, i
			p++
			continue
		}
		if n, ok := m.step(pattern[p:], s[i]); ok {
			p += n
			i++
			continue
		}
		if star < 0 {
			return int64(0), nil
		}
		from++
		p, i = star+1, from
	}
	for p < len(pattern) && pattern[p] == m.many {
		p++
	}
	if p == len(pattern) {
		return int64(1), nil
	}
	return int64(0), nil
}

// step matches one character and gives the length of what matched it.
func (m matcher) step(pattern []rune, c rune) (n int, ok bool) {
	if len(pattern) == 0 {
		return 0, false
	}
	r := pattern[0]
	switch {
	case r == m.escape:
		if len(pattern) < 2 {
			return 0, false
		}
		return 2, m.same(pattern[1], c)
	case r == m.one:
		return 1, true
	case m.classes && r == '[':
		return class(pattern, c)
	}
	return 1, m.same(r, c)
}

func (m matcher) same(a, b rune) bool {
	if m.fold && a < utf8.RuneSelf && b < utf8.RuneSelf {
		return lower(a) == lower(b)
	}
	return a == b
}

func lower(r rune) rune {
	if r >= 'A' && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// class matches [abc], [a-z] and [^…]; a ] that comes first is a member.
func class(pattern []rune, c rune) (n int, ok bool) {
	i, invert, seen := 1, false, false
	if i < len(pattern) && pattern[i] == '^' {
		invert = true
		i++
	}
	for first := true; i < len(pattern) && (first || pattern[i] != ']'); first = false {
		if i+2 < len(pattern) && pattern[i+1] == '-' && pattern[i+2] != ']' {
			seen = seen || pattern[i] <= c && c <= pattern[i+2]
			i += 3
			continue
		}
		seen = seen || pattern[i] == c
		i++
	}
	if i >= len(pattern) {
		return 0, false
	}
	return i + 1, seen != invert
}
