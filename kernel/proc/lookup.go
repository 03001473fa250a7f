package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ashlar/kernel"
)

// defaultPath is where a command without PATH in its environment is looked for.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookUp finds the executable of a checked spec as the command itself would: in
// the PATH of its own environment, relative names against its own directory. The
// host's PATH and directory have no say. The path is absolute. A mistake is named
// for what it is: the directory (not_found, permission, validation) or the command
// (not_found, permission).
func lookUp(op string, spec *Spec) (string, error) {
	if err := checkDir(op, spec.Dir); err != nil {
		return "", err
	}
	name := spec.Argv[0]
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			// Not cleaned: "a/../b" through a symlink is not "b".
			path = spec.Dir + "/" + path
		}
		if err := executable(path); err != nil {
			return "", commandError(op, name, "", err)
		}
		return path, nil
	}
	search := valueOf(spec.Env, "PATH", defaultPath)
	var denied error
	for _, dir := range strings.Split(search, ":") {
		if !filepath.IsAbs(dir) { // "" and "." are the command's directory, "bin" is below it
			dir = spec.Dir + "/" + dir
		}
		path := strings.TrimSuffix(dir, "/") + "/" + name
		err := executable(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, fs.ErrPermission) && denied == nil {
			denied = commandError(op, path, "", err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", commandError(op, name, " in PATH "+search, fs.ErrNotExist)
}

// checkDir says what is wrong with a working directory.
func checkDir(op, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return kernel.Errorf(op, kernel.NotFound, "working directory %s does not exist", dir)
	case errors.Is(err, fs.ErrPermission):
		return kernel.Errorf(op, kernel.Permission, "working directory %s may not be entered", dir)
	case err != nil:
		return kernel.Errorf(op, kernel.Validation, "working directory %s: %w", dir, err)
	case !info.IsDir():
		return kernel.Errorf(op, kernel.Validation, "working directory %s is not a directory", dir)
	}
	return nil
}

// executable reports why path cannot be executed, as far as its mode tells; the
// kernel has the last word.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir(), info.Mode()&0o111 == 0:
		return fs.ErrPermission
	}
	return nil
}

func commandError(op, name, where string, err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return kernel.Errorf(op, kernel.Permission, "command %q may not be executed", name)
	default: // not there, or a path through something that is no directory
		return kernel.Errorf(op, kernel.NotFound, "command %q was not found%s", name, where)
	}
}

// valueOf gives the last value of a variable, as the command will see it.
func valueOf(env []string, name, absent string) string {
	value := absent
	for _, entry := range env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}
