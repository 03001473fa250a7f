// Package env is the namespace std.env: the run's environment, seen through an
// overlay that only this run sees, and where it runs.
package env

import (
	"context"
	"strings"

	"ashlar/vm"
)

// Module declares the namespace. agentID is the run's correlation id for
// std.env.agent_id, "" when none.
func Module(agentID string) *vm.Module {
	str := []vm.Param{{Name: "value", Type: vm.String}}
	return &vm.Module{
		Name: "std.env",
		Doc:  "Environment variables of this run. set writes an overlay: neither the process nor a child sees it.",
		Funcs: []vm.Function{
			{
				Name: "get", Doc: "Gives a variable's value, nil when it is not set.",
				Params:  []vm.Param{{Name: "key", Type: vm.String}},
				Results: []vm.Param{{Name: "value", Type: vm.String, Optional: true}}, Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if v, ok := c.Host.Env.Get(c.Str(0)); ok {
						return []vm.Value{v}, nil
					}
					return []vm.Value{nil}, nil
				},
			},
			{
				Name: "get_or", Doc: "Gives a variable's value, or the default when it is not set.",
				Params:  []vm.Param{{Name: "key", Type: vm.String}, {Name: "default", Type: vm.Any}},
				Results: []vm.Param{{Name: "value", Type: vm.Any}}, Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if v, ok := c.Host.Env.Get(c.Str(0)); ok {
						return []vm.Value{v}, nil
					}
					return []vm.Value{c.Args[1]}, nil
				},
			},
			{
				Name: "set", Doc: "Sets a variable in this run's overlay.",
				Params: []vm.Param{{Name: "key", Type: vm.String}, {Name: "value", Type: vm.String}}, Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if name := c.Str(0); name == "" || strings.ContainsAny(name, "=\x00") {
						return nil, vm.Errorf("validation", "key %q is no variable's name", name)
					}
					c.Host.Env.Set(c.Str(0), c.Str(1))
					return nil, nil
				},
			},
			{
				Name: "home", Doc: "The user's home directory, nil when it is not known.",
				Results: []vm.Param{{Name: "path", Type: vm.String, Optional: true}}, Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if v, ok := c.Host.Env.Get("HOME"); ok {
						return []vm.Value{v}, nil
					}
					return []vm.Value{nil}, nil
				},
			},
			{
				Name: "agent_id", Doc: "The agent's correlation id, \"\" when it has none.", Results: str, Effect: vm.Read,
				Impl: func(context.Context, *vm.Call) ([]vm.Value, error) { return []vm.Value{agentID}, nil },
			},
			{
				Name: "project_root", Doc: "The absolute path of the project's directory.", Results: str, Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return []vm.Value{c.Host.Dir}, nil },
			},
		},
	}
}
