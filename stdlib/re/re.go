// Package re is the namespace std.re: regular expressions of RE2, in time linear in
// the text.
package re

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"ashlar/vm"
)

// Bounds of one call.
const (
	MaxPatternBytes = 64 << 10
	maxKept         = 256 // compiled patterns
)

// patterns keeps what was compiled, for scripts that match in a loop.
type patterns struct {
	mu   sync.Mutex
	kept map[string]*regexp.Regexp
}

func (p *patterns) compile(s string) (*regexp.Regexp, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r, ok := p.kept[s]; ok {
		return r, nil
	}
	if len(s) > MaxPatternBytes {
		return nil, vm.Errorf("limit", "the pattern is longer than %d bytes", MaxPatternBytes)
	}
	r, err := regexp.Compile(s)
	if err != nil {
		return nil, vm.Errorf("validation", "%s (patterns are those of RE2: no look-around, no back references)", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if len(p.kept) >= maxKept {
		clear(p.kept)
	}
	p.kept[s] = r
	return r, nil
}

// Module declares the namespace.
func Module() *vm.Module {
	p := &patterns{kept: map[string]*regexp.Regexp{}}
	pattern, text := vm.Param{Name: "pattern", Type: vm.String}, vm.Param{Name: "text", Type: vm.String}
	limit := vm.Param{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
		{Name: "limit", Type: vm.Integer, Optional: true, Doc: "at most so many"},
	}}
	fn := func(name, doc string, results []vm.Param, impl func(r *regexp.Regexp, c *vm.Call) ([]vm.Value, error), params ...vm.Param) vm.Function {
		return vm.Function{Name: name, Doc: doc, Params: append([]vm.Param{pattern, text}, params...), Results: results, Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				r, err := p.compile(c.Str(0))
				if err != nil {
					return nil, err
				}
				return impl(r, c)
			}}
	}
	return &vm.Module{
		Name: "std.re",
		Doc: "Regular expressions of RE2, in time linear in the text. A match is {text, start, stop, groups, named}: start and stop are byte positions " +
			"as string.find gives them; groups has false for one that took no part.",
		Funcs: []vm.Function{
			fn("match", "The first match, nil where there is none.", []vm.Param{{Name: "match", Type: vm.Map, Optional: true}}, func(r *regexp.Regexp, c *vm.Call) ([]vm.Value, error) {
				at := r.FindStringSubmatchIndex(c.Str(1))
				if at == nil {
					return []vm.Value{nil}, nil
				}
				return []vm.Value{match(r, c.Str(1), at)}, nil
			}),
			fn("find_all", "Every match, a list.", []vm.Param{{Name: "matches", Type: vm.List}}, findAll, limit),
			fn("replace", "With every match replaced: $1 and ${name} in replacement stand for groups, $$ for a dollar.", []vm.Param{{Name: "text", Type: vm.String}}, replace,
				vm.Param{Name: "replacement", Type: vm.String}, limit),
			fn("split", "The parts between matches, a list.", []vm.Param{{Name: "parts", Type: vm.List}}, split, limit),
		},
	}
}

func match(r *regexp.Regexp, text string, at []int) map[string]any {
	groups, named := []any{}, map[string]any{}
	for i := 1; i <= r.NumSubexp(); i++ {
		var v any = false
		if at[2*i] >= 0 {
			v = text[at[2*i]:at[2*i+1]]
		}
		groups = append(groups, v)
		if name := r.SubexpNames()[i]; name != "" {
			named[name] = v
		}
	}
	return map[string]any{"text": text[at[0]:at[1]], "start": int64(at[0] + 1), "stop": int64(at[1]), "groups": groups, "named": named}
}

// atMost reads opts.limit; -1 is no limit.
func atMost(o vm.Opts) (int, error) {
	if o["limit"] == nil {
		return -1, nil
	}
	n := o.Int("limit", 0)
	if n < 1 {
		return 0, vm.Errorf("validation", "opts.limit must be at least 1, got %d", n)
	}
	return int(min(n, 1<<30)), nil
}

func findAll(r *regexp.Regexp, c *vm.Call) ([]vm.Value, error) {
	n, err := atMost(c.Map(2))
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, at := range r.FindAllStringSubmatchIndex(c.Str(1), n) {
		out = append(out, match(r, c.Str(1), at))
	}
	return []vm.Value{out}, nil
}

func replace(r *regexp.Regexp, c *vm.Call) ([]vm.Value, error) {
	n, err := atMost(c.Map(3))
	if err != nil {
		return nil, err
	}
	text, with := c.Str(1), c.Str(2)
	var out []byte
	from := 0
	for _, at := range r.FindAllStringSubmatchIndex(text, n) {
		out = append(out, text[from:at[0]]...)
		out = r.ExpandString(out, with, text, at)
		from = at[1]
		if len(out) > vm.MaxStringBytes {
			return nil, vm.Errorf("limit", "the text would be longer than %d bytes", vm.MaxStringBytes)
		}
	}
	return []vm.Value{string(append(out, text[from:]...))}, nil
}

func split(r *regexp.Regexp, c *vm.Call) ([]vm.Value, error) {
	n, err := atMost(c.Map(2))
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, s := range r.Split(c.Str(1), n) {
		out = append(out, s)
	}
	return []vm.Value{out}, nil
}
