package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

// FuzzQueryGuard holds any text to what a query may do: nothing is written, attached
// or left behind, no other file is read, and it ends.
func FuzzQueryGuard(f *testing.F) {
	for _, seed := range []string{
		"SELECT * FROM events", "WITH x AS (SELECT 1) DELETE FROM event", "SELECT 1;DROP TABLE event", "SELECT ?, :a, $stream, $sessions",
		"ATTACH 'x.db' AS x", "SELECT /* ; */ ';' -- ;\n, [;], \"a;b\", `;`", "VACUUM INTO 'y.db'", "PRAGMA writable_schema=1", "SELECT readfile('/etc/passwd')",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT i FROM n", "SELECT printf('%.*c',99999999,'x')", "SELECT * FROM pragma_table_info('event')",
		"WITH events AS (SELECT * FROM content) SELECT * FROM events", "SELECT data FROM events WHERE kind LIKE '%request' ESCAPE '!'", "select\x00", "SELECT '", "SELECT /*",
		"SELECT zeroblob(9999999999)", "SELECT fts5(1)", "SELECT * FROM sqlite_dbpage", "SELECT rtreecheck('x')", "EXPLAIN SELECT 1", "SELECT 1 INTO x",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	path := filepath.Join(dir, "kernel.db")
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	dialogue(f, s)
	before := files(f, dir)
	f.Fuzz(func(t *testing.T, text string) {
		q := store.Question{SQL: text, Stream: "s", Sessions: []string{"s"}, Named: map[string]any{"a": int64(1)}, Timeout: 100 * time.Millisecond, Limit: 10}
		start := time.Now()
		a, err := s.Ask(context.Background(), q)
		if err != nil && kernel.KindOf(err) == kernel.Validation {
			q.Named, q.Params = nil, []any{"x"}
			a, err = s.Ask(context.Background(), q)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%q ran for %v", text, took)
		}
		switch kind := kernel.KindOf(err); {
		case err == nil && len(a.Rows) > 10:
			t.Errorf("%q gave %d rows", text, len(a.Rows))
		case err != nil && kind != kernel.Validation && kind != kernel.Timeout && kind != kernel.Limit && kind != kernel.Unsupported:
			t.Errorf("%q: %v", text, err)
		}
		if after := files(t, dir); after != before {
			t.Errorf("%q left %s, there was %s", text, after, before)
		}
	})
}

// files is every file of a folder with its bytes' number and, of the database itself,
// its bytes.
func files(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, e := range entries {
		b.WriteString(e.Name() + " ")
		if filepath.Ext(e.Name()) == ".db" || filepath.Ext(e.Name()) == ".db-wal" {
			body, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(sum(body) + " ")
		}
	}
	return b.String()
}

func sum(b []byte) string { h := event.HashOf(b); return h.String()[:12] }
