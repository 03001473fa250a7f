package assemble

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ashlar/kernel/logjson"
)

// call is one tool call as its pieces come.
type call struct {
	index   int64
	indexed bool // the server gave an index
	id      string
	typ     string
	name    string
	args    strings.Builder
	extra   map[string]any
}

// piece is what one delta says of one call.
type piece struct {
	index   int64
	indexed bool
	id      string
	name    string
	args    string // text, or the JSON of what came instead of text
	fields  map[string]any
}

func readPiece(fields map[string]any) piece {
	p := piece{fields: fields}
	p.index, p.indexed = number(fields["index"])
	p.id, _ = fields["id"].(string)
	fn, _ := fields["function"].(map[string]any)
	p.name, _ = fn["name"].(string)
	switch args := fn["arguments"].(type) {
	case nil:
	case string:
		p.args = args
	default:
		if b, err := logjson.Marshal(args); err == nil {
			p.args = string(b)
		}
	}
	return p
}

// call adds a piece to the call that it belongs to, or begins one. position is
// the piece's place in its delta.
func (a *Assembler) call(p piece, position int) {
	c := a.match(p, position)
	if c == nil {
		c = &call{index: p.index, indexed: p.indexed, extra: map[string]any{}}
		a.calls = append(a.calls, c)
	}
	if c.id == "" {
		c.id = p.id
	}
	if t, ok := p.fields["type"].(string); ok && t != "" {
		c.typ = t
	}
	for key, value := range p.fields {
		if key != "id" && key != "index" && key != "type" && key != "function" && value != nil {
			c.extra[key] = value
		}
	}
	if p.name != c.name {
		c.name += p.name // some servers send a name in pieces, others repeat it whole
	}
	c.args.WriteString(p.args)
}

// match gives the call that a piece continues, nil for a new one. An id decides
// before an index, since servers exist that give every call the index 0; order
// decides where there is neither.
func (a *Assembler) match(p piece, position int) *call {
	switch {
	case p.id != "":
		for _, c := range a.calls {
			if c.id == p.id && p.indexed && c.indexed && c.index == p.index {
				return c
			}
		}
		for _, c := range a.calls {
			if c.id == p.id {
				if p.name != "" && p.indexed && c.indexed && p.index != c.index {
					return nil // one id for two calls; the second gets its own at the end
				}
				return c
			}
		}
		// Nobody has this id. It may come late, for a call whose index is known.
		if c := a.newest(p); c != nil && c.id == "" && !c.endsBefore(p) {
			return c
		}
		return nil
	case p.indexed:
		if c := a.newest(p); c != nil && !c.endsBefore(p) {
			return c
		}
		return nil
	case len(a.calls) == 0:
		return nil
	}
	// Neither: one delta holds at most one piece of each call.
	if a.width > 1 {
		if at := len(a.calls) - a.width + position; at >= 0 && p.name == "" {
			return a.calls[at]
		}
		if p.name != "" {
			return nil
		}
	}
	last := a.calls[len(a.calls)-1]
	if last.endsBefore(p) || p.name != "" && p.name != last.name {
		return nil
	}
	return last
}

// newest gives the last call that began under the piece's index.
func (a *Assembler) newest(p piece) *call {
	for _, c := range slices.Backward(a.calls) {
		if p.indexed && c.indexed && c.index == p.index {
			return c
		}
	}
	return nil
}

// endsBefore reports whether a piece cannot continue the call: it names a function
// and has arguments, while the call's own are a complete object already.
func (c *call) endsBefore(p piece) bool {
	return p.name != "" && strings.TrimSpace(p.args) != "" && complete(c.args.String())
}

func complete(args string) bool {
	args = strings.TrimSpace(args)
	return strings.HasPrefix(args, "{") && strings.HasSuffix(args, "}") && json.Valid([]byte(args))
}

// finished gives the calls in the order in which they began, each with an id of
// its own. A call without arguments has "{}", as the non-streamed form says it,
// unless the reply was cut: then they may have been on the way.
func (a *Assembler) finished(cut bool) []any {
	var list []any
	used := map[string]bool{}
	for _, c := range a.calls {
		used[c.id] = true
	}
	seen := map[string]bool{}
	for i, c := range a.calls {
		if c.id == "" || seen[c.id] {
			c.id = madeID(i+1, len(a.calls), used)
			a.note("synthetic_id")
		}
		seen[c.id], used[c.id] = true, true
		args := c.args.String()
		if strings.TrimSpace(args) == "" && !cut {
			args = "{}"
		}
		if c.typ == "" {
			c.typ = "function"
		}
		m := map[string]any{"id": c.id, "type": c.typ, "function": map[string]any{"name": c.name, "arguments": args}}
		for key, value := range c.extra {
			m[key] = value
		}
		list = append(list, m)
	}
	return list
}

// madeID gives call n an id that depends on nothing but the stream, so that a
// replay makes the same one.
func madeID(n, calls int, used map[string]bool) string {
	for {
		id := fmt.Sprintf("tc%07d", n)
		if !used[id] {
			return id
		}
		n += calls
	}
}

// number reads an index, which some servers send as text or with a fraction.
func number(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case float64:
		return int64(n), true
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	}
	return 0, false
}
