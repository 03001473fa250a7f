package task

import (
	"context"
	"math"
	"time"

	"ashlar/vm"
)

// MaxSleep bounds one sleep, and the deadline of one with_timeout.
const MaxSleep = 24 * time.Hour

// Module declares std.task for one run.
func Module(host *vm.Host) *vm.Module {
	g := newGroup(host)
	return &vm.Module{
		Name:    "std.task",
		Doc:     "Tasks: functions that run beside one another, one of them at a time.",
		Close:   g.report,
		Classes: []*vm.Class{g.tasks, g.scopes, g.tokens},
		Funcs: []vm.Function{
			{
				Name:    "spawn",
				Doc:     "Starts fn as a task and gives its handle. The scope around the caller, if there is one, waits for it.",
				Params:  spawnParams(),
				Results: []vm.Param{{Name: "handle", Type: vm.Handle, Class: g.tasks.Name}},
				Effect:  vm.Pure,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
					return g.spawn(ctx, c, scopeOf(ctx))
				},
			},
			{
				Name: "scope",
				Doc: "scope([name,] fn): calls fn(scope) and returns its first value after every task that was spawned inside has ended. " +
					"An error of fn cancels them first; an error of a task reaches fn only through join.",
				Params: []vm.Param{{Name: "name", Type: vm.String, Also: []vm.Type{vm.Callable}, Doc: "or fn"},
					{Name: "fn", Type: vm.Callable, Optional: true}},
				Results: []vm.Param{{Name: "value", Type: vm.Opaque, Optional: true}},
				Effect:  vm.Pure,
				Impl:    g.scope,
			},
			{
				Name: "with_timeout",
				Doc: "A scope with a deadline: at ms everything inside is cancelled, opts.grace_ms (100) later it is cut; " +
					"then it raises `exceeded N ms`. 0 as grace cuts at once.",
				Params: []vm.Param{{Name: "ms", Type: vm.Number}, {Name: "fn", Type: vm.Callable},
					{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
						{Name: "grace_ms", Type: vm.Number, Optional: true, Doc: "to clean up in"}}}},
				Results: []vm.Param{{Name: "value", Type: vm.Opaque, Optional: true}},
				Effect:  vm.Pure,
				Impl:    g.withTimeout,
			},
			{
				Name: "sleep", Doc: "Waits for so many milliseconds; raises `task cancelled` when the task is cancelled.",
				Params: []vm.Param{{Name: "ms", Type: vm.Number}},
				Effect: vm.Write, Record: vm.RecordResult, Waits: true, Impl: g.sleep,
			},
			{
				Name: "yield", Doc: "Lets the tasks that wait run first; raises `task cancelled` when the task is cancelled.",
				Effect: vm.Read, Record: vm.RecordResult, Waits: true, Impl: g.yield,
			},
			{
				Name: "checkpoint", Doc: "Raises `task cancelled` when the task is cancelled: for loops that neither sleep nor wait.",
				Effect: vm.Read, Record: vm.RecordResult,
				Impl: func(ctx context.Context, _ *vm.Call) ([]vm.Value, error) { return nil, g.tokenOf(ctx).check() },
			},
			{
				Name: "current", Doc: "The running task as {id, name, cancelled}, nil in the block itself.",
				Results: []vm.Param{{Name: "task", Type: vm.Map, Optional: true}},
				Effect:  vm.Read, Impl: g.current,
			},
			{
				Name: "cancel_token", Doc: "The cancel token of the scope around the caller; without one, the task's own, or the block's.",
				Results: []vm.Param{{Name: "token", Type: vm.Handle, Class: TokenClass}},
				Effect:  vm.Pure,
				Impl: func(ctx context.Context, _ *vm.Call) ([]vm.Value, error) {
					return []vm.Value{&vm.Object{Class: g.tokens, Data: g.shared(ctx)}}, nil
				},
			},
		},
	}
}

func spawnParams() []vm.Param {
	return []vm.Param{{Name: "fn", Type: vm.Callable}, {Name: "opts", Type: vm.Options, Optional: true,
		Fields: []vm.Param{
			{Name: "name", Type: vm.String, Optional: true, Doc: "shown in messages"},
			{Name: "driver", Type: vm.String, Optional: true,
				Doc: "async_fn (alias async, the default) or coroutine: then coroutine.yield(ms) sleeps and coroutine.yield() yields"},
		}}}
}

// driver is an engine that can run a function as a coroutine.
type driver interface {
	Driven(fn *vm.Func, ns string, step *vm.Function) (*vm.Func, error)
}

func (g *group) spawn(ctx context.Context, c *vm.Call, sc *scope) ([]vm.Value, error) {
	opts, fn := c.Map(1), c.Func(0)
	switch d := opts.Str("driver", "async_fn"); d {
	case "async_fn", "async":
	case "coroutine":
		engine, ok := c.Engine.(driver)
		if !ok {
			return nil, vm.Errorf("unsupported", "opts.driver: this language has no coroutines")
		}
		var err error
		if fn, err = engine.Driven(fn, "std.task", g.pause()); err != nil {
			return nil, err
		}
	default:
		return nil, vm.Errorf("validation", "opts.driver: unknown driver %q; it takes async, async_fn or coroutine", d)
	}
	if sc != nil {
		if err := sc.open(); err != nil {
			return nil, err
		}
	}
	name := opts.Str("name", "")
	t, err := c.Engine.Spawn(ctx, name, fn)
	if err != nil {
		return nil, err
	}
	return []vm.Value{&vm.Object{Class: g.tasks, Data: g.add(t, name, sc)}}, nil
}

// pause is what coroutine.yield([ms]) means in a task that is driven as a coroutine.
func (g *group) pause() *vm.Function {
	return &vm.Function{
		Name: "sleep", Params: []vm.Param{{Name: "ms", Type: vm.Number, Optional: true}},
		Effect: vm.Write, Record: vm.RecordResult, Waits: true,
		Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
			if c.Args[0] == nil {
				return g.yield(ctx, c)
			}
			return g.sleep(ctx, c)
		},
	}
}

func (g *group) sleep(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	d, err := millis("ms", c.Float(0, 0))
	if err != nil {
		return nil, err
	}
	token := g.tokenOf(ctx)
	if err := token.check(); err != nil {
		return nil, err
	}
	if err := c.Host.Clock.Sleep(ctx, d); err != nil {
		return nil, cancelError(context.Cause(ctx))
	}
	return nil, token.check()
}

// yield gives the lock away like any call that waits; there is nothing to wait for.
func (g *group) yield(ctx context.Context, _ *vm.Call) ([]vm.Value, error) {
	return nil, g.tokenOf(ctx).check()
}

func (g *group) current(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	e := g.find(c.Task)
	if e == nil {
		return []vm.Value{nil}, nil
	}
	return []vm.Value{map[string]any{"id": e.id, "name": e.name, "cancelled": g.tokenOf(ctx).cancelled()}}, nil
}

// millis gives a duration, which is never negative, endless or longer than MaxSleep.
func millis(name string, ms float64) (time.Duration, error) {
	if ms < 0 || ms > float64(MaxSleep/time.Millisecond) || math.IsNaN(ms) {
		return 0, vm.Errorf("validation", "%s: got %v, want 0 to %d", name, ms, MaxSleep/time.Millisecond)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}
