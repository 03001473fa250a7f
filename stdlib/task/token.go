package task

import (
	"context"
	"errors"

	"ashlar/vm"
)

// The causes that a task ends with.
var (
	errCancelled = vm.Errorf("cancelled", "task cancelled")
	errAborted   = vm.Errorf("cancelled", "task aborted")
)

// TokenClass is the name of a token's class.
const TokenClass = "cancel_token"

// token is the right to go on: cancelled once, for itself and for all below it.
type token struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newToken(parent context.Context) *token {
	t := &token{}
	t.ctx, t.cancel = context.WithCancelCause(parent)
	return t
}

func (t *token) cancelled() bool { return t.ctx.Err() != nil }

// check gives the error that a cancelled task meets, nil while it may go on.
func (t *token) check() error {
	if !t.cancelled() {
		return nil
	}
	return cancelError(context.Cause(t.ctx))
}

// cancelError is what a wait raises whose task is to end for cause.
func cancelError(cause error) error {
	if errors.Is(cause, errAborted) {
		return errAborted
	}
	err := vm.Errorf("cancelled", "task cancelled")
	err.Cause = cause
	return err
}

type tokenKey struct{}

// withToken puts a token into the context of Lua: what current code checks, and what
// interrupts its waits.
func withToken(ctx context.Context, t *token) context.Context {
	return vm.WithSignal(context.WithValue(ctx, tokenKey{}, t), t.ctx)
}

// tokenOf gives the token that the Lua under ctx goes by.
func (g *group) tokenOf(ctx context.Context) *token {
	if t, ok := ctx.Value(tokenKey{}).(*token); ok {
		return t
	}
	return g.root
}

// shared gives the token that cancel_token shows: that of the scope around the
// caller, so that who cancels it cancels the siblings too; of a task in no scope its
// own, in the block the block's.
func (g *group) shared(ctx context.Context) *token {
	if sc := scopeOf(ctx); sc != nil {
		return sc.token
	}
	return g.tokenOf(ctx)
}

// tokenClass declares the methods of a token.
func tokenClass() *vm.Class {
	of := func(c *vm.Call) *token { return c.Self.Data.(*token) }
	return &vm.Class{
		Name: TokenClass, Space: "std.task",
		Doc: "A cancel token: the right to go on of a scope and everything in it.",
		Methods: []vm.Function{
			{
				Name: "is_cancelled", Doc: "Whether it was cancelled.", Effect: vm.Read,
				Results: []vm.Param{{Name: "cancelled", Type: vm.Boolean}},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{of(c).cancelled()}, nil
				},
			},
			{
				Name: "cancel", Doc: "Cancels it: waits below it end, and sleep, yield and checkpoint raise.", Effect: vm.Pure,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					of(c).cancel(errCancelled)
					return nil, nil
				},
			},
			{
				Name: "check", Doc: "Raises `task cancelled` when it was cancelled.", Effect: vm.Read,
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return nil, of(c).check() },
			},
		},
	}
}
