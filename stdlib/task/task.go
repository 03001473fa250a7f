package task

import (
	"context"
	"math"
	"time"

	"ashlar/vm"
)

// MaxSleep bounds one sleep.
const MaxSleep = 24 * time.Hour

// Module declares std.task for one run.
func Module(host *vm.Host) *vm.Module {
	g := &group{host: host, byID: map[int]*entry{}, failed: map[int]*entry{}}
	class := taskClass(g)
	return &vm.Module{
		Name:    "std.task",
		Doc:     "Tasks: functions that run beside one another, one of them at a time.",
		Close:   g.report,
		Classes: []*vm.Class{class},
		Funcs: []vm.Function{
			{
				Name: "spawn",
				Doc:  "Starts fn as a task and gives its handle.",
				Params: []vm.Param{{Name: "fn", Type: vm.Callable}, {Name: "opts", Type: vm.Options, Optional: true,
					Fields: []vm.Param{
						{Name: "name", Type: vm.String, Optional: true, Doc: "shown in messages"},
						{Name: "driver", Type: vm.String, Optional: true, Doc: "async_fn (alias async) or coroutine: accepted, all run alike"},
					}}},
				Results: []vm.Param{{Name: "handle", Type: vm.Handle, Class: class.Name}},
				Effect:  vm.Pure,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					return g.spawn(ctx, c, class)
				},
			},
			{
				Name:   "sleep",
				Doc:    "Waits for so many milliseconds; raises when the task is cancelled.",
				Params: []vm.Param{{Name: "ms", Type: vm.Number}},
				Effect: vm.Write, Record: vm.RecordResult, Waits: true,
				Impl: sleep,
			},
			{
				Name:    "current",
				Doc:     "The running task as {id, name, cancelled}, nil in the block itself.",
				Results: []vm.Param{{Name: "task", Type: vm.Map, Optional: true}},
				Effect:  vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					e := g.find(c.Task)
					if e == nil {
						return []vm.Value{nil}, nil
					}
					return []vm.Value{map[string]any{"id": e.id, "name": e.name, "cancelled": e.task.Ctx.Err() != nil}}, nil
				},
			},
		},
	}
}

func (g *group) spawn(ctx context.Context, c *vm.Call, class *vm.Class) ([]vm.Value, error) {
	opts := c.Map(1)
	switch d := opts.Str("driver", "async_fn"); d {
	case "async_fn", "async", "coroutine":
	default:
		return nil, vm.Errorf("validation", "opts.driver: unknown driver %q; it takes async, async_fn or coroutine", d)
	}
	name := opts.Str("name", "")
	t, err := c.Engine.Spawn(ctx, name, c.Func(0))
	if err != nil {
		return nil, err
	}
	return []vm.Value{&vm.Object{Class: class, Data: g.add(t, name)}}, nil
}

func sleep(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	ms := c.Float(0, 0)
	if ms < 0 || ms > float64(MaxSleep/time.Millisecond) || math.IsNaN(ms) {
		return nil, vm.Errorf("validation", "ms: got %v, want 0 to %d", ms, MaxSleep/time.Millisecond)
	}
	if err := c.Host.Clock.Sleep(ctx, time.Duration(ms*float64(time.Millisecond))); err != nil {
		return nil, cancelled(ctx)
	}
	return nil, nil
}

// taskClass is the class of task handles.
func taskClass(g *group) *vm.Class {
	of := func(c *vm.Call) *entry { return c.Self.Data.(*entry) }
	return &vm.Class{
		Name: "task",
		Doc:  "A spawned task; its fields are id and name.",
		Fields: func(o *vm.Object) map[string]vm.Value {
			e := o.Data.(*entry)
			return map[string]vm.Value{"id": e.id, "name": e.name}
		},
		Methods: []vm.Function{
			{
				Name:    "join",
				Doc:     "Waits for the end and gives what the function returned, or raises what it raised; once.",
				Results: []vm.Param{{Name: "result", Type: vm.Opaque, Rest: true}},
				Effect:  vm.Pure, Waits: true,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return g.join(ctx, of(c)) },
			},
			{
				Name: "abort", Doc: "Ends the task hard.", Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { of(c).abort(); return nil, nil },
			},
			{
				Name: "is_finished", Doc: "Whether the task has ended.", Effect: vm.Read,
				Results: []vm.Param{{Name: "finished", Type: vm.Boolean}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{of(c).finished()}, nil
				},
			},
			{
				Name: "elapsed", Doc: "Milliseconds since the spawn, up to the end.", Effect: vm.Read,
				Results: []vm.Param{{Name: "ms", Type: vm.Number}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{float64(of(c).since()) / float64(time.Millisecond)}, nil
				},
			},
		},
	}
}
