package fs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ashlar/vm"
)

// pipeWait bounds a write into a pipe or device that takes nothing.
const pipeWait = 10 * time.Second

// writeFile replaces a file's content at once: a reader sees the old content or
// the new, also after a crash in the middle. What is no regular file, and a file
// whose directory takes no new one, is written in place.
func (a Area) writeFile(path string, content []byte) error {
	abs, err := a.resolve(path)
	if err != nil {
		return err
	}
	st, err := os.Stat(abs)
	switch {
	case err != nil && !errors.Is(err, iofs.ErrNotExist): // a ring of links, a folder that is closed
	case err != nil:
		err = replace(realPath(abs), content, nil)
	case st.IsDir():
		return vm.Errorf("validation", "%s is a directory", path)
	case !st.Mode().IsRegular():
		err = writeDevice(abs, content)
	default:
		// A rename needs no right to the file itself: one that is read-only stays so.
		f, ferr := os.OpenFile(abs, os.O_WRONLY, 0)
		if ferr == nil {
			f.Close()
		} else if refusedThere(ferr) {
			return fault(path, ferr)
		}
		if err = replace(realPath(abs), content, st); refusedThere(err) {
			err = overwrite(abs, content)
		}
	}
	if err != nil {
		return fault(path, err)
	}
	return nil
}

// refusedThere reports whether a file could not be put beside another: a read-only
// directory, a file that is a mount of its own, a file system without renames.
func refusedThere(err error) bool {
	for _, e := range []error{iofs.ErrPermission, syscall.EROFS, syscall.EBUSY, syscall.EXDEV} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// replace puts content into a new file beside target and renames it. old is what is
// at target, nil for nothing: then the process's umask decides the mode.
func replace(target string, content []byte, old os.FileInfo) error {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	tmp := filepath.Join(filepath.Dir(target), ".ashlar-"+hex.EncodeToString(random[:]))
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil && old != nil {
		err = f.Chmod(old.Mode().Perm())
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, target)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}

// overwrite writes into the file that is there.
func overwrite(abs string, content []byte) error {
	f, err := os.OpenFile(abs, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// writeDevice writes into a pipe or device; one that nobody reads fails at once, one
// whose reader takes nothing after pipeWait.
func writeDevice(abs string, content []byte) error {
	f, err := os.OpenFile(abs, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	late := time.AfterFunc(pipeWait, func() { _ = f.Close() }) // ends a write that waits
	_, err = f.Write(content)
	if !late.Stop() {
		return errors.New("its reader takes nothing")
	}
	return errors.Join(err, f.Close())
}
