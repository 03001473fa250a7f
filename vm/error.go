package vm

import (
	"fmt"
	"strings"
)

// Error is what a script raised, or what a syscall raised into it, without any
// engine: the kinds of contracts §8, the position and the script's own traceback.
type Error struct {
	Namespace string // "std.fs"; "" when the script itself raised
	Function  string // "read"
	Kind      string // of the closed vocabulary; "" for a script's own error
	Message   string // prose: what was wrong, where, what to do
	Value     Value  // what the script raised when that was no string
	Position  string // "agent.lua:12", where known
	Traceback string // the script's stack, many lines, where known
	Cause     error  // the host's error, never shown to scripts
}

// Error gives "<namespace>: <function>: <kind>: <message>", the text that a
// script sees; a script's own error is its message.
func (e *Error) Error() string {
	if e.Kind == "" {
		return e.Message
	}
	var parts []string
	for _, p := range []string{e.Namespace, e.Function, e.Kind} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ") + ": " + e.Message
}

// Unwrap gives the host's cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf builds the error of a syscall; the dispatcher fills in its name.
func Errorf(kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Cause: err}
}

// Exit ends a run from inside a script: os.exit(code), or job.defer(reason). It
// is an error that no pcall can hold, since the dispatcher also ends the VM.
type Exit struct {
	Code     int
	Deferred string // the reason, when job.defer ended the run
}

func (e *Exit) Error() string {
	if e.Deferred != "" {
		return "deferred: " + e.Deferred
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Fault wraps a host error that a script must not be able to swallow: the engine
// raises it and cancels the VM with it as the cause.
type Fault struct{ Err error }

func (e *Fault) Error() string { return e.Err.Error() }

// Unwrap gives the wrapped error.
func (e *Fault) Unwrap() error { return e.Err }
