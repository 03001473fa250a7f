package fs

import (
	"os"
	"path/filepath"
	"strings"

	"ashlar/vm"
)

// maxLinks is how many links one path may lead over, as in the kernel's own walk
// with room to spare.
const maxLinks = 255

// Resolve gives the absolute path that p means, for another namespace that opens
// files. Kinds: validation, and permission where it leads into ASHLAR_HOME.
func (a Area) Resolve(p string) (string, error) { return a.resolve(p) }

// resolve gives the absolute path that p means, and refuses one that leads into
// the control plane. The last part may be absent.
func (a Area) resolve(p string) (string, error) {
	abs, err := a.absolute(p)
	if err != nil {
		return "", err
	}
	real := realPath(abs)
	if a.Home != "" && within(realPath(a.Home), real) {
		return "", reserved(p, "leads into")
	}
	for _, kept := range a.Kept {
		if within(realPath(kept), real) {
			return "", reserved(p, "leads into")
		}
	}
	if within("/proc", real) && filepath.Base(real) == "mem" {
		return "", vm.Errorf("permission", "%s is a process's memory", p)
	}
	return abs, nil
}

// absolute gives the path that p means, without a look at the disk.
func (a Area) absolute(p string) (string, error) {
	if p == "" {
		return "", vm.Errorf("validation", "the path is empty")
	}
	if strings.IndexByte(p, 0) >= 0 {
		return "", vm.Errorf("validation", "the path holds a NUL byte")
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(a.Dir, p)
	}
	return filepath.Clean(p), nil
}

// removable gives the path of what is to be moved or removed: the thing itself, also
// where it is a link. It refuses what lies in the control plane or holds it, and the
// project's directory with all above it.
func (a Area) removable(p string) (string, error) {
	abs, err := a.absolute(p)
	if err != nil {
		return "", err
	}
	itself := filepath.Join(realPath(filepath.Dir(abs)), filepath.Base(abs))
	if a.Home != "" {
		home := realPath(a.Home)
		if within(home, itself) {
			return "", reserved(p, "leads into")
		}
		if within(itself, home) || within(abs, filepath.Clean(a.Home)) {
			return "", reserved(p, "holds")
		}
	}
	for _, kept := range a.Kept {
		if kept = realPath(kept); within(kept, itself) || within(itself, kept) {
			return "", reserved(p, "leads into or holds")
		}
	}
	if within(itself, realPath(a.Dir)) || within(abs, filepath.Clean(a.Dir)) {
		return "", vm.Errorf("permission", "%s is the project's directory or holds it; name what is in it", p)
	}
	return abs, nil
}

func reserved(p, how string) error {
	return vm.Errorf("permission", "%s %s ASHLAR_HOME or the log, which scripts and tools may not touch", p, how)
}

// realPath follows every link of an absolute path, as the kernel would, also where
// the end or the target of a link does not exist (yet): a dangling link still leads
// somewhere. A ring of links, which no open can pass, gives the path where it was
// given up.
func realPath(p string) string {
	done := "/"
	rest := strings.Split(filepath.ToSlash(p), "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		target, err := os.Readlink(next)
		if err != nil { // no link, or nothing there
			done = next
			continue
		}
		if links++; links > maxLinks {
			return filepath.Join(append([]string{next}, rest...)...)
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done
}

// within reports whether p is dir or lies below it.
func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
