package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"ashlar/kernel"
)

// outcome is what a handler came to.
type outcome struct {
	value any
	err   error
}

// run calls the handler inside its bound. A panic is its error. A handler that does
// not heed the end of its context is left behind after HandlerGrace. The handler
// gets arguments of its own: what was recorded stays what was decided on.
func (b *Bus) run(ctx context.Context, c Call) (any, error) {
	op := "tool." + c.Name
	if d := c.Tool.Contract.Timeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, kernel.Errorf(op, kernel.Timeout, "the tool took longer than %s", d))
		defer cancel()
	}
	args := copied(c.Args)
	ended := make(chan outcome, 1)
	go func() {
		o := outcome{err: kernel.Errorf(op, kernel.Internal, "the handler ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				// The stack is for the host; the model gets what was said.
				b.Warn(b.Redact(fmt.Sprintf("tool '%s' panicked: %v\n%s", c.Name, p, debug.Stack())))
				o = outcome{err: kernel.Errorf(op, kernel.Internal, "the handler panicked: %v", p)}
			}
			ended <- o
		}()
		o.value, o.err = c.Tool.Handler(ctx, args)
	}()
	select {
	case o := <-ended:
		return o.value, because(ctx, o.err)
	case <-ctx.Done():
	}
	grace := time.NewTimer(HandlerGrace)
	defer grace.Stop()
	select {
	case o := <-ended:
		return o.value, because(ctx, o.err)
	case <-grace.C:
		b.Warn(fmt.Sprintf("tool '%s' did not return %s after it was told to end; it is left behind", c.Name, HandlerGrace))
		return nil, because(ctx, ctx.Err())
	}
}

// because gives the reason of a context's end in place of the bare error that a
// handler passes on.
func because(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// result turns what a handler gave into what model and record see.
func (b *Bus) result(ctx context.Context, c Call, value any, err error) Result {
	if err == nil {
		if value == nil {
			value = ""
		}
		r := Result{OK: true, Value: value}
		r.Model = b.bound(ctx, c, &r, value)
		return r
	}
	kind := "failed"
	switch {
	case errors.Is(err, kernel.Timeout):
		kind = "timeout"
	case errors.Is(err, kernel.Cancelled), ctx.Err() != nil:
		kind = "cancelled"
	}
	text := fmt.Sprintf("tool '%s' raised: %s", c.Name, kernel.Message(err))
	r := Result{Value: text, Kind: kind}
	r.Model = b.bound(ctx, c, &r, text)
	return r
}
