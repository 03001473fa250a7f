package lua

import (
	"context"
	"fmt"
	"unicode/utf8"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// Bounds of one value on its way out of a script. Shared subtables are written
// once for each place, so a small table can stand for a huge value.
const (
	maxValues = 16 << 20
	pollEvery = 1 << 12 // values between two looks at the context
)

// decoder gives Lua values their neutral form.
type decoder struct {
	eng   *Engine
	ctx   context.Context
	mixed bool           // mixed tables become objects instead of errors
	raw   bool           // strings directly in the outermost table are not checked
	above []*glua.LTable // the tables around the current value
	count int
}

// fromLua gives a value that leaves a script at top level: nil and null are nil,
// and a string passes as it is (its parameter says whether it must be UTF-8).
// Errors are of kind validation and name the path of what cannot cross.
func (e *Engine) fromLua(s *strand, v glua.LValue, mixed bool) (vm.Value, error) {
	switch x := v.(type) {
	case *glua.LTable:
		d := decoder{eng: e, ctx: s.ctx, mixed: mixed}
		return d.outermost(x)
	case glua.LString:
		return string(x), nil
	}
	return e.scalar(v)
}

// optionsFromLua is fromLua for a table of options, whose fields are declared and
// may be strings of any bytes.
func (e *Engine) optionsFromLua(s *strand, t *glua.LTable) (vm.Value, error) {
	d := decoder{eng: e, ctx: s.ctx, raw: true}
	return d.outermost(t)
}

func (d *decoder) outermost(t *glua.LTable) (vm.Value, error) {
	v, err := d.table(t)
	if err != nil {
		return nil, at(err, "$").(*valueError).public()
	}
	return v, nil
}

// scalar gives every value that is no table and no string.
func (e *Engine) scalar(v glua.LValue) (vm.Value, error) {
	switch x := v.(type) {
	case *glua.LNilType:
		return nil, nil
	case glua.LBool:
		return bool(x), nil
	case glua.LNumber:
		n, err := number(x)
		if err != nil {
			return nil, err.(*valueError).public()
		}
		return n, nil
	case *glua.LFunction:
		return e.newFunc(x), nil
	case *glua.LUserData:
		if x == e.bridge.null {
			return nil, nil
		}
		switch h := x.Value.(type) {
		case exact:
			return h.n, nil
		case *vm.Object:
			return h, nil
		}
	}
	return nil, bad("a %s cannot leave the script", v.Type()).public()
}

// value gives a value inside a table.
func (d *decoder) value(v glua.LValue) (vm.Value, error) {
	d.count++
	if d.count%pollEvery == 0 {
		if d.ctx.Err() != nil {
			return nil, bad("interrupted")
		}
		if d.count > maxValues {
			return nil, bad("the value is too large (more than %d values)", maxValues)
		}
	}
	switch x := v.(type) {
	case glua.LString:
		s := string(x)
		if !utf8.ValidString(s) && !(d.raw && len(d.above) == 1) {
			return nil, bad("a string that is not UTF-8")
		}
		return s, nil
	case glua.LNumber:
		return number(x)
	case *glua.LTable:
		return d.table(x)
	}
	out, err := d.eng.scalar(v)
	if err != nil {
		return nil, bad("a %s cannot leave the script", v.Type())
	}
	return out, nil
}

func (d *decoder) table(t *glua.LTable) (vm.Value, error) {
	if len(d.above) >= vm.MaxDepth {
		return nil, tooDeep()
	}
	for _, outer := range d.above {
		if outer == t {
			return nil, bad("a cycle: the table contains itself")
		}
	}
	d.above = append(d.above, t)
	defer func() { d.above = d.above[:len(d.above)-1] }()

	n := t.Len()
	tagged := d.eng.isList(t)
	if n == 0 {
		k, _ := t.Next(glua.LNil)
		switch {
		case k != glua.LNil:
			if tagged && !d.mixed {
				return nil, bad("a list with the key %s", keyText(k))
			}
			return d.object(t)
		case tagged:
			return []any{}, nil
		}
		return map[string]any{}, nil
	}
	if k, _ := t.Next(glua.LNumber(n)); k != glua.LNil {
		if d.mixed {
			return d.object(t)
		}
		return nil, bad("a table with both list and named parts (%d items and the key %s)", n, keyText(k))
	}
	list := make([]any, n)
	for i := range list {
		item := t.RawGetInt(i + 1)
		if item == glua.LNil {
			if d.mixed {
				return d.object(t)
			}
			return nil, bad("a list with a hole at index %d (std.json.null keeps a place)", i+1)
		}
		v, err := d.value(item)
		if err != nil {
			return nil, at(err, index(i+1))
		}
		list[i] = v
	}
	return list, nil
}

// object gives a table as an object. With mixed, numbers among its keys become
// their text; a text that is there twice is an error, since one would be lost.
func (d *decoder) object(t *glua.LTable) (vm.Value, error) {
	out := map[string]any{}
	for k, v := t.Next(glua.LNil); k != glua.LNil; k, v = t.Next(k) {
		var key string
		switch x := k.(type) {
		case glua.LString:
			key = string(x)
		case glua.LNumber:
			if !d.mixed {
				return nil, bad("an object with the number %s as a key (keys must be strings)", x.String())
			}
			key = x.String()
		default:
			return nil, bad("an object with a %s as a key (keys must be strings)", k.Type())
		}
		if !utf8.ValidString(key) {
			return nil, bad("an object with a key that is not UTF-8")
		}
		if _, twice := out[key]; twice {
			return nil, bad("an object with the key %q both as a number and as a string", key)
		}
		item, err := d.value(v)
		if err != nil {
			return nil, at(err, field(key))
		}
		out[key] = item
	}
	return out, nil
}

// isList reports whether a table was tagged as a list, which keeps it one when it
// is empty.
func (e *Engine) isList(t *glua.LTable) bool {
	if t.Metatable == e.bridge.list {
		return true
	}
	mt, ok := t.Metatable.(*glua.LTable)
	return ok && mt.RawGetString("__jsontype") == glua.LString("array")
}

// valueError says why a value cannot cross; its path is put together on the way
// out, so that a value that can cross pays nothing for it.
type valueError struct{ path, why string }

func (e *valueError) Error() string {
	if e.path == "" || e.path == "$" {
		return e.why
	}
	return e.path + ": " + e.why
}

func (e *valueError) public() *vm.Error { return vm.Errorf("validation", "%s", e.Error()) }

func bad(format string, args ...any) *valueError {
	return &valueError{why: fmt.Sprintf(format, args...)}
}

func tooDeep() error { return bad("nested deeper than %d", vm.MaxDepth) }

// at puts a step in front of an error's path.
func at(err error, step string) error {
	if ve, ok := err.(*valueError); ok {
		ve.path = step + ve.path
	}
	return err
}

func index(i int) string { return fmt.Sprintf("[%d]", i) }

func field(key string) string {
	for i := range len(key) {
		c := key[i]
		word := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9'
		if !word {
			return fmt.Sprintf("[%q]", key)
		}
	}
	if key == "" {
		return `[""]`
	}
	return "." + key
}

func keyText(k glua.LValue) string {
	if s, ok := k.(glua.LString); ok {
		return fmt.Sprintf("%q", string(s))
	}
	return k.String()
}
