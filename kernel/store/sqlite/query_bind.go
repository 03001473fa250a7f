package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strings"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// theStream and theSessions are bound by the kernel.
const (
	theStream   = "$stream"
	theSessions = "$sessions"
)

// bound is a statement with a value for each of its parameters, in SQLite's order
// of numbers: a `?` has the next one, a name has the one of its first use.
type bound struct {
	text string
	args []any
}

// bind gives every parameter its value. Every refusal is of kind validation.
func bind(tokens []token, q store.Question) (bound, error) {
	refuse := func(format string, args ...any) (bound, error) {
		return bound{}, kernel.Errorf(opQuery, kernel.Validation, format, args...)
	}
	if len(q.Params) > 0 && len(q.Named) > 0 {
		return refuse("parameters are given by position or by name, not both")
	}
	var b bound
	var text strings.Builder
	position, seen, used := 0, map[string]bool{}, map[string]bool{}
	for i, t := range tokens {
		if t.kind != param {
			text.WriteString(t.text)
			continue
		}
		if t.text == theSessions {
			text.WriteString(set(tokens, i))
		} else {
			text.WriteString(t.text)
		}
		var v any
		switch {
		case t.text == "?":
			if position >= len(q.Params) {
				position++
				continue // counted below
			}
			v = q.Params[position]
			position++
		case t.text[0] == '?' || t.text[0] == '#':
			return refuse("%s: write ? for the next value, or a name (:n, @n, $n)", t.text)
		case seen[t.text]:
			continue
		case t.text == theStream:
			v = q.Stream
		case t.text == theSessions:
			v = sessionList(q)
		default:
			name := t.text[1:]
			given, ok := q.Named[name]
			if !ok {
				return refuse("no value for %s", clip(t.text))
			}
			v, used[name] = given, true
		}
		value, err := argument(t.text, v)
		if err != nil {
			return b, err
		}
		if t.text != "?" {
			seen[t.text] = true
			value = sql.Named(t.text[1:], value)
		}
		b.args = append(b.args, value)
	}
	if position != len(q.Params) {
		return refuse("the statement has %s, and %d given", plural(position, "? parameter"), len(q.Params))
	}
	for _, name := range names(q.Named) {
		if !used[name] {
			return refuse("the parameter %q is given and not used", clip(name))
		}
	}
	if len(b.args) > store.MaxQueryParams {
		return refuse("%d parameters; at most %d", len(b.args), store.MaxQueryParams)
	}
	b.text = text.String()
	return b, checkNames(b.args)
}

// checkNames refuses one name behind two signs: they are two parameters to SQLite and
// one to its driver.
func checkNames(args []any) error {
	seen := map[string]bool{}
	for _, a := range args {
		n, ok := a.(sql.NamedArg)
		if !ok {
			continue
		}
		if seen[n.Name] {
			return kernel.Errorf(opQuery, kernel.Validation, "the parameter %q stands behind two different signs; use one of : @ $", clip(n.Name))
		}
		if n.Name[0] >= '0' && n.Name[0] <= '9' {
			return kernel.Errorf(opQuery, kernel.Validation, "the parameter %q: a name begins with a letter", clip(n.Name))
		}
		seen[n.Name] = true
	}
	return nil
}

// set gives what stands for $sessions: after IN, with or without parentheses of its
// own, the members; elsewhere the JSON array.
func set(tokens []token, at int) string {
	near := func(i, step int) (token, int) {
		for i += step; i >= 0 && i < len(tokens); i += step {
			if tokens[i].kind != blank {
				return tokens[i], i
			}
		}
		return token{}, i
	}
	const members = "SELECT value FROM json_each($sessions)"
	before, i := near(at, -1)
	if strings.EqualFold(before.text, "in") && before.kind == word {
		return "(" + members + ")"
	}
	if after, _ := near(at, 1); before.text == "(" && after.text == ")" {
		if in, _ := near(i, -1); strings.EqualFold(in.text, "in") && in.kind == word {
			return members
		}
	}
	return theSessions
}

func sessionList(q store.Question) any {
	list := make([]any, len(q.Sessions))
	for i, s := range q.Sessions {
		list[i] = s
	}
	b, err := logjson.Marshal(list)
	if err != nil {
		return "[]" // a name that is not UTF-8 is no session's
	}
	return string(b)
}

// argument gives a value as SQLite is bound it.
func argument(name string, v any) (any, error) {
	refuse := func(what string) (any, error) {
		return nil, kernel.Errorf(opQuery, kernel.Validation, "the value of %s is %s; bind text, numbers, booleans or null", clip(name), what)
	}
	switch x := v.(type) {
	case nil, int64:
		return v, nil
	case int:
		return int64(x), nil
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return refuse("not finite")
		}
		return x, nil
	case string:
		if !utf8.ValidString(x) {
			return refuse("not UTF-8")
		}
		if len(x) > store.MaxQueryValue {
			return refuse("too long")
		}
		return x, nil
	case json.Number:
		return refuse("an integer beyond 64 bits")
	}
	return refuse("a list or an object")
}

func names(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
