// Package job is the namespace job: what a block says of itself to whoever
// scheduled it.
package job

import (
	"context"

	"ashlar/vm"
)

// Module declares the namespace.
func Module() *vm.Module {
	return &vm.Module{
		Name: "job",
		Doc:  "What a block says of itself to whoever started it.",
		Funcs: []vm.Function{{
			Name:   "defer",
			Doc:    "Ends the run with exit code 75: something it needs is absent, and nothing was started. It does not return, and no pcall holds it.",
			Params: []vm.Param{{Name: "reason", Type: vm.String}},
			Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				if c.Str(0) == "" {
					return nil, vm.Errorf("validation", "reason is empty: say what is missing")
				}
				return nil, &vm.Exit{Code: 75, Deferred: c.Str(0)}
			},
		}},
	}
}
