package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

// A reader opens, reads and asks while a write transaction is open, sees what was
// committed before it and then what it committed, and leaves the file as it was.
func TestAReaderWaitsForNoWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "kernel.db"), sqlite.Options{})
	put(t, s, "a", "first", nil)
	inside, release, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- s.Write(ctx, func(tx store.Tx) error {
			_, err := tx.Append("a", event.Draft{Kind: "second"})
			close(inside)
			<-release
			return err
		})
	}()
	<-inside
	before := files(t, dir)
	bounded, cancel := context.WithTimeout(ctx, 4*time.Second) // less than SQLite would wait
	defer cancel()
	r, err := sqlite.OpenReader(bounded, pathOf(s), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	count := func() int64 {
		t.Helper()
		a, err := r.Ask(bounded, store.Question{SQL: "SELECT count(*) AS n FROM events"})
		if err != nil {
			t.Fatal(err)
		}
		h, err := r.Head(bounded, "a")
		if err != nil || h.Seq != a.Rows[0][0] {
			t.Fatalf("the head is %d, %v; the query counts %v", h.Seq, err, a.Rows)
		}
		return h.Seq
	}
	if n := count(); n != 1 {
		t.Errorf("%d events before the commit", n)
	}
	if events, _, err := s.Events(bounded, "a", store.Query{}); err != nil || len(events) != 1 {
		t.Errorf("the writer's own store reads %d events, %v", len(events), err)
	}
	if after := files(t, dir); after != before {
		t.Errorf("the reader left %s, there was %s", after, before)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 2 {
		t.Errorf("%d events after the commit", n)
	}
	if err := r.Write(ctx, func(store.Tx) error { return nil }); !errors.Is(err, kernel.Unsupported) {
		t.Errorf("a write gives %v", err)
	}
	if err := errors.Join(r.Flush(ctx), r.Close(), r.Close()); err != nil {
		t.Error(err)
	}
}

func TestAReaderMakesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := sqlite.OpenReader(context.Background(), filepath.Join(dir, "none.db"), sqlite.Options{})
	if !errors.Is(err, kernel.NotFound) {
		t.Errorf("%v", err)
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenReader(context.Background(), empty, sqlite.Options{}); !errors.Is(err, kernel.Corruption) {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A backup is of one moment, whole, and a file of its own.
func TestABackupIsAStore(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "kernel.db"), sqlite.Options{})
	dialogue(t, s)
	to := filepath.Join(dir, "it's a copy.db")
	if err := s.Backup(ctx, to); err != nil {
		t.Fatal(err)
	}
	put(t, s, "later", "k", nil)
	if err := s.Backup(ctx, to); !errors.Is(err, kernel.Validation) {
		t.Errorf("an existing file: %v", err)
	}
	c := open(t, to, sqlite.Options{})
	want, _, err := s.Events(ctx, "s", store.Query{Bodies: true})
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := c.Events(ctx, "s", store.Query{Bodies: true})
	if err != nil || len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d events, %v, want %d", len(got), err, len(want))
	}
	for i := range got {
		if string(got[i].Data) != string(want[i].Data) || got[i].Hash != want[i].Hash {
			t.Errorf("event %d is another one", i+1)
		}
	}
	if h, err := c.Head(ctx, "later"); err != nil || h.Seq != 0 {
		t.Errorf("what came later is in it: %+v, %v", h, err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Backup(cancelled, filepath.Join(dir, "none.db")); err == nil {
		t.Error("a cancelled backup is none")
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a failed backup leaves its file: %v", err)
	}
}
