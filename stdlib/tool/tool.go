// Package tool is the namespace tool: the registry of a run's tools, and the door
// to the bus. A handler written in a script is a tool like any other.
//
// It must never run a handler itself: kernel/tool.Bus does.
package tool

import (
	"context"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/tool"
	"ashlar/vm"
)

// ContractFields are what a script may say of a tool beside its handler; the
// namespace knl takes the same ones for a device's tools.
func ContractFields() []vm.Param {
	return []vm.Param{
		{Name: "description", Type: vm.String, Optional: true, Doc: "what the model reads"},
		{Name: "input_schema", Type: vm.Map, Optional: true, Doc: "JSON Schema of the arguments"},
		{Name: "group", Type: vm.String, Optional: true},
		{Name: "read_only", Type: vm.Boolean, Optional: true, Doc: "changes nothing: may run beside others"},
		{Name: "idempotent", Type: vm.Boolean, Optional: true, Doc: "running it twice is running it once"},
		{Name: "repeatable", Type: vm.Boolean, Optional: true, Doc: "asking again and again is how it is used (polling): no loop is seen in it"},
		{Name: "timeout", Type: vm.Number, Optional: true, Doc: "seconds of one call"},
		{Name: "capabilities", Type: vm.List, Optional: true},
	}
}

// ContractOf reads a contract from checked options.
func ContractOf(name string, o vm.Opts) tool.Contract {
	c := tool.Contract{
		Name: name, Description: o.Str("description", ""), Group: o.Str("group", ""),
		ReadOnly: o.Bool("read_only", false), Idempotent: o.Bool("idempotent", false), Repeatable: o.Bool("repeatable", false),
		Timeout: time.Duration(o.Float("timeout", 0) * float64(time.Second)),
	}
	if schema, ok := o["input_schema"].(map[string]any); ok {
		c.Input = schema
	}
	if list, ok := o["capabilities"].([]any); ok {
		for _, e := range list {
			if s, ok := e.(string); ok {
				c.Capabilities = append(c.Capabilities, s)
			}
		}
	}
	return c
}

// checkContract refuses what ContractOf would have to pass over.
func checkContract(o vm.Opts) error {
	if secs := o.Float("timeout", 1); secs <= 0 || secs > 1e6 {
		return vm.Errorf(string(kernel.Validation), "spec.timeout must be more than 0 seconds, got %v", secs)
	}
	list, _ := o["capabilities"].([]any)
	for i, e := range list {
		if _, ok := e.(string); !ok {
			return vm.Errorf(string(kernel.Validation), "spec.capabilities[%d]: got %s, want string", i+1, vm.TypeName(e))
		}
	}
	return nil
}

// HandlerOf makes a tool's handler of a script's function: it is called with the
// arguments, and its first result is the tool's.
func HandlerOf(fn *vm.Func) tool.Handler {
	return func(ctx context.Context, args map[string]any) (any, error) {
		out, err := fn.Call(vm.InTool(ctx), args)
		if err != nil || len(out) == 0 {
			return nil, err
		}
		return out[0], nil
	}
}

// Pool is the run's budget, from which a script's own calls take.
type Pool interface {
	Reserve(ctx context.Context, amounts budget.Amounts) (granted bool, tag string, err error)
}

// counter is the recorder of a call that no session records: it only reserves.
type counter struct{ pool Pool }

// Intent implements tool.Recorder.
func (c counter) Intent(ctx context.Context, call tool.Call) error {
	granted, tag, err := c.pool.Reserve(ctx, budget.Amounts{budget.ToolCalls: 1})
	if err == nil && !granted {
		err = kernel.Errorf("tool."+call.Name, kernel.Refused, "the run's budget of %s does not cover the call", tag)
	}
	return err
}

// Outcome implements tool.Recorder.
func (counter) Outcome(context.Context, tool.Call, tool.Result) error { return nil }

// Refuse implements tool.Recorder.
func (counter) Refuse(context.Context, tool.Call, tool.Result) error { return nil }

// Keep implements tool.Recorder: the script has the whole result.
func (counter) Keep(context.Context, []byte) (string, error) { return "", nil }

// registrations is what an observer of the bus may be too: it then sees what a script
// registers.
type registrations interface{ ToolRegistered(c tool.Contract) }

