// Package log is the namespace log: one line of text at one of four levels.
package log

import (
	"context"

	"ashlar/vm"
)

// Module declares the namespace.
func Module() *vm.Module {
	m := &vm.Module{Name: "log", Doc: "Log lines. They go to stderr, redacted, and never into the answer."}
	for _, level := range []string{"debug", "info", "warn", "error"} {
		m.Funcs = append(m.Funcs, vm.Function{
			Name:   level,
			Doc:    "Writes one line at level " + level + "; further arguments are ignored.",
			Params: []vm.Param{{Name: "msg", Type: vm.String}, {Name: "…", Type: vm.Any, Optional: true, Rest: true}},
			Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				c.Host.Log(level, c.Str(0), nil)
				return nil, nil
			},
		})
	}
	return m
}
