package verify_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/kernel/verify"
)

var update = flag.Bool("update", false, "make the golden stores anew")

const (
	oldStore   = "../../testdata/stores/v1.db"
	oldSession = "0f0e0d0c-0b0a-4908-8706-050403020100"
)

// The tables of database version 1.
const tablesV1 = `
CREATE TABLE event (position INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL, seq INTEGER NOT NULL, epoch_ms INTEGER NOT NULL,
	kind TEXT NOT NULL, schema_version INTEGER NOT NULL, meta TEXT NOT NULL, data TEXT NOT NULL, hash BLOB NOT NULL, UNIQUE (stream, seq));
CREATE TABLE stream (id INTEGER PRIMARY KEY, stream TEXT NOT NULL UNIQUE, seq INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TABLE content (id INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, body NOT NULL);
CREATE TABLE message (id INTEGER PRIMARY KEY AUTOINCREMENT, node BLOB NOT NULL UNIQUE, prev INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE projection (tab TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (tab, key)) WITHOUT ROWID;
`

func rawDB(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	check(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

// makeV1 writes a store of database version 1 with a session whose first events have
// schema version 1 and whose last ones have version 2.
func makeV1(t *testing.T, path string) {
	t.Helper()
	ctx := context.Background()
	ms := int64(1_757_300_000_000)
	clock := func() time.Time { ms++; return time.UnixMilli(ms) }
	now := filepath.Join(t.TempDir(), "now.db")
	s, err := sqlite.Open(ctx, now, sqlite.Options{Now: clock})
	check(t, err)
	check(t, s.Close())
	db := rawDB(t, now)
	_, err = db.Exec("INSERT INTO stream (stream) VALUES (?)", oldSession)
	check(t, err)
	prev := event.Origin(oldSession)
	for i, old := range []struct{ kind, data string }{
		{event.SessionOpened, `{"data":{"owner":"me","scope_id":"scope"},"meta":{"job":"old"}}`},
		{event.BudgetGranted, `{"data":{"amount":9,"scope_id":"scope","tag":"beats"},"meta":{}}`},
		{event.MsgUser, `{"data":{"content":"hello"},"meta":{}}`},
		{event.BudgetReserved, `{"data":{"amount":1,"scope_id":"scope","tag":"beats"},"meta":{}}`},
		{event.LLMRequest, `{"beat":"b1","data":{"request":{"messages":[{"content":"hello","role":"user"}]},"window":{"dropped":2}},"meta":{}}`},
		{event.LLMResponse, `{"beat":"b1","data":{"content":[],"usage":{"input_tokens":5,"output_tokens":2}},"meta":{}}`},
		{event.ToolCall, `{"beat":"b1","data":{"args":{},"call_id":"c","name":"n"},"meta":{}}`},
		{event.ToolResult, `{"beat":"b1","data":{"call_id":"c","ok":true,"result":"r"},"meta":{}}`},
	} {
		e := event.Event{Stream: oldSession, Seq: int64(i + 1), EpochMS: clock().UnixMilli(), Kind: old.kind, SchemaVersion: 1}
		e.Hash = event.Link(prev, &e, event.HashOf([]byte(`{}`)), event.HashOf([]byte(old.data)))
		prev = e.Hash
		_, err := db.Exec("INSERT INTO event (stream, seq, epoch_ms, kind, schema_version, meta, data, hash) VALUES (1, ?, ?, ?, 1, '{}', ?, ?)",
			e.Seq, e.EpochMS, e.Kind, old.data, e.Hash[:])
		check(t, err)
	}
	check(t, db.Close())
	s, err = sqlite.Open(ctx, now, sqlite.Options{Now: clock})
	check(t, err)
	long := strings.Repeat("a text that is kept by its hash; ", 20)
	check(t, s.Write(ctx, func(tx store.Tx) error {
		messages := []any{map[string]any{"role": "user", "content": "hello"}, map[string]any{"role": "user", "content": long}}
		for _, d := range []event.Draft{
			{Kind: event.BudgetReserved, Data: map[string]any{"amount": int64(2), "scope_id": "scope", "tag": "beats"}},
			{Kind: event.LLMRequest, Meta: map[string]any{"beat": "b2"}, Data: map[string]any{"request": map[string]any{"messages": messages, "system": long}}},
			{Kind: event.LLMResponse, Meta: map[string]any{"beat": "b2"}, Data: map[string]any{"content": []any{}, "usage": map[string]any{"input_tokens": int64(7)}}},
			{Kind: event.SessionClosed, Data: map[string]any{"reason": "closed"}},
		} {
			if _, err := tx.Append(oldSession, d); err != nil {
				return err
			}
		}
		return nil
	}))
	_, err = verify.Repair(ctx, s, nil) // the projections
	check(t, err)
	check(t, s.Close())

	os.Remove(path)
	old := rawDB(t, path)
	for _, q := range []string{
		"PRAGMA page_size = 1024", tablesV1, "ATTACH '" + now + "' AS now",
		"INSERT INTO event SELECT * FROM now.event; INSERT INTO content SELECT * FROM now.content; INSERT INTO message SELECT * FROM now.message; INSERT INTO projection SELECT * FROM now.projection",
		"INSERT INTO stream SELECT s.id, s.stream, e.seq, e.hash FROM now.stream AS s JOIN now.event AS e ON e.stream = s.id AND e.seq = (SELECT max(seq) FROM now.event WHERE stream = s.id)",
	} {
		_, err := old.Exec(q)
		check(t, err)
	}
	rows, err := old.Query("SELECT sql FROM now.sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY type, name")
	check(t, err)
	var statements []string
	for rows.Next() {
		var q string
		check(t, rows.Scan(&q))
		statements = append(statements, q)
	}
	rows.Close()
	for _, q := range append(statements, "DETACH now", "PRAGMA application_id = 1098082412", "PRAGMA user_version = 1", "VACUUM") {
		_, err := old.Exec(q)
		check(t, err)
	}
	check(t, old.Close())
}

// copied is a copy of the golden store.
func copied(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(oldStore)
	check(t, err)
	path := filepath.Join(t.TempDir(), "kernel.db")
	check(t, os.WriteFile(path, b, 0o600))
	return path
}

func versionOf(t *testing.T, path string) (version int, columns string) {
	t.Helper()
	db := rawDB(t, path)
	check(t, db.QueryRow("PRAGMA user_version").Scan(&version))
	check(t, db.QueryRow("SELECT group_concat(name) FROM pragma_table_info('stream')").Scan(&columns))
	check(t, db.Close())
	return version, columns
}

// A store of the first version opens, is brought up to date, and is as whole as it was.
func TestAStoreOfTheFirstVersionIsRead(t *testing.T) {
	t.Parallel()
	if *update {
		makeV1(t, oldStore)
	}
	ctx := context.Background()
	path := copied(t)
	if v, columns := versionOf(t, path); v != 1 || columns != "id,stream,seq,hash" {
		t.Fatalf("the golden store has version %d, stream has %s", v, columns)
	}
	s, err := sqlite.OpenReader(ctx, path, sqlite.Options{})
	check(t, err)
	defer s.Close()
	if v, columns := versionOf(t, path); v != sqlite.SchemaVersion || columns != "id,stream" {
		t.Errorf("it has become version %d, stream has %s", v, columns)
	}
	events, more, err := s.Events(ctx, oldSession, store.Query{Bodies: true})
	check(t, err)
	var got []string
	for _, e := range events {
		if e.SchemaVersion != event.SchemaVersion {
			t.Errorf("%d is read in version %d", e.Seq, e.SchemaVersion)
		}
		got = append(got, e.Kind+string(e.Meta))
	}
	want := `session_opened{"job":"old"} budget_granted{} msg_user{} budget_reserved{} llm_request{"beat":"b1"} llm_response{"beat":"b1"} ` +
		`tool_call{"beat":"b1"} tool_result{"beat":"b1"} budget_reserved{} llm_request{"beat":"b2"} llm_response{"beat":"b2"} session_closed{}`
	if text := strings.Join(got, " "); text != want || more {
		t.Errorf("%s, want %s", text, want)
	}
	r, err := verify.Check(ctx, s, []event.Head{{Stream: oldSession, Seq: events[11].Seq, Hash: events[11].Hash}})
	check(t, err)
	if !r.OK() || r.Events != 12 || r.Messages != 2 {
		t.Errorf("%+v", r)
	}
	a, err := s.Ask(ctx, store.Question{SQL: "SELECT json_array_length(data, '$.request.messages') AS n FROM events WHERE seq = 10"})
	if err != nil || len(a.Rows) != 1 || a.Rows[0][0] != int64(2) {
		t.Errorf("%+v, %v", a, err)
	}
	check(t, s.Write(ctx, func(tx store.Tx) error { _, err := tx.Append("new", event.Draft{Kind: "note"}); return err }))
}

// A migration that stops half-way leaves the store as it was.
func TestAMigrationIsOneTransaction(t *testing.T) {
	t.Parallel()
	path := copied(t)
	db := rawDB(t, path)
	_, err := db.Exec("ALTER TABLE stream RENAME COLUMN hash TO head") // its second step fails
	check(t, err)
	check(t, db.Close())
	if s, err := sqlite.Open(context.Background(), path, sqlite.Options{}); err == nil {
		s.Close()
		t.Fatal("the migration did not fail")
	}
	if v, columns := versionOf(t, path); v != 1 || columns != "id,stream,seq,head" {
		t.Errorf("it is left with version %d, stream has %s", v, columns)
	}
}

// What a newer program wrote is left alone, and both versions are named.
func TestANewerStoreIsRefused(t *testing.T) {
	t.Parallel()
	path := copied(t)
	db := rawDB(t, path)
	_, err := db.Exec("PRAGMA user_version = 99")
	check(t, err)
	check(t, db.Close())
	for name, open := range map[string]func(context.Context, string, sqlite.Options) (*sqlite.Store, error){"open": sqlite.Open, "read": sqlite.OpenReader} {
		_, err := open(context.Background(), path, sqlite.Options{})
		if !errors.Is(err, kernel.Unsupported) || !strings.Contains(err.Error(), "99") || !strings.Contains(err.Error(), "up to 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, _ := versionOf(t, path); v != 99 {
		t.Errorf("it has become version %d", v)
	}
}