// Module declares the namespace over a bus. pool may be nil: nothing is bounded.
func Module(bus *tool.Bus, pool Pool) *vm.Module {
	nameParam := vm.Param{Name: "name", Type: vm.String}
	return &vm.Module{
		Name: "tool",
		Doc:  "Tools by name. Every call goes through the bus: it is validated, bounded and recorded there.",
		Funcs: []vm.Function{
			{
				Name: "register", Doc: "Offers a tool; one of that name is replaced. handler(input) returns the result.",
				Params: []vm.Param{nameParam,
					{Name: "spec", Type: vm.Options, Fields: ContractFields()},
					{Name: "handler", Type: vm.Callable},
					{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{{Name: "group", Type: vm.String, Optional: true}}}},
				Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if c.Str(0) == "" {
						return nil, vm.Errorf(string(kernel.Validation), "name is empty")
					}
					if err := checkContract(c.Map(1)); err != nil {
						return nil, err
					}
					contract := ContractOf(c.Str(0), c.Map(1))
					if g := c.Map(3).Str("group", ""); g != "" {
						contract.Group = g
					}
					bus.Registry.Register(tool.Tool{Contract: contract, Handler: HandlerOf(c.Func(2))})
					if o, ok := bus.Observer.(registrations); ok {
						o.ToolRegistered(contract)
					}
					return nil, nil
				},
			},
			{
				Name: "call", Doc: "Runs a tool by name and gives what its handler returned. An unknown name and a failing handler raise, and so does a call that the run's budget does not cover.",
				Params:  []vm.Param{nameParam, {Name: "input", Type: vm.Map, Optional: true}},
				Results: []vm.Param{{Name: "result", Type: vm.Any}},
				Effect:  vm.Write, Record: vm.RecordNone, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return call(ctx, bus, pool, c) },
			},
			{
				Name: "list", Doc: "The names of the registered tools, sorted.", Effect: vm.Pure,
				Results: []vm.Param{{Name: "names", Type: vm.List}},
				Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
					names := []any{}
					for _, t := range bus.Registry.List() {
						names = append(names, t.Contract.Name)
					}
					return []vm.Value{names}, nil
				},
			},
			{
				Name: "schema", Doc: "What a model needs to know of each tool, sorted by name.", Effect: vm.Pure,
				Results: []vm.Param{{Name: "schemas", Type: vm.List}},
				Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
					list := []any{}
					for _, t := range bus.Registry.List() {
						list = append(list, schemaOf(t.Contract))
					}
					return []vm.Value{list}, nil
				},
			},
		},
	}
}

func schemaOf(c tool.Contract) map[string]any {
	input := c.Input
	if input == nil {
		input = map[string]any{"type": "object"}
	}
	m := map[string]any{"name": c.Name, "description": c.Description, "input_schema": input}
	if c.Group != "" {
		m["group"] = c.Group
	}
	if c.Repeatable {
		m["repeatable"] = true
	}
	return m
}

func call(ctx context.Context, bus *tool.Bus, pool Pool, c *vm.Call) ([]vm.Value, error) {
	args := map[string]any(c.Map(1))
	if args == nil {
		args = map[string]any{}
	}
	one := tool.Call{Name: c.Str(0), Args: args}
	if pool != nil {
		one.Record = counter{pool}
	}
	r, err := bus.Dispatch(ctx, one)
	if err != nil {
		return nil, err
	}
	if r.OK {
		return []vm.Value{r.Value}, nil
	}
	text, _ := r.Value.(string)
	switch r.Kind {
	case "not_found":
		return nil, vm.Errorf(string(kernel.NotFound), "tool not found: %s", c.Str(0))
	case "validation":
		return nil, vm.Errorf(string(kernel.Validation), "%s", text)
	case "timeout":
		return nil, vm.Errorf(string(kernel.Timeout), "%s", text)
	case "cancelled":
		return nil, vm.Errorf(string(kernel.Cancelled), "%s", text)
	case "denied", "budget":
		return nil, vm.Errorf(string(kernel.Refused), "%s", text)
	}
	return nil, vm.Errorf(string(kernel.Internal), "%s", text)
}
