package sqlite_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/kernel/store/storetest"
)

func open(t testing.TB, path string, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func pathOf(s store.Store) string { return strings.TrimPrefix(s.URL(), "sqlite:") }

// raw opens the database as any other program would.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestOnDisk(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Subject{
		Open: func(t *testing.T, o storetest.Options) store.Store {
			return open(t, filepath.Join(t.TempDir(), "kernel.db"), sqlite.Options{Now: o.Now, Redact: o.Redact})
		},
		Reopen: func(t *testing.T, s store.Store) store.Store { return open(t, pathOf(s), sqlite.Options{}) },
		PlantV1: func(t *testing.T, s store.Store, stream string, seq int64, kind, data string) {
			plant(t, raw(t, pathOf(s)), stream, seq, kind, data)
		},
	})
}

func TestInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, storetest.Subject{
		Open: func(t *testing.T, o storetest.Options) store.Store {
			s, err := sqlite.OpenMemory(context.Background(), "test", sqlite.Options{Now: o.Now, Redact: o.Redact})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		PlantV1: func(t *testing.T, s store.Store, stream string, seq int64, kind, data string) {
			db, err := sql.Open("sqlite", "file:/"+s.Owner()+"?vfs=memdb")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			plant(t, db, stream, seq, kind, data)
		},
	})
}

func plant(t *testing.T, db *sql.DB, stream string, seq int64, kind, data string) {
	t.Helper()
	if _, err := db.Exec("INSERT INTO event (stream, seq, epoch_ms, kind, schema_version, meta, data, hash) VALUES ((SELECT id FROM stream WHERE stream = ?), ?, 1, ?, 1, '{}', ?, ?)",
		stream, seq, kind, data, make([]byte, len(event.Hash{}))); err != nil {
		t.Fatal(err)
	}
}
