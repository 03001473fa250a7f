package scripttest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar/stdlib/fs"
)

func TestFilesOfTheProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("latin1.txt", "caf\xe9")
	w.file("mode.sh", "#!/bin/sh")
	if err := os.Chmod(filepath.Join(w.dir, "mode.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	w.link("nowhere/at/all", "dangling")
	w.link("mode.sh", "link")
	w.link("ring_b", "ring_a")
	w.link("ring_a", "ring_b")
	w.passes(`
		std.fs.write("a.txt", "größe")
		assert(std.fs.read("a.txt") == "größe" and std.fs.exists("a.txt") and std.fs.is_file("a.txt") and not std.fs.is_dir("a.txt"))
		assert(std.fs.read(std.env.project_root() .. "/a.txt") == "größe")
		assert(std.fs.read_binary("latin1.txt") == "caf\233")
		std.fs.write_binary("bin", "\0\255\1")
		assert(std.fs.read_binary("bin") == "\0\255\1")
		std.fs.mkdir("d/e/f") std.fs.mkdir("d/e/f")
		std.fs.write("d/e/f/one.txt", "1") std.fs.write("d/two.txt", "2") std.fs.write("d/x.lua", "3")
		assert(table.concat(std.fs.glob("d/*.txt"), " ") == "d/two.txt")
		assert(table.concat(std.fs.glob("d/**/*.txt"), " ") == "d/e/f/one.txt d/two.txt")
		assert(#std.fs.glob("none/*.x") == 0)
		assert(table.concat(std.fs.walk("d"), " ") == "d/e/f/one.txt d/two.txt d/x.lua")
		std.fs.copy("mode.sh", "copy.sh")
		std.fs.rename("d/two.txt", "d/three.txt")
		assert(not std.fs.exists("d/two.txt") and std.fs.read("d/three.txt") == "2")
		std.fs.symlink("d", "to_d")
		assert(table.concat(std.fs.walk("to_d"), " ") == "to_d/e/f/one.txt to_d/three.txt to_d/x.lua")
		std.fs.remove("to_d")
		assert(std.fs.exists("d/three.txt"))
		std.fs.write("link", "new") -- through the link, which stays
		assert(std.fs.read("mode.sh") == "new" and std.fs.inspect("link").kind == "symlink")
		std.fs.remove("d")
		assert(not std.fs.exists("d"))
		std.fs.write("dangling2", "") std.fs.remove("dangling") -- a dangling link can be removed
		assert(std.fs.inspect("dangling").kind == "missing")
	`)
	for _, name := range []string{"mode.sh", "copy.sh"} {
		if st, err := os.Stat(filepath.Join(w.dir, name)); err != nil || st.Mode().Perm() != 0o750 {
			t.Errorf("%s: %v %v", name, st.Mode(), err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, ".ashlar-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for src, want := range map[string]string{
		`std.fs.read("none")`:                 "std.fs: read: not_found: none",
		`std.fs.read("latin1.txt")`:           "read_binary",
		`std.fs.read(".")`:                    "validation: . is a directory",
		`std.fs.write(".", "x")`:              "validation: . is a directory",
		`std.fs.read("")`:                     "validation: the path is empty",
		`std.fs.read("a\0b")`:                 "validation",
		`std.fs.write("a", "\255")`:           "not UTF-8",
		`std.fs.write("no/dir/here", "x")`:    "not_found",
		`std.fs.read("ring_a")`:               "std.fs: read: ",
		`std.fs.write("ring_a", "x")`:         "std.fs: write: ",
		`std.fs.remove("none")`:               "not_found",
		`std.fs.remove(".")`:                  "permission",
		`std.fs.remove("..")`:                 "permission",
		`std.fs.rename("..", "x")`:            "permission",
		`std.fs.remove("/")`:                  "permission",
		`std.fs.glob("a[")`:                   "malformed",
		`std.fs.walk("a.txt")`:                "no directory",
		`std.fs.walk("none")`:                 "not_found",
		`std.fs.read("/proc/self/mem")`:       "permission",
		`io.open("/proc/self/mem", "r+"):x()`: "",
		`std.json.read_file("mode.sh")`:       "std.json: read_file: validation",
	} {
		w.fails(src, want)
	}
}

func TestInspectSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("f", "x")
	w.link("f", "l")
	w.link("gone", "dangling")
	if err := syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.passes(`
		local function is(path, kind, dangling)
			local f = std.fs.inspect(path)
			assert(f.kind == kind and f.dangling == dangling, path .. " is " .. f.kind)
			return f
		end
		local f = is("f", "file")
		assert(f.canonical == std.env.project_root() .. "/f" and f.ino > 0 and f.dev ~= nil)
		assert(is("l", "symlink").canonical == f.canonical and is("l", "symlink").ino ~= f.ino)
		is(".", "dir") is("pipe", "other") is("none", "missing") is("f/below", "missing")
		assert(is("dangling", "symlink", true).canonical == nil)
	`)
}

func TestTheControlPlaneIsOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.link(w.home, "direct")
	w.link(filepath.Dir(w.home), "above")
	w.link("direct", "chain")
	w.link(filepath.Join(w.home, "not_yet"), "dangling")
	deep := filepath.Join(w.dir, "deep", "er")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	w.link("deep/er", "short")
	// Seen through short, its own text would lead elsewhere than it does.
	w.link("../../../home/.ashlar/not_yet", filepath.Join(deep, "relative"))
	w.link(filepath.Join(w.home, "kernel.db"), "db")
	for _, p := range []string{
		w.home, w.home + "/kernel.db", "../home/.ashlar/kernel.db", "direct/kernel.db", "above/.ashlar/kernel.db", "chain/kernel.db",
		"dangling", "short/relative", "deep/er/relative", "db", "/proc/self/root" + w.home + "/kernel.db", "direct/new/file",
	} {
		for _, src := range []string{
			`std.fs.read(%q)`, `std.fs.read_binary(%q)`, `std.fs.write(%q, "x")`, `std.fs.write_binary(%q, "x")`, `std.fs.exists(%q)`, `std.fs.mkdir(%q)`,
			`std.fs.copy(%q, "x")`, `std.fs.copy("f", %q)`, `std.fs.inspect(%q)`, `std.fs.symlink(%q, "l2")`, `std.fs.walk(%q)`, `std.json.write_file(%q, 1)`,
			`assert(io.open(%q, "w"))`, `assert(io.open(%q))`, `io.lines(%q)`,
		} {
			w.file("f", "x")
			w.fails(fmt.Sprintf(src, p), "ASHLAR_HOME")
		}
	}
	for _, src := range []string{
		`std.fs.remove("../home")`, `std.fs.remove("above/.ashlar")`, `std.fs.rename("../home", "mine")`, `std.fs.rename("../home/.ashlar", "mine")`,
		`std.fs.rename("f", "direct/kernel.db")`, `assert(os.remove("direct/kernel.db"))`, `assert(os.rename("../home", "mine"))`, `std.fs.remove("direct/kernel.db")`,
	} {
		w.fails(src, "ASHLAR_HOME")
	}
	w.passes(`
		for _, p in ipairs(std.fs.walk("..")) do assert(not p:find("kernel%.db"), p) end
		for _, p in ipairs(std.fs.glob("../**/*")) do assert(not p:find("kernel%.db"), p) end
		std.fs.remove("direct") -- the link itself is the project's
		assert(std.fs.inspect("direct").kind == "missing")
	`)
	w.fails(`std.fs.glob("../home/.ashlar/*")`, "ASHLAR_HOME")
	b, err := os.ReadFile(filepath.Join(w.home, "kernel.db"))
	if err != nil || string(b) != "the log" {
		t.Errorf("the control plane was touched: %q %v", b, err)
	}
	if list, _ := os.ReadDir(w.home); len(list) != 1 {
		t.Errorf("the control plane holds %v", list)
	}
}

func TestBoundsOfFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	big, err := os.Create(filepath.Join(w.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := big.Truncate(65 << 20); err != nil {
		t.Fatal(err)
	}
	big.Close()
	start := time.Now()
	for _, src := range []string{`std.fs.read("pipe")`, `std.fs.read_binary("pipe")`, `std.fs.write("pipe", "x")`, `std.fs.copy("pipe", "x")`,
		`assert(io.open("pipe"))`, `assert(io.open("pipe", "w"))`, `io.lines("pipe")`} {
		w.fails(src, "pipe")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("a pipe held the script for %s", took)
	}
	for _, src := range []string{`std.fs.read("big")`, `std.fs.read_binary("big")`, `std.fs.copy("big", "x")`} {
		w.fails(src, "limit: big is larger than 67108864 bytes")
	}
	w.passes(`std.fs.write("/dev/null", "x")`)
	dir := filepath.Join(w.dir, "many")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range fs.MaxWalkEntries + 1 {
		w.file(filepath.Join(dir, fmt.Sprint(i)), "")
	}
	w.fails(`std.fs.walk("many")`, "limit: many holds more than 10000 files")
	w.fails(`std.fs.glob("many/*")`, "limit: more than 10000 paths")
}

// TestAFileThatMayBeWrittenWhereItsFolderMayNot runs as a user without rights over
// everything: root's are put away on a thread of its own.
func TestAFileThatMayBeWrittenWhereItsFolderMayNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := filepath.Join(w.dir, "closed")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w.file("closed/open.txt", "old and long")
	w.file("closed/shut.txt", "old")
	const nobody = 65534
	if os.Getuid() == 0 {
		for p := w.dir; strings.HasPrefix(p, os.TempDir()) && p != os.TempDir(); p = filepath.Dir(p) {
			if err := os.Chmod(p, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, mode := range map[string]os.FileMode{"": 0o555, "open.txt": 0o666, "shut.txt": 0o444} {
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	area := fs.Area{Dir: w.dir, Home: w.home}
	done := make(chan [3]error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if os.Getuid() == 0 {
			if _, _, e := syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0); e != 0 {
				t.Error(e)
			}
		}
		done <- [3]error{area.WriteText("closed/open.txt", "new"), area.WriteText("closed/shut.txt", "new"), area.WriteText("closed/none.txt", "new")}
	}()
	errs := <-done
	if b, _ := os.ReadFile(filepath.Join(dir, "open.txt")); errs[0] != nil || string(b) != "new" {
		t.Errorf("%q %v", b, errs[0])
	}
	for i, name := range []string{"shut.txt", "none.txt"} {
		if err := errs[i+1]; err == nil || !strings.Contains(err.Error(), "permission: closed/"+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "shut.txt")); string(b) != "old" {
		t.Errorf("%q", b)
	}
}
