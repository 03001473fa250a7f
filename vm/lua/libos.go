package lua

import (
	"context"
	"time"

	"ashlar/vm"
)

// systemModules are os and io: parts of the Lua language that reach the world, so
// they are syscalls like any other and go to the journal.
func (e *Engine) systemModules() []*vm.Module {
	return []*vm.Module{e.osModule(), e.ioModule()}
}

func (e *Engine) osModule() *vm.Module {
	text := func(name string, optional bool) vm.Param {
		return vm.Param{Name: name, Type: vm.String, Optional: optional}
	}
	return &vm.Module{
		Name: "os",
		Doc:  "The parts of Lua's os that belong to a run.",
		Funcs: []vm.Function{
			{Name: "time", Doc: "Seconds since 1970, now or of a date table.", Effect: vm.Read,
				Params: []vm.Param{{Name: "date", Type: vm.Map, Optional: true}}, Impl: osTime},
			{Name: "date", Doc: "A time as text (strftime) or, with *t, as a table; ! means UTC.", Effect: vm.Read,
				Params: []vm.Param{text("format", true), {Name: "time", Type: vm.Number, Optional: true}}, Impl: osDate},
			{Name: "clock", Doc: "Seconds since the run began.", Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{c.Host.Clock.Now().Sub(e.started).Seconds()}, nil
				}},
			{Name: "difftime", Doc: "Seconds between two times.", Effect: vm.Pure,
				Params: []vm.Param{{Name: "later", Type: vm.Number}, {Name: "earlier", Type: vm.Number, Optional: true}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{c.Float(0, 0) - c.Float(1, 0)}, nil
				}},
			{Name: "getenv", Doc: "A variable of the run's environment, nil when it is not set.", Effect: vm.Read,
				Params: []vm.Param{text("name", false)}, Impl: osGetenv},
			{Name: "remove", Doc: "Removes a file; true, or nil and a message.", Effect: vm.Write, Capability: "fs.delete",
				Waits: true, Params: []vm.Param{text("path", false)},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return outcome(c, c.Host.Files.Remove(c.Str(0)))
				}},
			{Name: "rename", Doc: "Renames a file; true, or nil and a message.", Effect: vm.Write, Capability: "fs.write",
				Waits: true, Params: []vm.Param{text("from", false), text("to", false)},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return outcome(c, c.Host.Files.Rename(c.Str(0), c.Str(1)))
				}},
			{Name: "tmpname", Doc: "The path of a new empty file.", Effect: vm.Write, Capability: "fs.write", Waits: true,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					path, err := c.Host.Files.Temp()
					return []vm.Value{path}, err
				}},
			{Name: "exit", Doc: "Ends the run; code 0 or true as if it returned nil, other codes as failed.", Effect: vm.Pure,
				Params: []vm.Param{{Name: "code", Type: vm.Integer, Also: []vm.Type{vm.Boolean}, Optional: true},
					{Name: "close", Type: vm.Boolean, Optional: true}},
				Impl: osExit},
		},
	}
}

// outcome is how Lua's os and io report what is no bug of the script.
func outcome(c *vm.Call, err error) ([]vm.Value, error) {
	if err != nil {
		return []vm.Value{nil, c.Host.Redact(err.Error())}, nil
	}
	return []vm.Value{true}, nil
}

func osExit(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	code := int(c.Int(0, 0))
	if ok, isBool := c.Args[0].(bool); isBool && !ok {
		code = 1
	}
	return nil, &vm.Exit{Code: code}
}

func osGetenv(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	if v, ok := c.Host.Env.Get(c.Str(0)); ok {
		return []vm.Value{v}, nil
	}
	return []vm.Value{nil}, nil
}

func osTime(_ context.Context, c *vm.Call) ([]vm.Value, error) {
	date := c.Map(0)
	if date == nil {
		return []vm.Value{c.Host.Clock.Now().Unix()}, nil
	}
	part := func(key string, def int64) (int, error) {
		if date[key] == nil && def < 0 {
			return 0, vm.Errorf("validation", "field %q is missing in the date table", key)
		}
		n, ok := dateField(date[key], def)
		if !ok {
			return 0, vm.Errorf("validation", "field %q of the date table is not an integer", key)
		}
		return n, nil
	}
	var f [6]int
	for i, field := range []struct {
		key string
		def int64
	}{{"year", -1}, {"month", -1}, {"day", -1}, {"hour", 12}, {"min", 0}, {"sec", 0}} {
		var err error
		if f[i], err = part(field.key, field.def); err != nil {
			return nil, err
		}
	}
	t := time.Date(f[0], time.Month(f[1]), f[2], f[3], f[4], f[5], 0, c.Host.Clock.Now().Location())
	return []vm.Value{t.Unix()}, nil
}
