// Package text is the namespace std.text: shaping text for people and models, and
// comparing it.
package text

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
	"github.com/charmbracelet/x/ansi"
	"github.com/sahilm/fuzzy"

	"ashlar/vm"
)

// Bounds of one call.
const (
	MaxDiffBytes  = 8 << 20 // both texts together
	MaxCandidates = 100_000
	MaxContext    = 1000 // lines around a change
	maxWidth      = 1 << 20
)

// Module declares the namespace.
func Module() *vm.Module {
	in := vm.Param{Name: "text", Type: vm.String}
	out := []vm.Param{{Name: "text", Type: vm.String}}
	return &vm.Module{
		Name: "std.text",
		Doc:  "Text for people and models: margins, widths, cuts, differences, likeness.",
		Funcs: []vm.Function{
			{
				Name: "dedent", Doc: "Takes away the white space that every line which is not blank begins with; blank lines become empty.",
				Params: []vm.Param{in}, Results: out, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return []vm.Value{dedent(c.Str(0))}, nil },
			},
			{
				Name: "wrap", Doc: "Breaks lines between words so that none is wider than width columns; a longer word is broken inside.",
				Params: []vm.Param{in, {Name: "width", Type: vm.Integer}}, Results: out, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					width := c.Int(1, 0)
					if width < 1 || width > maxWidth {
						return nil, vm.Errorf("validation", "width must be 1 to %d, got %d", maxWidth, width)
					}
					return []vm.Value{ansi.Wrap(c.Str(0), int(width), "")}, nil
				},
			},
			{
				Name: "truncate_utf8", Doc: "The longest beginning of at most so many bytes that splits no character.",
				Params: []vm.Param{in, {Name: "bytes", Type: vm.Integer}}, Results: out, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					n := c.Int(1, 0)
					if n < 0 {
						return nil, vm.Errorf("validation", "bytes must not be negative, got %d", n)
					}
					return []vm.Value{Truncate(c.Str(0), n)}, nil
				},
			},
			{
				Name: "diff", Doc: "The unified difference of two texts, empty where they are the same.",
				Params: []vm.Param{{Name: "old", Type: vm.String}, {Name: "new", Type: vm.String}, {Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
					{Name: "from", Type: vm.String, Optional: true, Doc: "the old text's name; default a"},
					{Name: "to", Type: vm.String, Optional: true, Doc: "the new text's name; default b"},
					{Name: "context", Type: vm.Integer, Optional: true, Doc: "unchanged lines around each change; default 3"},
				}}},
				Results: []vm.Param{{Name: "diff", Type: vm.String}}, Effect: vm.Pure, Impl: diff,
			},
			{
				Name: "fuzzy", Doc: "The candidates that hold the letters of a pattern in its order, best first: {{text, index, score, at = {…}}}; at are the byte positions that matched.",
				Params: []vm.Param{{Name: "pattern", Type: vm.String}, {Name: "candidates", Type: vm.List}, {Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
					{Name: "limit", Type: vm.Integer, Optional: true, Doc: "at most so many"},
				}}},
				Results: []vm.Param{{Name: "matches", Type: vm.List}}, Effect: vm.Pure, Impl: find,
			},
		},
	}
}

// Truncate is truncate_utf8.
func Truncate(s string, n int64) string {
	if int64(len(s)) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func dedent(s string) string {
	lines := strings.Split(s, "\n")
	margin, found := "", false
	for i, line := range lines {
		rest := strings.TrimLeft(line, " \t")
		if rest == "" || rest == "\r" {
			lines[i] = rest
			continue
		}
		own := line[:len(line)-len(rest)]
		if !found {
			margin, found = own, true
		}
		for !strings.HasPrefix(own, margin) {
			margin = margin[:len(margin)-1]
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, margin)
	}
	return strings.Join(lines, "\n")
}

func diff(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	old, fresh, o := c.Str(0), c.Str(1), c.Map(2)
	if len(old)+len(fresh) > MaxDiffBytes {
		return nil, vm.Errorf("limit", "the two texts have %d bytes; at most %d are compared", len(old)+len(fresh), MaxDiffBytes)
	}
	around := o.Int("context", 3)
	if around < 0 || around > MaxContext {
		return nil, vm.Errorf("validation", "opts.context must be 0 to %d, got %d", MaxContext, around)
	}
	text, err := udiff.ToUnified(o.Str("from", "a"), o.Str("to", "b"), old, udiff.Lines(old, fresh), int(around))
	if err != nil {
		return nil, err
	}
	return []vm.Value{text}, nil
}

func find(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	list, _ := c.Args[1].([]any)
	if len(list) > MaxCandidates {
		return nil, vm.Errorf("limit", "%d candidates; at most %d are compared", len(list), MaxCandidates)
	}
	names := make([]string, len(list))
	for i, v := range list {
		s, ok := v.(string)
		if !ok {
			return nil, vm.Errorf("validation", "candidates[%d]: got %s, want string", i+1, vm.TypeName(v))
		}
		names[i] = s
	}
	limit := c.Map(2).Int("limit", int64(len(names)))
	if limit < 0 {
		return nil, vm.Errorf("validation", "opts.limit must not be negative, got %d", limit)
	}
	out := []any{}
	for _, m := range fuzzy.Find(c.Str(0), names) {
		if int64(len(out)) == limit {
			break
		}
		at := make([]any, len(m.MatchedIndexes))
		for i, n := range m.MatchedIndexes {
			at[i] = int64(n + 1)
		}
		out = append(out, map[string]any{"text": m.Str, "index": int64(m.Index + 1), "score": int64(m.Score), "at": at})
	}
	return []vm.Value{out}, nil
}
