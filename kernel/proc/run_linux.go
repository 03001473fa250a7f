package proc

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Run runs a command to its end, or to the first of its bounds, and collects its
// output. However it ended, that is a Result and no error; an error says that it
// could not be started (validation, not_found, permission, limit, unsupported,
// closed; cancelled or timeout when ctx had ended before), or that its guard was
// killed (internal; the Result then holds what had arrived).
//
// Run is what sh.exec, git and one-shot providers are made of.
func (s *Starter) Run(ctx context.Context, spec Spec) (Result, error) {
	const op = "proc.run"
	if err := s.enter(op); err != nil {
		return Result{}, err
	}
	defer s.work.Done()
	begin := time.Now()
	var timeout <-chan time.Time
	if spec.Timeout > 0 {
		timer := time.NewTimer(spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	c, err := s.launch(ctx, op, &spec, len(spec.Stdin) > 0, false)
	if err != nil {
		return Result{}, err
	}
	defer c.link.forget(c.call)

	over := make(chan struct{}, 1)
	stdout := s.capture(c.stdout, orDefault(spec.MaxStdout, DefaultOutputBytes), over)
	stderr := s.capture(c.stderr, orDefault(spec.MaxStderr, DefaultOutputBytes), over)
	stopFeeding := s.feed(c, spec.Stdin)

	bound := s.await(ctx, c, timeout, over)
	s.unlabel(c) // killed does not change any more
	switch {
	case bound == ByCancel || bound == ByDeadline:
		c.end(spec.Grace)
	case bound != "":
		c.end(0)
	case c.killed.Load():
		<-c.buried
	}
	stopFeeding()
	stdout.settle()
	stderr.settle()
	<-stdout.done
	<-stderr.done
	truncated := stdout.truncated() || stderr.truncated()
	if truncated && bound == "" { // it ended before the cap was noticed
		bound = ByOutput
		c.end(0)
	}
	r := Result{
		Stdout: stdout.data, Stderr: stderr.data, Truncated: truncated,
		EndedBy: bound, Killed: c.killed.Load(),
		TimedOut: bound == ByTimeout || bound == ByDeadline,
		Duration: time.Since(begin),
	}
	return c.settleResult(op, &spec, r)
}

// await waits for the command's end ("") or for the first of its bounds. A command
// that ends by itself at the very moment of a bound has ended by itself.
func (s *Starter) await(ctx context.Context, c *child, timeout <-chan time.Time, over <-chan struct{}) EndedBy {
	bound := EndedBy("")
	select {
	case <-c.ended:
	case <-over:
		return ByOutput
	case <-timeout:
		bound = ByTimeout
	case <-ctx.Done():
		bound = contextEnd(ctx)
	case <-s.closing:
		bound = ByCancel
	}
	select {
	case <-c.ended:
	default:
		return bound
	}
	select {
	case <-s.closing: // its guard is at work: only an exit is the command's own end
		if c.err != nil || c.status.Signaled() {
			return ByCancel
		}
	default:
	}
	return ""
}

// end ends the command's tree and returns when it is gone.
func (c *child) end(grace time.Duration) {
	c.link.end(c.call, grace)
	<-c.buried
	if c.left == 0 {
		<-c.ended // its report is on the way
	}
}

// feed writes a command's input beside everything else. The returned function
// ends that, read or not, and waits for it.
func (s *Starter) feed(c *child, input []byte) (stop func()) {
	if c.stdin == nil {
		return func() {}
	}
	fed := make(chan struct{})
	s.work.Go(func() {
		defer close(fed)
		defer c.stdin.Close()
		_, _ = c.stdin.Write(input) // a command need not read what it is offered
	})
	return func() {
		_ = c.stdin.SetWriteDeadline(time.Unix(1, 0))
		<-fed
	}
}

// settleResult adds the wait status, or turns the result into the error that it
// is.
func (c *child) settleResult(op string, spec *Spec, r Result) (Result, error) {
	select {
	case <-c.ended:
	default: // it cannot be killed: the kernel holds it
		r.Code = -1
		return r, nil
	}
	if errors.Is(c.err, errGuardLost) && r.EndedBy == ByCancel {
		// The Starter was closed, and its guard with it.
		r.Code, r.Signal = -1, unix.SignalName(unix.SIGKILL)
		return r, nil
	}
	if c.err != nil {
		r.Code = -1
		return r, startError(op, spec, c.err)
	}
	r.Code, r.Signal = exitStatus(c.status)
	if r.EndedBy == "" {
		r.EndedBy = ByExit
		if r.Signal != "" || r.Killed {
			r.EndedBy = BySignal
		}
	}
	return r, nil
}

// exitStatus splits a wait status into exit code and signal name.
func exitStatus(status unix.WaitStatus) (code int, signal string) {
	if status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return status.ExitStatus(), ""
}

func orDefault[T ~int64](value, standard T) T {
	if value == 0 {
		return standard
	}
	return value
}
