package proc

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"ashlar/kernel"
	"ashlar/kernel/proc/guard"
	"ashlar/kernel/proc/tree"
)

// child is a command that was handed to the guard, with the host's ends of its
// pipes.
type child struct {
	*call
	link   *link
	name   string // its label
	killed atomic.Bool
	stdin  *os.File // nil: /dev/null
	stdout *os.File
	stderr *os.File
}

// launch looks a command up and hands it to the guard.
func (s *Starter) launch(ctx context.Context, op string, spec *Spec, stdin, wantStarted bool) (*child, error) {
	if err := spec.check(op); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, stopped(ctx, op)
	}
	path, err := lookUp(op, spec)
	if err != nil {
		return nil, err
	}
	c := &child{name: spec.Label}
	theirs, err := c.openPipes(stdin)
	defer closeAll(theirs)
	if err != nil {
		return nil, kernel.Errorf(op, kernel.Limit, "no pipe for %q: %w", spec.Argv[0], err)
	}
	m := &guard.Message{Kind: guard.Spawn, Path: path, Dir: spec.Dir, Argv: spec.Argv, Env: distinct(spec.Env)}
	if stdin {
		m.Flags |= guard.WithStdin
	}
	if wantStarted {
		m.Flags |= guard.WantStarted
	}
	if err := s.hand(ctx, op, c, m, theirs); err != nil {
		c.closePipes()
		if kernel.KindOf(err) == kernel.Internal {
			err = startError(op, spec, err)
		}
		return nil, err
	}
	s.label(c)
	return c, nil
}

// hand gives a command to the guard, to a new one when the old one turns out to
// be dead.
func (s *Starter) hand(ctx context.Context, op string, c *child, m *guard.Message, files []int) (err error) {
	env := m.Env
	for range 2 {
		if c.link, err = s.connect(ctx, op); err != nil {
			return err
		}
		m.Env = env
		if c.call, err = c.link.spawn(m, files...); !errors.Is(err, errDown) {
			return err
		}
		<-c.link.gone
	}
	return err
}

// openPipes makes the pipes and returns the command's ends in the order of their
// descriptors, as far as they were made.
func (c *child) openPipes(stdin bool) (theirs []int, err error) {
	open := func(name string, ours int) *os.File {
		var ends [2]int
		if err != nil {
			return nil
		}
		if err = unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return nil
		}
		// Only our end must not block: the command expects an ordinary pipe.
		if err = unix.SetNonblock(ends[ours], true); err != nil {
			return nil
		}
		theirs = append(theirs, ends[1-ours])
		return os.NewFile(uintptr(ends[ours]), name)
	}
	if stdin {
		c.stdin = open("stdin", 1)
	}
	c.stdout, c.stderr = open("stdout", 0), open("stderr", 0)
	if err != nil {
		c.closePipes()
	}
	return theirs, err
}

func (c *child) closePipes() {
	for _, file := range []*os.File{c.stdin, c.stdout, c.stderr} {
		if file != nil {
			_ = file.Close()
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// distinct gives the environment with each name once, the last entry of each, and
// without a marker, which the link adds.
func distinct(env []string) []string {
	last := make(map[string]int, len(env))
	for i, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		last[name] = i
	}
	kept := make([]string, 0, len(last))
	for i, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); last[name] == i && name != tree.MarkerName {
			kept = append(kept, entry)
		}
	}
	return kept
}

// startError says why a command whose executable was found did not start.
func startError(op string, spec *Spec, err error) error {
	name := spec.Argv[0]
	switch {
	case errors.Is(err, errGuardLost), errors.Is(err, errDown):
		return kernel.Errorf(op, kernel.Internal, "command %q: %w", name, err)
	case errors.Is(err, guard.ErrTooLong), errors.Is(err, syscall.E2BIG):
		return kernel.Errorf(op, kernel.Limit, "arguments and environment of %q are longer than the system allows; pass long input through stdin or a file", name)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return kernel.Errorf(op, kernel.Limit, "command %q: no more processes, memory or files: %w", name, err)
	case errors.Is(err, syscall.ECANCELED):
		return kernel.Errorf(op, kernel.Closed, "command %q was not started: the run has ended", name)
	case errors.Is(err, syscall.ENOEXEC):
		return kernel.Errorf(op, kernel.Validation, "command %q is neither a program nor a script with a #! line", name)
	}
	// The directory or the file changed since it was looked at, or a script's
	// interpreter is at fault.
	if dirErr := checkDir(op, spec.Dir); dirErr != nil {
		return dirErr
	}
	switch {
	case errors.Is(err, syscall.ENOENT):
		return kernel.Errorf(op, kernel.NotFound, "command %q: the interpreter that it names was not found", name)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return kernel.Errorf(op, kernel.Permission, "command %q may not be executed", name)
	}
	return kernel.Errorf(op, kernel.Internal, "command %q: %w", name, err)
}

// stopped is the error of a start whose context had ended.
func stopped(ctx context.Context, op string) error {
	kind := kernel.Cancelled
	if contextEnd(ctx) == ByDeadline {
		kind = kernel.Timeout
	}
	return kernel.Errorf(op, kind, "the command was not started: %w", context.Cause(ctx))
}

// contextEnd tells a deadline from a cancel. A run that is cancelled because its
// time is up says so with a cause of kind kernel.Timeout.
func contextEnd(ctx context.Context) EndedBy {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, kernel.Timeout) {
		return ByDeadline
	}
	return ByCancel
}
