package sqlite

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	driver "modernc.org/sqlite"

	"ashlar/kernel"
)

// exclusiveVFS keeps the index of the write-ahead log in this process's memory instead
// of in a file that processes map, and locks every other process out.
const exclusiveVFS = "vfs=unix-excl&"

// aloneSuffix names the file that says which process has a database to itself. It only
// tells a person; the lock is SQLite's.
const aloneSuffix = ".alone"

// noWAL is the failure of a file system on which SQLite keeps no write-ahead log.
type noWAL struct{ error }

func (e *noWAL) Unwrap() error { return e.error }

// SQLite's result codes of shared memory that cannot be had.
const (
	codeCannotOpen = 14 // of the index file too, which has no code of its own
	codeShmOpen    = 10 | 18<<8
	codeShmSize    = 10 | 19<<8
	codeShmLock    = 10 | 20<<8
	codeShmMap     = 10 | 21<<8
)

// unshared reports whether a database could not be opened for want of shared memory.
func unshared(err error) bool {
	var none *noWAL
	if errors.As(err, &none) {
		return true
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() {
	case codeShmOpen, codeShmSize, codeShmLock, codeShmMap:
		return true
	}
	return e.Code()&0xff == codeCannotOpen
}

// fallBack opens for this process alone what could not be shared. Where that fails too,
// and not since somebody else has it, the first error is the one that says why.
func fallBack(ctx context.Context, abs string, o Options, first error) (*Store, error) {
	s, err := openFile(ctx, abs, o, true)
	if err != nil && kernel.KindOf(err) != kernel.Busy {
		return nil, first
	}
	return s, err
}

// Exclusive reports that the file system has no shared memory, so that no other process
// can open the database until this one closes it.
func (s *Store) Exclusive() bool { return s.alone }

// whoIsAlone adds to the error of a locked database who has it to itself.
func whoIsAlone(abs string, err error) error {
	if kernel.KindOf(err) != kernel.Busy {
		return err
	}
	b, rerr := os.ReadFile(abs + aloneSuffix)
	if rerr != nil {
		return err
	}
	pid, perr := strconv.Atoi(strings.TrimSpace(string(b)))
	if perr != nil || pid < 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return err
	}
	return kernel.Errorf("store.open", kernel.Busy,
		"%s is open in process %d, which has it to itself: its file system has no shared memory, so one process at a time can use it; wait for that one, or put the store on a local disk", abs, pid)
}

func sayAlone(abs string) error {
	if err := os.WriteFile(abs+aloneSuffix, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return kernel.Errorf("store.open", kernel.Storage, "%w", err)
	}
	return nil
}

func sayShared(abs string) { os.Remove(abs + aloneSuffix) }
