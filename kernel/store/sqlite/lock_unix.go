//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

const (
	exclusive = syscall.LOCK_EX
	shared    = syscall.LOCK_SH
)

// lockFile takes an advisory lock on the open file; the operating system drops
// it when the file is closed or the process ends.
func lockFile(f *os.File, how int, wait bool) error {
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

func unlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
