package sqlite

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"

	"ashlar/kernel"
)

// SQLite's primary result codes that have a kind of their own.
const (
	codeBusy       = 5
	codeLocked     = 6
	codeCorrupt    = 11
	codeConstraint = 19
	codeNotADB     = 26
)

// classify gives a driver's error its kind. An error that has one already is
// returned as it is.
func classify(op, path string, err error) error {
	var known *kernel.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return kernel.Errorf(op, kernel.Timeout, "the read took too long: %w", err)
	}
	if errors.Is(err, context.Canceled) {
		return kernel.Errorf(op, kernel.Cancelled, "%w", err)
	}
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case codeBusy, codeLocked:
			return kernel.Errorf(op, kernel.Busy, "%s is locked by another program: %w", path, err)
		case codeCorrupt:
			return kernel.Errorf(op, kernel.Corruption, "%s is damaged; nothing was deleted: %w", path, err)
		case codeNotADB:
			return kernel.Errorf(op, kernel.Corruption, "%s is no SQLite database; it was left as it is: %w", path, err)
		case codeConstraint:
			return kernel.Errorf(op, kernel.Internal, "%s: %w", path, err)
		}
	}
	return kernel.Errorf(op, kernel.Storage, "%s: %w", path, err)
}

func pragma(name string, value int) string { return fmt.Sprintf("PRAGMA %s = %d", name, value) }
