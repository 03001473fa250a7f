package proc

import (
	"context"
	"os"
	"time"
)

// Process is a long-lived command with its pipes: a language or MCP server, a
// provider that streams. Its owner reads both outputs, or the command blocks when
// a pipe is full.
type Process struct {
	Stdin  *os.File // close it to tell the command that no more comes
	Stdout *os.File // reads end with io.EOF once everyone who holds the pipe is gone
	Stderr *os.File

	starter *Starter
	child   *child
}

// Start starts a command and returns once it runs. ctx bounds only the start: the
// process lives until it ends, until Terminate, or until the Starter is closed. Of
// the spec, Stdin, Timeout, Grace and the output caps do not apply. The errors are
// those of Run.
func (s *Starter) Start(ctx context.Context, spec Spec) (*Process, error) {
	const op = "proc.start"
	if err := s.enter(op); err != nil {
		return nil, err
	}
	defer s.work.Done()
	c, err := s.launch(ctx, op, &spec, true, true)
	if err != nil {
		return nil, err
	}
	p := &Process{Stdin: c.stdin, Stdout: c.stdout, Stderr: c.stderr, starter: s, child: c}
	for _, file := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
		s.keep(file)
	}
	// The process leaves the list of its label, and the guard's link, when it ends.
	s.work.Go(func() {
		<-c.ended
		s.unlabel(c)
	})
	select {
	case <-c.started:
		return p, nil
	case <-c.ended:
		if c.err == nil { // it ran, and was quick
			return p, nil
		}
		p.Close()
		return nil, startError(op, &spec, c.err)
	case <-ctx.Done():
		c.end(0)
		p.Close()
		return nil, stopped(ctx, op)
	}
}

// PID is the number of the command's own process, for messages; signals go through
// Terminate.
func (p *Process) PID() int { return p.child.pid }

// Done is closed when the command's own process has ended; others that it started
// may still run.
func (p *Process) Done() <-chan struct{} { return p.child.ended }

// Exit gives the exit status, or -1 and the name of the signal that ended the
// command; -1 and "" when its guard was killed. Valid once Done is closed.
func (p *Process) Exit() (code int, signal string) {
	if p.child.err != nil {
		return -1, ""
	}
	return exitStatus(p.child.status)
}

// Terminate ends the command and everything that it started: SIGTERM, then SIGKILL
// after grace, at once when that is 0. It returns when all are gone, also when the
// command itself had ended before. Calls may overlap.
func (p *Process) Terminate(grace time.Duration) {
	p.child.end(grace)
	p.child.link.forget(p.child.call)
}

// Close closes the pipes. It does not end the process; Terminate does, before or
// after.
func (p *Process) Close() {
	for _, file := range []*os.File{p.Stdin, p.Stdout, p.Stderr} {
		p.starter.drop(file)
	}
}
