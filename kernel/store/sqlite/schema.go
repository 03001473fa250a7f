package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"ashlar/kernel"
)

// SchemaVersion is the user_version of the databases this program writes.
const SchemaVersion = 2

// applicationID marks the file as ours: "Ashl".
const applicationID = 0x4173686c

// schema makes the tables. A column meta or data, and message.body, holds one of
//
//	{…}                            log JSON itself (message.body: any log JSON)
//	content:ID                     log JSON kept in content
//	request:LAST:FRAME:ENVELOPE    (data only) a request taken apart: LAST is the last message of
//	                               its list (0: none), FRAME the id of its frame in content,
//	                               ENVELOPE is {…} or content:ID
//
// In each of them, and in content, <0x02>ID<0x02> stands for a string kept in
// content, quotes included. In an envelope 0x03 stands for the frame, and in a
// frame 0x01 for the array of messages. Log JSON escapes all three bytes.
// content.hash is that of the whole log JSON, with nothing standing for anything.
// event.stream is the id of a row of stream: names are long and rows are many. The
// head of a stream is its last event, and is kept nowhere else: each page that a
// commit touches is written to the log twice. For the same reason ids do not come
// from AUTOINCREMENT: no position is used again as long as the newest event is never
// removed, and who removes streams says so in an event first.
const schema = `
CREATE TABLE event (
	position       INTEGER PRIMARY KEY,
	stream         INTEGER NOT NULL,
	seq            INTEGER NOT NULL,
	epoch_ms       INTEGER NOT NULL,
	kind           TEXT NOT NULL,
	schema_version INTEGER NOT NULL,
	meta           TEXT NOT NULL,
	data           TEXT NOT NULL,
	hash           BLOB NOT NULL,
	UNIQUE (stream, seq)
);
CREATE TRIGGER event_no_update BEFORE UPDATE ON event
	BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
` + noDelete + `

CREATE TABLE stream (
	id     INTEGER PRIMARY KEY,
	stream TEXT NOT NULL UNIQUE
);

CREATE TABLE content (
	id   INTEGER PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	body NOT NULL
);
CREATE TRIGGER content_no_update BEFORE UPDATE ON content
	BEGIN SELECT RAISE(ABORT, 'content is never changed'); END;

CREATE TABLE message (
	id   INTEGER PRIMARY KEY,
	node BLOB NOT NULL UNIQUE,
	prev INTEGER NOT NULL,
	body TEXT NOT NULL
);
CREATE TRIGGER message_no_update BEFORE UPDATE ON message
	BEGIN SELECT RAISE(ABORT, 'messages are never changed'); END;

CREATE TABLE projection (
	tab   TEXT NOT NULL,
	key   TEXT NOT NULL,
	value TEXT NOT NULL,
	PRIMARY KEY (tab, key)
) WITHOUT ROWID;
`

// noDelete refuses the removal of events; whole streams go with it away (tx.remove).
const noDelete = `CREATE TRIGGER event_no_delete BEFORE DELETE ON event
	BEGIN SELECT RAISE(ABORT, 'events are never removed one by one'); END;`

// viewSQL makes `+"`events`"+`, which gives the objects back as they were appended, in
// plain SQL that any SQLite program can run.
func viewSQL() string {
	return `
CREATE VIEW events AS
SELECT position, stream.stream AS stream, event.seq AS seq, epoch_ms, kind, schema_version,
	` + whole("event.meta") + ` AS meta,
	CASE WHEN substr(event.data, 1, 8) <> 'request:' THEN ` + whole("event.data") + ` ELSE (
		WITH RECURSIVE
		tail (last, rest) AS (
			SELECT substr(event.data, 9), substr(event.data, 9 + instr(substr(event.data, 9), ':'))
		),
		ref (last, frame, envelope) AS (
			SELECT CAST(last AS INTEGER), CAST(rest AS INTEGER), substr(rest, 1 + instr(rest, ':')) FROM tail
		),
		chain (id, prev, body, depth) AS (
			SELECT m.id, m.prev, m.body, 0 FROM message AS m JOIN ref ON m.id = ref.last
			UNION ALL
			SELECT m.id, m.prev, m.body, depth + 1 FROM chain JOIN message AS m ON m.id = chain.prev
		),
		list (text) AS (
			SELECT '[' || coalesce(group_concat(text, ','), '') || ']'
			FROM (SELECT ` + whole("chain.body") + ` AS text FROM chain ORDER BY depth DESC)
		)
		SELECT replace(` + whole("ref.envelope") + `, char(3),
			replace(` + whole("'content:' || ref.frame") + `, char(1), (SELECT text FROM list)))
		FROM ref
	) END AS data,
	lower(hex(event.hash)) AS hash
FROM event JOIN stream ON stream.id = event.stream;
`
}

