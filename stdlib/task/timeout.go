package task

import (
	"context"
	"sync"
	"time"

	"ashlar/vm"
)

// DefaultGrace is how long the body of a with_timeout and its children may clean up
// after the deadline.
const DefaultGrace = 100 * time.Millisecond

// withTimeout is std.task.with_timeout: a scope with a deadline. At the deadline its
// token is cancelled, grace later body and children are cut. It holds however the
// body runs, since a cut needs no lock; what it must wait for is one builtin call.
func (g *group) withTimeout(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	limit, err := millis("ms", c.Float(0, 0))
	if err != nil {
		return nil, err
	}
	grace := DefaultGrace
	if opts := c.Map(2); opts["grace_ms"] != nil {
		if grace, err = millis("opts.grace_ms", opts.Float("grace_ms", 0)); err != nil {
			return nil, err
		}
	}
	sc := g.newScope(ctx, "")
	body, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	expired := false
	running, over := context.WithCancel(context.Background())
	defer over()
	var clock sync.WaitGroup
	clock.Go(func() {
		if c.Host.Clock.Sleep(running, limit) != nil {
			return
		}
		expired = true
		if grace > 0 {
			sc.token.cancel(errCancelled)
			if c.Host.Clock.Sleep(running, grace) != nil {
				return
			}
		}
		// The cut comes first where there is no grace: nothing runs between.
		cut(errCancelled)
		sc.cutAll() // those of a body that is still unwinding too
		sc.token.cancel(errCancelled)
	})
	out, err := g.run(body, c, sc, c.Func(1), func() {
		over()
		clock.Wait()
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	late, noteErr := c.Note(expired)
	switch {
	case noteErr != nil:
		return nil, noteErr
	case late == true:
		return nil, vm.Errorf("timeout", "exceeded %v ms", c.Float(0, 0))
	}
	return out, err
}
