package main

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// handed lists the descriptors that whoever started this process gave it, those that
// can be written to. It is called before anything else opens one. The runtime's own
// are not among them: they are closed on exec, and one that was handed over is not.
func handed() map[int]bool {
	found := map[int]bool{}
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return found
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			continue
		}
		mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err == nil && mode&unix.O_ACCMODE != unix.O_RDONLY {
			found[fd] = true
		}
	}
	return found
}

// canWrite finds out whether a file can be written, without making or changing it.
func canWrite(flag, path string) error {
	st, err := os.Stat(path)
	switch {
	case err == nil && st.IsDir():
		return usagef("%s: %s is a directory", flag, path)
	case err == nil:
		err = unix.Access(path, unix.W_OK)
	default:
		dir := dirOf(path)
		if st, err = os.Stat(dir); err != nil {
			return usagef("%s: %s cannot be written: %s: %v", flag, path, dir, reason(err))
		}
		if !st.IsDir() {
			return usagef("%s: %s cannot be written: %s is no directory", flag, path, dir)
		}
		err = unix.Access(dir, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return usagef("%s: %s cannot be written: %v", flag, path, err)
	}
	return nil
}
