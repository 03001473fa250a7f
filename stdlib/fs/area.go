package fs

import (
	"errors"
	"io"
	iofs "io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/vm"
)

// Area is the file system as one run may use it. It implements vm.Files.
type Area struct {
	Dir  string // the project's directory, absolute
	Home string // $ASHLAR_HOME, absolute; "" protects nothing
	// Kept are further files and directories that are the control plane's: those of a
	// store outside Home.
	Kept []string
}

// fault turns an error of the operating system into one that says what and where,
// without more than the path the script named.
func fault(path string, err error) error {
	var pe *iofs.PathError
	var le *os.LinkError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	} else if errors.As(err, &le) {
		cause = le.Err
	}
	kind := kernel.Storage
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		kind = kernel.NotFound
	case errors.Is(err, iofs.ErrPermission):
		kind = kernel.Permission
	case errors.Is(err, iofs.ErrExist), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENOTEMPTY):
		kind = kernel.Validation
	}
	return vm.Errorf(string(kind), "%s: %v", path, cause)
}

// Open opens a file as io.open does: modes r, w, a, each with + and b.
func (a Area) Open(path, mode string) (vm.File, error) {
	flags := map[string]int{
		"r": os.O_RDONLY, "w": os.O_WRONLY | os.O_CREATE | os.O_TRUNC, "a": os.O_WRONLY | os.O_CREATE | os.O_APPEND,
		"r+": os.O_RDWR, "w+": os.O_RDWR | os.O_CREATE | os.O_TRUNC, "a+": os.O_RDWR | os.O_CREATE | os.O_APPEND,
	}
	flag, ok := flags[strings.ReplaceAll(mode, "b", "")]
	if !ok {
		return nil, vm.Errorf("validation", "mode %q: want r, w or a, with + or b", mode)
	}
	abs, err := a.resolve(path)
	if err != nil {
		return nil, err
	}
	// A pipe or a socket may wait for ever, where nothing can interrupt it.
	if st, err := os.Stat(abs); err == nil && st.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		return nil, vm.Errorf("validation", "%s is a pipe or a socket; use sh.exec with a timeout", path)
	}
	f, err := os.OpenFile(abs, flag|syscall.O_NONBLOCK, 0o666)
	if err != nil {
		return nil, fault(path, err)
	}
	return f, nil
}

// Remove removes one file or empty directory, as os.remove does.
func (a Area) Remove(path string) error {
	abs, err := a.removable(path)
	if err != nil {
		return err
	}
	if err := os.Remove(abs); err != nil {
		return fault(path, err)
	}
	return nil
}

// Rename moves a file or directory.
func (a Area) Rename(from, to string) error {
	src, err := a.removable(from)
	if err != nil {
		return err
	}
	dst, err := a.removable(to)
	if err != nil {
		return err
	}
	if err := os.Rename(src, dst); err != nil {
		return fault(from, err)
	}
	return nil
}

// Temp makes a new empty file in the system's place for such and gives its path.
func (a Area) Temp() (string, error) {
	f, err := os.CreateTemp("", "ashlar-*")
	if err != nil {
		return "", fault(os.TempDir(), err)
	}
	return f.Name(), f.Close()
}

// readFile reads a regular file of at most MaxFileBytes; pipes and devices would
// wait or never end.
func (a Area) readFile(path string) ([]byte, error) {
	abs, err := a.resolve(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(abs, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fault(path, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, fault(path, err)
	}
	if st.IsDir() {
		return nil, vm.Errorf("validation", "%s is a directory", path)
	}
	if !st.Mode().IsRegular() {
		return nil, vm.Errorf("validation", "%s is no regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fault(path, err)
	}
	if len(b) > MaxFileBytes {
		return nil, vm.Errorf("limit", "%s is larger than %d bytes; read a part of it with io.open", path, MaxFileBytes)
	}
	return b, nil
}

// ReadText reads a file of valid UTF-8.
func (a Area) ReadText(path string) (string, error) {
	b, err := a.readFile(path)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", vm.Errorf("validation", "%s is not UTF-8; read it with std.fs.read_binary", path)
	}
	return string(b), nil
}

// WriteText replaces a file's content.
func (a Area) WriteText(path, text string) error { return a.writeFile(path, []byte(text)) }
