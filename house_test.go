package ashlar_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines is the longest that a source file may be: a longer one does two things.
const maxLines = 500

// walk calls f with each source file of the repository.
func walk(t *testing.T, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
			return filepath.SkipDir
		}
		if !d.IsDir() && (strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".lua")) {
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoFileIsLongerThanOneThingNeeds(t *testing.T) {
	t.Parallel()
	walk(t, func(path string) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		n := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			n++
		}
		if n > maxLines {
			t.Errorf("%s has %d lines, more than %d", path, n, maxLines)
		}
	})
}

// TestProcessStateIsReachedOnlyByItsRooms keeps the environment, the clock and the
// starting of processes out of everything but the rooms that own them.
func TestProcessStateIsReachedOnlyByItsRooms(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{
		"os.Getenv(":     {"kernel/proc/"},
		"os.Setenv(":     {},
		"exec.Command(":  {},
		"time.Now()":     {"kernel/ident/", "kernel/proc/", "vm/lua/"},
		"os.Exit(":       {"cmd/ashlar/", "kernel/proc/guard/", "bench/"},
		"os.Environ()":   {"cmd/ashlar/", "kernel/proc/", "workspace.go"},
		"func init() {":  {"vm/lua/concat.go"}, // the one operator that no builtin can bound
		"os.LookupEnv(":  {},
		"signal.Notify(": {"cmd/ashlar/", "kernel/proc/guard/"},
	}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "bench/") ||
			strings.Contains(path, "test/") || strings.HasPrefix(path, "tools/") {
			return
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for call, rooms := range owners {
			if !strings.Contains(string(b), call) {
				continue
			}
			owned := false
			for _, r := range rooms {
				owned = owned || strings.HasPrefix(path, r)
			}
			if !owned {
				t.Errorf("%s uses %s, which belongs to %v: it is injected elsewhere", path, call, rooms)
			}
		}
	})
}

func TestEachRoomSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	documented := map[string]bool{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		dir := filepath.Dir(path)
		seen[dir] = true
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range []string{"// Package ", "// Command "} {
			if strings.HasPrefix(string(b), start) || strings.Contains(string(b), "\n"+start) {
				documented[dir] = true
			}
		}
	})
	for dir := range seen {
		if !documented[dir] {
			t.Errorf("%s has no package comment", dir)
		}
	}
}
