// Package time is the namespace std.time: the run's clock, which a replay gives
// again as it was.
package time

import (
	"context"
	"math"
	"time"

	"ashlar/vm"
)

// MaxSleep is the longest single sleep of a script.
const MaxSleep = 24 * time.Hour

// Module declares the namespace.
func Module() *vm.Module {
	return &vm.Module{
		Name: "std.time",
		Doc:  "The run's clock.",
		Funcs: []vm.Function{
			{
				Name: "now", Doc: "Seconds since 1970, with a fraction.", Effect: vm.Read,
				Results: []vm.Param{{Name: "seconds", Type: vm.Number}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{float64(c.Host.Clock.Now().UnixMicro()) / 1e6}, nil
				},
			},
			{
				Name: "millis", Doc: "Milliseconds since 1970.", Effect: vm.Read,
				Results: []vm.Param{{Name: "milliseconds", Type: vm.Integer}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{c.Host.Clock.Now().UnixMilli()}, nil
				},
			},
			{
				Name: "sleep", Doc: "Waits so many seconds, 0 to 86400; other tasks run meanwhile, and a cancelled task stops waiting.",
				Effect: vm.Read, Waits: true,
				Params: []vm.Param{{Name: "seconds", Type: vm.Number}},
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					secs := c.Float(0, 0)
					if secs < 0 || secs > MaxSleep.Seconds() {
						return nil, vm.Errorf("validation", "seconds must be 0 to %d, got %v", int(MaxSleep.Seconds()), secs)
					}
					return nil, c.Host.Clock.Sleep(ctx, time.Duration(math.Round(secs*1e9)))
				},
			},
			{
				Name: "measure", Doc: "Calls fn and gives the seconds that it took, then what it returned.", Effect: vm.Pure,
				Params:  []vm.Param{{Name: "fn", Type: vm.Callable}},
				Results: []vm.Param{{Name: "seconds", Type: vm.Number}, {Name: "…", Type: vm.Opaque, Rest: true}},
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					start := c.Host.Clock.Now()
					out, err := c.Func(0).CallRef(ctx)
					if err != nil {
						return nil, err
					}
					took, err := c.Note(c.Host.Clock.Now().Sub(start).Seconds())
					return append([]vm.Value{took}, out...), err
				},
			},
		},
	}
}