// whole is the SQL expression for the log JSON that a column stands for: its body
// is looked up, then one string after the other is put in. CAST reads the digits
// that an id begins with. Each step takes a marker away, so a damaged one cannot
// make it endless.
func whole(column string) string {
	const id = `CAST(substr(t, instr(t, char(2)) + 1) AS INTEGER)`
	return `CASE WHEN substr(` + column + `, 1, 8) <> 'content:' AND instr(` + column + `, char(2)) = 0 THEN ` + column + ` ELSE (
		WITH RECURSIVE filled (t) AS (
			SELECT CASE WHEN substr(` + column + `, 1, 8) = 'content:'
				THEN (SELECT CAST(body AS TEXT) FROM content WHERE id = CAST(substr(` + column + `, 9) AS INTEGER))
				ELSE ` + column + ` END
			UNION ALL
			SELECT substr(t, 1, instr(t, char(2)) - 1)
				|| (SELECT body FROM content WHERE id = ` + id + `)
				|| substr(t, instr(t, char(2)) + length(` + id + `) + 2)
			FROM filled WHERE instr(t, char(2)) > 0
		)
		SELECT t FROM filled WHERE instr(t, char(2)) = 0
	) END`
}

// migrations bring a database to the next version: the first one is for version 1.
// They run in one transaction.
var migrations = []string{
	"ALTER TABLE stream DROP COLUMN seq; ALTER TABLE stream DROP COLUMN hash",
}

// migrate makes the tables of an empty database, brings an older one up to date, and refuses one that is not
// ours or that a newer program wrote. All of it is one transaction. The caller holds the write lock.
func migrate(ctx context.Context, c *sql.Conn, path string) error {
	steps, err := outdated(ctx, c, path)
	if err != nil || len(steps) == 0 {
		return err
	}
	steps = append([]string{"BEGIN IMMEDIATE"}, steps...)
	for _, stmt := range append(steps, pragma("user_version", SchemaVersion), "COMMIT") {
		if _, err := c.ExecContext(ctx, stmt); err != nil {
			c.ExecContext(ctx, "ROLLBACK") //nolint:errcheck // the first error is the one that says why
			return classify("store.open", path, err)
		}
	}
	return nil
}

// outdated gives the statements that bring a database up to date; none for one that is.
func outdated(ctx context.Context, c *sql.Conn, path string) (steps []string, err error) {
	const op = "store.open"
	var version, app, tables int
	for _, q := range []struct {
		sql string
		to  *int
	}{
		{"PRAGMA user_version", &version},
		{"PRAGMA application_id", &app},
		{"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := c.QueryRowContext(ctx, q.sql).Scan(q.to); err != nil {
			return nil, classify(op, path, err)
		}
	}
	switch {
	case app == applicationID && version == SchemaVersion:
		return nil, nil
	case app == applicationID && version > SchemaVersion:
		return nil, kernel.Errorf(op, kernel.Unsupported,
			"%s has database version %d; this program reads up to %d: use the newer program", path, version, SchemaVersion)
	case app == applicationID && version > 0:
		return slices.Clone(migrations[version-1:]), nil
	case tables > 0:
		return nil, kernel.Errorf(op, kernel.Unsupported, "%s is an SQLite database of another program (version %d)", path, version)
	}
	return []string{schema + viewSQL(), pragma("application_id", applicationID)}, nil
}
