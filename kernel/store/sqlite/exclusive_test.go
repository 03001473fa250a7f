package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/kernel/store/storetest"
)

func TestAlone(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Subject{
		Open: func(t *testing.T, o storetest.Options) store.Store {
			return open(t, filepath.Join(t.TempDir(), "kernel.db"), sqlite.Options{Now: o.Now, Redact: o.Redact, Exclusive: true})
		},
		Reopen: func(t *testing.T, s store.Store) store.Store {
			return open(t, pathOf(s), sqlite.Options{Exclusive: true})
		},
		PlantV1: func(t *testing.T, s store.Store, stream string, seq int64, kind, data string) {
			db, err := sql.Open("sqlite", "file:"+pathOf(s)+"?vfs=unix-excl")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			plant(t, db, stream, seq, kind, data)
		},
	})
}

// without is a folder in which SQLite cannot make the file that processes share: a link
// stands in its place, which it does not follow.
func without(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "kernel.db")
	if err := os.Symlink("nowhere", path+"-shm"); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWithoutSharedMemoryAProcessIsAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := without(t)
	s := open(t, path, sqlite.Options{})
	if !s.Exclusive() {
		t.Fatal("it was opened as if it could be shared")
	}
	put(t, s, "a", "first", nil)
	r, err := sqlite.OpenReader(ctx, path, sqlite.Options{})
	if err != nil {
		t.Fatalf("a reader of the same process: %v", err)
	}
	if h, err := r.Head(ctx, "a"); err != nil || h.Seq != 1 {
		t.Errorf("the reader's head: %v, %v", h, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// A second opening and its end must not cost the first one its lock.
	other := open(t, path, sqlite.Options{})
	put(t, other, "a", "second", nil)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a", "third", nil)
	for _, how := range []string{"open", "read"} {
		out := another(t, how, path)
		if !strings.HasPrefix(out, "busy ") || !strings.Contains(out, fmt.Sprintf("process %d", os.Getpid())) || !strings.Contains(out, "no shared memory") {
			t.Errorf("%s by another process: %s", how, out)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"open", "read"} {
		if out := another(t, how, path); out != "ok alone 3\n" {
			t.Errorf("%s after it was closed: %s", how, out)
		}
	}
}

func TestOnALocalDiskNobodyIsAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	s := open(t, path, sqlite.Options{})
	put(t, s, "a", "first", nil)
	if s.Exclusive() {
		t.Error("it is exclusive")
	}
	if out := another(t, "open", path); out != "ok shared 1\n" {
		t.Error(out)
	}
	// While somebody shares it, nobody gets it alone.
	if out := another(t, "alone", path); !strings.HasPrefix(out, "busy ") {
		t.Error(out)
	}
}

const openEnv = "ASHLAR_TEST_OPEN"

// another opens a database in another process and gives what came of it.
func another(t *testing.T, how, path string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), openEnv+"="+how+" "+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// beAnother is that process: it prints how it got the database, and how long stream a is.
func beAnother(order string) int {
	ctx := context.Background()
	how, path, _ := strings.Cut(order, " ")
	open := sqlite.Open
	if how == "read" {
		open = sqlite.OpenReader
	}
	s, err := open(ctx, path, sqlite.Options{Exclusive: how == "alone"})
	if err != nil {
		fmt.Println(kernel.KindOf(err), err)
		return 0
	}
	defer s.Close()
	h, err := s.Head(ctx, "a")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ok", map[bool]string{true: "alone", false: "shared"}[s.Exclusive()], h.Seq)
	return 0
}
