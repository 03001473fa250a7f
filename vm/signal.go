package vm

import "context"

type signalKey struct{}

// WithSignal gives ctx a signal: a second context, whose end interrupts the syscall
// that the Lua under ctx waits in, once. Calls that begin after it run as usual, so
// that Lua which caught the interruption can clean up. It is how a task is cancelled
// without being cut; what a wait gives is the signal's cause.
func WithSignal(ctx, signal context.Context) context.Context {
	return context.WithValue(ctx, signalKey{}, signal)
}

// interruptible gives the context of one wait, which ends with its signal too.
func interruptible(ctx context.Context) (context.Context, func()) {
	signal, _ := ctx.Value(signalKey{}).(context.Context)
	if signal == nil || signal.Err() != nil {
		return ctx, func() {}
	}
	wait, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(signal, func() { cancel(context.Cause(signal)) })
	return wait, func() {
		stop()
		cancel(nil)
	}
}
