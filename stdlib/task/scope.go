package task

import (
	"context"
	"maps"
	"slices"
	"sync"

	"ashlar/vm"
)

// scope waits for the tasks that were spawned into it.
type scope struct {
	name  string
	token *token

	mu    sync.Mutex
	live  map[*entry]struct{} // the children that run; those that ended are forgotten
	cut   bool                // what enters is cut at once
	ended bool
}

type scopeKey struct{}

// withScope puts a scope into the context of Lua; nil hides the one around it.
func withScope(ctx context.Context, sc *scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, sc)
}

// scopeOf gives the innermost scope around the Lua under ctx, nil for none.
func scopeOf(ctx context.Context) *scope {
	sc, _ := ctx.Value(scopeKey{}).(*scope)
	return sc
}

func (g *group) newScope(ctx context.Context, name string) *scope {
	return &scope{name: name, token: newToken(g.tokenOf(ctx).ctx), live: map[*entry]struct{}{}}
}

// enter adds a child; cut reports that it must not run.
func (sc *scope) enter(e *entry) (cut bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.live[e] = struct{}{}
	return sc.cut
}

func (sc *scope) left(e *entry) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	delete(sc.live, e)
}

// open refuses a spawn into a scope that has returned.
func (sc *scope) open() error {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	if sc.ended {
		return vm.Errorf("closed", "the scope has ended; spawn inside of its function")
	}
	return nil
}

// cutAll cuts every child now, and those that a child is just spawning.
func (sc *scope) cutAll() {
	sc.mu.Lock()
	sc.cut = true
	all := slices.Collect(maps.Keys(sc.live))
	sc.mu.Unlock()
	for _, e := range all {
		e.abort(0)
	}
}

// idle reports whether no child is left, and then ends the scope; else it gives one.
func (sc *scope) idle() (child *entry, idle bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	for e := range sc.live {
		return e, false
	}
	sc.ended = true
	return nil, true
}

// run calls fn with the scope under ctx, cancels the children when fn fails, and
// returns after the last of them. The caller holds the VM's lock and has it again
// afterwards; ended is called before it is waited for, whose wait is nobody's fault
// inside. When ctx ends, body and children are cut.
func (g *group) run(ctx context.Context, c *vm.Call, sc *scope, fn *vm.Func, ended func()) ([]vm.Value, error) {
	inner := withToken(withScope(ctx, sc), sc.token)
	out, err := fn.CallRef(inner, &vm.Object{Class: g.scopes, Data: sc})
	if err != nil {
		sc.token.cancel(errCancelled)
	}
	c.Engine.Release(ctx)
	cut := ctx.Done()
	for {
		e, idle := sc.idle()
		if idle {
			break
		}
		select {
		case <-e.task.Done:
		case <-cut:
			sc.cutAll()
			cut = nil
		}
	}
	ended()
	c.Engine.Acquire(ctx)
	sc.token.cancel(nil) // frees it
	if err != nil {
		return nil, err
	}
	return first(out), nil
}

func first(values []vm.Value) []vm.Value {
	if len(values) > 1 {
		return values[:1]
	}
	return values
}

// scope is std.task.scope.
func (g *group) scope(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	name, fn, err := scopeArgs(c)
	if err != nil {
		return nil, err
	}
	return g.run(ctx, c, g.newScope(ctx, name), fn, func() {})
}

func scopeArgs(c *vm.Call) (name string, fn *vm.Func, err error) {
	if fn, ok := c.Args[0].(*vm.Func); ok {
		if c.Args[1] != nil {
			return "", nil, vm.Errorf("validation", "takes (name, fn) or (fn)")
		}
		return "", fn, nil
	}
	if fn = c.Func(1); fn == nil {
		return "", nil, vm.Errorf("validation", "fn is required (a function)")
	}
	return c.Str(0), fn, nil
}

// scopeClass declares the methods of a scope.
func scopeClass(g *group) *vm.Class {
	of := func(c *vm.Call) *scope { return c.Self.Data.(*scope) }
	return &vm.Class{
		Name: "scope", Space: "std.task",
		Doc:    "What scope and with_timeout hand to their function; its field is name.",
		Fields: func(o *vm.Object) map[string]vm.Value { return map[string]vm.Value{"name": o.Data.(*scope).name} },
		Methods: []vm.Function{
			{
				Name: "spawn", Doc: "Starts fn as a task of this scope and gives its handle.",
				Params: spawnParams(), Results: []vm.Param{{Name: "handle", Type: vm.Handle, Class: g.tasks.Name}}, Effect: vm.Pure,
				Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return g.spawn(ctx, c, of(c)) },
			},
			{
				Name: "cancel", Doc: "Cancels its children and its function, which go on until they meet it.", Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					of(c).token.cancel(errCancelled)
					return nil, nil
				},
			},
			{
				Name: "token", Doc: "The scope's cancel token.", Effect: vm.Pure,
				Results: []vm.Param{{Name: "token", Type: vm.Handle, Class: TokenClass}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{&vm.Object{Class: g.tokens, Data: of(c).token}}, nil
				},
			},
		},
	}
}
