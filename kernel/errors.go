package kernel

import (
	"errors"
	"fmt"
)

// Kind names a class of failure. The vocabulary is closed: code branches on
// kinds, prose lives only in messages. A Kind is itself an error, so that
// errors.Is(err, kernel.Busy) holds for every error of that kind.
type Kind string

// The kinds. The first eight are those of the knl namespace; the others occur in
// the namespaces of the standard library. Only Busy is retryable.
const (
	Busy        Kind = "busy"        // somebody else holds it; the same call may succeed
	Storage     Kind = "storage"     // I/O fault, full disk, lost connection
	Corruption  Kind = "corruption"  // bytes that were read do not decode or do not match their hash
	Closed      Kind = "closed"      // the handle, session or run has ended
	Validation  Kind = "validation"  // the caller's mistake; nothing was written
	Unsupported Kind = "unsupported" // this build, store or platform cannot
	Timeout     Kind = "timeout"     // a deadline passed
	Refused     Kind = "refused"     // a legitimate no, recorded as such
	NotFound    Kind = "not_found"
	Permission  Kind = "permission"
	Network     Kind = "network"
	Cancelled   Kind = "cancelled"
	Limit       Kind = "limit" // a named bound was hit
	Internal    Kind = "internal"
)

// Kinds lists the vocabulary in its published order.
func Kinds() []Kind {
	return []Kind{Busy, Storage, Corruption, Closed, Validation, Unsupported, Timeout, Refused,
		NotFound, Permission, Network, Cancelled, Limit, Internal}
}

// Error makes a Kind usable as the target of errors.Is.
func (k Kind) Error() string { return string(k) }

// Retryable reports whether the same call may succeed when it is made again.
func (k Kind) Retryable() bool { return k == Busy }

// Error is a failure with its kind. Op names the operation ("session.append"),
// Err says what was wrong, where, and what to do; it holds no secret and no file
// contents.
type Error struct {
	Op   string
	Kind Kind
	Err  error
}

func (e *Error) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("%s: %v", e.Kind, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Op, e.Kind, e.Err)
}

// Unwrap gives both the kind and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// Errorf builds an *Error; the format may wrap a cause with %w.
func Errorf(op string, kind Kind, format string, args ...any) error {
	return &Error{Op: op, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// KindOf gives the kind of the outermost *Error in err's chain; Internal when
// there is none, and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	var k Kind
	if errors.As(err, &k) {
		return k
	}
	return Internal
}

// Message gives the prose of err without op and kind, for callers that print
// those themselves.
func Message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}
