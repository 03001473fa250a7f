package sqlite_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

const childEnv = "ASHLAR_TEST_OWNER"

// TestMain is also the child process that opens a database and waits to be killed.
func TestMain(m *testing.M) {
	if order := os.Getenv(openEnv); order != "" {
		os.Exit(beAnother(order))
	}
	path := os.Getenv(childEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	s, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	err = s.Write(context.Background(), func(tx store.Tx) error {
		_, err := tx.Append("child", event.Draft{Kind: "acknowledged"})
		return err
	})
	fmt.Println(s.Owner(), err)
	time.Sleep(time.Minute) // the parent kills it long before
}

func put(t testing.TB, s store.Store, stream, kind string, data map[string]any) {
	t.Helper()
	err := s.Write(context.Background(), func(tx store.Tx) error {
		_, err := tx.Append(stream, event.Draft{Kind: kind, Meta: map[string]any{"beat": "b"}, Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func long(of string) string { return strings.Repeat(of+` "quoted" \ é `, 40) }

// dialogue writes events of every stored form to stream s.
func dialogue(t testing.TB, s store.Store) {
	t.Helper()
	message := func(content any) map[string]any { return map[string]any{"role": "user", "content": content} }
	requestOf := func(messages ...any) map[string]any {
		return map[string]any{"request": map[string]any{"messages": messages, "model": "m", "system": long("system"), "tools": []any{long("t1"), long("t2")}},
			"window": map[string]any{"note": long("window"), "dropped": int64(0)}}
	}
	put(t, s, "s", event.MsgUser, map[string]any{"content": "short"})
	put(t, s, "s", event.LLMRequest, requestOf())
	put(t, s, "s", event.LLMRequest, requestOf(message("a"), message(long("output")), long("a bare string")))
	put(t, s, "s", event.ToolResult, map[string]any{"call_id": "c", "result": long("output"), "ok": true})
	put(t, s, "s", event.Syscall, map[string]any{"n": int64(1), "result": []any{long("output"), long("output"), "x"}, long("a key"): int64(1)})
	put(t, s, "s", event.LLMRequest, requestOf(message("a"), message(long("output")), long("a bare string"), message([]any{long("output"), long("more")})))
	many := make([]any, 900)
	for i := range many {
		many[i] = int64(i)
	}
	put(t, s, "s", "numbers", map[string]any{"many": many})
	put(t, s, "s", event.LLMRequest, map[string]any{"request": "of another shape", "note": long("output")})
	err := s.Write(context.Background(), func(tx store.Tx) error {
		_, err := tx.Append("s", event.Draft{Kind: "meta", Meta: map[string]any{"m": long("output")}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheViewGivesWhatWasAppended(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	s := open(t, path, sqlite.Options{})
	dialogue(t, s)
	events, _, err := s.Events(context.Background(), "s", store.Query{Bodies: true})
	if err != nil || len(events) != 9 {
		t.Fatal(len(events), err)
	}
	rows, err := raw(t, path).Query("SELECT position, stream, seq, epoch_ms, kind, schema_version, meta, data, hash FROM events WHERE stream = ? ORDER BY seq", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	n := 0
	for ; rows.Next(); n++ {
		var e event.Event
		var hash string
		if err := rows.Scan(&e.Position, &e.Stream, &e.Seq, &e.EpochMS, &e.Kind, &e.SchemaVersion, &e.Meta, &e.Data, &hash); err != nil {
			t.Fatal(err)
		}
		if w := events[n]; e.Position != w.Position || e.Stream != w.Stream || e.Seq != w.Seq || e.EpochMS != w.EpochMS || e.Kind != w.Kind ||
			e.SchemaVersion != w.SchemaVersion || hash != w.Hash.String() || string(e.Meta) != string(w.Meta) || string(e.Data) != string(w.Data) {
			t.Errorf("row %d of the view is\n%+v\n%.300s\nthe store reads\n%.300s", n+1, e, e.Data, w.Data)
		}
	}
	if rows.Err() != nil || n != len(events) {
		t.Errorf("%d rows, %v", n, rows.Err())
	}
	var got string
	if err := raw(t, path).QueryRow("SELECT json_extract(data, '$.request.messages[1].content') FROM events WHERE seq = 3").Scan(&got); err != nil || got != long("output") {
		t.Errorf("json_extract gave %.60s, %v", got, err)
	}
}

func TestAStringIsStoredOnceHoweverOftenItOccurs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	s := open(t, path, sqlite.Options{})
	dialogue(t, s)
	for _, of := range []string{"output", "window", "t1", "system", "more"} {
		var n int
		err := raw(t, path).QueryRow(`SELECT sum(instr(text, ?) > 0) FROM (SELECT CAST(body AS TEXT) AS text FROM content
			UNION ALL SELECT body FROM message UNION ALL SELECT meta || data FROM event)`, of+` \"quoted\" \\ é `+of).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("%q is stored %d times, %v", of, n, err)
		}
	}
}

func TestAChangedBodyIsFound(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"UPDATE content SET body = replace(body, 'output', 'OUTPUT')",
		"UPDATE content SET body = replace(body, 'many', 'MANY')",
		"UPDATE content SET body = replace(body, '\"model\"', '\"MODEL\"')",
		"UPDATE content SET body = replace(body, char(2), char(4))",
		"DELETE FROM content WHERE id = 2",
		"UPDATE message SET body = replace(body, 'role', 'ROLE') WHERE id = 1",
		"UPDATE message SET prev = 0 WHERE id = 2",
		"UPDATE message SET prev = 9 WHERE id = 2",
		"DELETE FROM message WHERE id = 1",
		"UPDATE event SET data = replace(data, char(2), '') WHERE seq = 4",
		"UPDATE event SET data = 'request:x' WHERE seq = 3",
	} {
		path := filepath.Join(t.TempDir(), "kernel.db")
		s := open(t, path, sqlite.Options{})
		dialogue(t, s)
		db := raw(t, path)
		for _, q := range []string{"DROP TRIGGER content_no_update", "DROP TRIGGER message_no_update", "DROP TRIGGER event_no_update", change} {
			if _, err := db.Exec(q); err != nil {
				t.Fatalf("%s: %v", q, err)
			}
		}
		events, _, err := s.Events(context.Background(), "s", store.Query{Bodies: true})
		if change == "UPDATE event SET data = replace(data, char(2), '') WHERE seq = 4" {
			// A row of its own has no hash; the chain over the stream shows it.
			if err != nil || event.HashOf(events[3].Data) == event.HashOf([]byte(`{}`)) {
				t.Errorf("%s: %v", change, err)
			}
			continue
		}
		if !errors.Is(err, kernel.Corruption) || !strings.Contains(err.Error(), "s:") {
			t.Errorf("%s: %v", change, err)
		}
	}
}

func TestTheTablesRefuseChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	dialogue(t, open(t, path, sqlite.Options{}))
	for _, q := range []string{"UPDATE event SET kind = 'x'", "DELETE FROM event", "UPDATE content SET body = ''", "UPDATE message SET prev = 0"} {
		if _, err := raw(t, path).Exec(q); err == nil {
			t.Errorf("%s was carried out", q)
		}
	}
}

func TestOnlyItsOwnDatabasesAreOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	opening := func(name string) error {
		s, err := sqlite.Open(context.Background(), filepath.Join(dir, name), sqlite.Options{})
		if err == nil {
			s.Close()
		}
		return err
	}
	if err := opening("new/deep/kernel.db"); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"new": 0o700, "new/deep": 0o700, "new/deep/kernel.db": 0o600, "new/deep/kernel.db.wlock": 0o600, "new/deep/kernel.db.owners": 0o700} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if _, err := raw(t, filepath.Join(dir, "new/deep/kernel.db")).Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := opening("new/deep/kernel.db"); !errors.Is(err, kernel.Unsupported) || !strings.Contains(err.Error(), "version 99") ||
		!strings.Contains(err.Error(), fmt.Sprint("up to ", sqlite.SchemaVersion)) {
		t.Errorf("a newer database: %v", err)
	}
	if _, err := raw(t, filepath.Join(dir, "foreign.db")).Exec("CREATE TABLE t (a)"); err != nil {
		t.Fatal(err)
	}
	if err := opening("foreign.db"); !errors.Is(err, kernel.Unsupported) {
		t.Errorf("another program's: %v", err)
	}
	text := []byte(strings.Repeat("no database ", 500))
	if err := os.WriteFile(filepath.Join(dir, "text.db"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := opening("text.db"); !errors.Is(err, kernel.Corruption) || !strings.Contains(err.Error(), "text.db") {
		t.Errorf("no database: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "text.db")); err != nil || string(b) != string(text) {
		t.Errorf("it was changed: %v", err)
	}
}

func TestAKilledProcessIsNoLongerAnOwnerAndLeavesWhatItWasTold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	s := open(t, path, sqlite.Options{})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	owner := strings.Fields(line)
	if len(owner) != 2 || owner[1] != "<nil>" {
		t.Fatalf("the child said %q", line)
	}
	if !s.Alive(owner[0]) {
		t.Error("the child lives and is not alive")
	}
	cmd.Process.Kill() //nolint:errcheck
	cmd.Wait()         //nolint:errcheck
	if s.Alive(owner[0]) {
		t.Error("the child is dead and alive")
	}
	if h, err := s.Head(context.Background(), "child"); err != nil || h.Seq != 1 {
		t.Errorf("what was acknowledged is gone: %+v, %v", h, err)
	}
	if _, err := os.Stat(path + ".owners/" + owner[0] + ".lock"); !os.IsNotExist(err) {
		t.Errorf("the dead owner's file stays: %v", err)
	}
}
