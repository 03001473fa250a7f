package proc

import (
	"io"
	"path/filepath"
	"strings"
	"time"

	"ashlar/kernel"
)

const (
	// DefaultOutputBytes is the cap of standard output, and of standard error, of a
	// command whose Spec names none.
	DefaultOutputBytes = 10 << 20
	// DefaultGrace is the time that a task is given to end by itself. A command
	// that is killed by its label gets twice as long between SIGTERM and SIGKILL.
	DefaultGrace = time.Second
	// HandshakeTime bounds the start of the guard. A program that never calls
	// guard.Main is found out by it.
	HandshakeTime = 5 * time.Second
	// QuietTime is how long a pipe that somebody still holds must be silent, after
	// the command's own end, for its output to count as complete.
	QuietTime = 50 * time.Millisecond
	// SettleTime bounds that wait for a pipe that never falls silent.
	SettleTime = 250 * time.Millisecond
)

// Options are what a Starter needs from its host. The zero value is good.
type Options struct {
	// Helper is the binary to run as guard, for a program that cannot call
	// guard.Main first in its main. "" is the running binary itself.
	Helper string
	// Grace replaces DefaultGrace.
	Grace time.Duration
	// Handshake replaces HandshakeTime.
	Handshake time.Duration
	// Random names the starter, 8 bytes; nil is crypto/rand. The name shows in the
	// marker of each command and must not repeat on one machine.
	Random io.Reader
}

// Spec is one command and its bounds.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up in
	// the PATH of Env, one with a slash against Dir.
	Argv []string
	// Dir is the working directory, absolute.
	Dir string
	// Env is the whole environment, "NAME=value"; of two entries for one name the
	// last counts. Build it with Environment.
	Env []string
	// Stdin is fed to the command and then closed; empty is /dev/null. For Run only.
	Stdin []byte
	// Timeout ends the command with SIGKILL; 0 is none. For Run only.
	Timeout time.Duration
	// Grace is the time between SIGTERM and SIGKILL when ctx ends; 0 kills at once.
	// For Run only.
	Grace time.Duration
	// MaxStdout and MaxStderr are caps in bytes; 0 is DefaultOutputBytes. A command
	// that writes more is ended; exactly so much is fine. For Run only.
	MaxStdout, MaxStderr int64
	// Label is the name that Kill knows the command by; several may share one.
	Label string
}

// EndedBy says what ended a command. The words are contracts §12.
type EndedBy string

// The ways to end.
const (
	ByExit     EndedBy = "exit"     // it exited by itself
	BySignal   EndedBy = "signal"   // somebody's signal, a Kill by label included
	ByTimeout  EndedBy = "timeout"  // its own Timeout
	ByOutput   EndedBy = "output"   // it wrote more than its cap
	ByCancel   EndedBy = "cancel"   // ctx was cancelled, or the Starter closed
	ByDeadline EndedBy = "deadline" // ctx's deadline passed
)

// Result is how a command ended and what it wrote.
type Result struct {
	Code      int    // exit status; -1 when a signal ended it
	Signal    string // "SIGKILL"; "" when it exited
	Stdout    []byte // the first MaxStdout bytes at most
	Stderr    []byte
	Truncated bool // there was more than Stdout and Stderr hold
	EndedBy   EndedBy
	Killed    bool // a Kill by its label reached it
	TimedOut  bool // EndedBy is timeout or deadline
	Duration  time.Duration
}

// check refuses what no command can be started with.
func (s *Spec) check(op string) error {
	refuse := func(format string, args ...any) error { return kernel.Errorf(op, kernel.Validation, format, args...) }
	switch {
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return refuse("no command was given")
	case s.Dir == "":
		return refuse("command %q has no working directory", s.Argv[0])
	case !filepath.IsAbs(s.Dir):
		return refuse("working directory %q is not absolute", s.Dir)
	case s.Timeout < 0 || s.Grace < 0:
		return refuse("timeout %v and grace %v must not be negative", s.Timeout, s.Grace)
	case s.MaxStdout < 0 || s.MaxStderr < 0:
		return refuse("output caps %d and %d must not be negative", s.MaxStdout, s.MaxStderr)
	}
	for i, arg := range s.Argv {
		if strings.ContainsRune(arg, 0) {
			return refuse("argument %d of %q holds a NUL byte", i, s.Argv[0])
		}
	}
	if strings.ContainsRune(s.Dir, 0) {
		return refuse("the working directory of %q holds a NUL byte", s.Argv[0])
	}
	for _, entry := range s.Env {
		name, _, found := strings.Cut(entry, "=")
		if !found || name == "" || strings.ContainsRune(entry, 0) {
			return refuse("environment entry %q is not NAME=value", name)
		}
	}
	return nil
}
