package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// A page's columns: those of the event, then the bodies that its meta and data
// name in content. ?1 says whether the data of requests is wanted; in version 1
// it holds the meta as well.
const (
	wanted       = `(?1 OR e.kind <> 'llm_request' OR e.schema_version < 2)`
	selectEvents = `
SELECT e.position, e.seq, e.epoch_ms, e.kind, e.schema_version, e.meta,
	CASE WHEN ` + wanted + ` THEN e.data ELSE '{}' END, e.hash, m.hash, m.body, d.hash, d.body
FROM event AS e
LEFT JOIN content AS m ON m.id = CASE WHEN substr(e.meta, 1, 8) = 'content:' THEN CAST(substr(e.meta, 9) AS INTEGER) END
LEFT JOIN content AS d ON d.id = CASE WHEN substr(e.data, 1, 8) = 'content:' AND ` + wanted + ` THEN CAST(substr(e.data, 9) AS INTEGER) END
WHERE e.stream = (SELECT id FROM stream WHERE stream = ?2)`

	selectPage       = selectEvents + ` AND e.seq >= ?3 ORDER BY e.seq LIMIT ?4`
	selectPageKinds  = selectEvents + ` AND e.seq >= ?3 AND e.kind IN (SELECT value FROM json_each(?5)) ORDER BY e.seq LIMIT ?4`
	selectLast       = selectEvents + ` ORDER BY e.seq DESC LIMIT ?3`
	selectLastKinds  = selectEvents + ` AND e.kind IN (SELECT value FROM json_each(?4)) ORDER BY e.seq DESC LIMIT ?3`
	selectLastOfKind = selectEvents + ` AND e.kind = ?3 ORDER BY e.seq DESC LIMIT 1`

	selectHead   = `SELECT seq, hash FROM event WHERE stream = ? ORDER BY seq DESC LIMIT 1`
	selectHeadOf = `SELECT seq, hash FROM event WHERE stream = (SELECT id FROM stream WHERE stream = ?) ORDER BY seq DESC LIMIT 1`
	selectHeads  = `
SELECT s.stream, e.seq, e.hash FROM stream AS s JOIN event AS e ON e.stream = s.id
WHERE s.id > ? AND e.seq = (SELECT max(seq) FROM event WHERE stream = s.id) ORDER BY s.id LIMIT ?`

	selectRow  = `SELECT value FROM projection WHERE tab = ? AND key = ?`
	selectRows = `SELECT key, value FROM projection WHERE tab = ? AND key > ? ORDER BY key LIMIT ?`
)

const opRead = "store.read"

// reader is the read-only pool.
type reader struct {
	db   *sql.DB
	gate *gate
	path string

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

func newReader(db *sql.DB, g *gate, path string) *reader {
	return &reader{db: db, gate: g, path: path, stmts: map[string]*sql.Stmt{}}
}

func (r *reader) close() error { return r.db.Close() }

func (r *reader) stmt(ctx context.Context, q string) (*sql.Stmt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if st, ok := r.stmts[q]; ok {
		return st, nil
	}
	st, err := r.db.PrepareContext(ctx, q)
	if err == nil {
		r.stmts[q] = st
	}
	return st, err
}

func (r *reader) query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := r.stmt(ctx, q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

// row scans the one row of a query and reports whether there was one.
func (r *reader) row(ctx context.Context, q string, args []any, to ...any) (bool, error) {
	defer r.gate.read()()
	st, err := r.stmt(ctx, q)
	if err == nil {
		err = st.QueryRowContext(ctx, args...).Scan(to...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, r.err(ctx, err)
}

// err classifies; a context that has ended is the reason whatever the driver says.
func (r *reader) err(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	if err.Error() == "sql: database is closed" { // database/sql has no value for it
		return kernel.Errorf(opRead, kernel.Closed, "%s is closed", r.path)
	}
	return classify(opRead, r.path, err)
}

func pageSize(limit int) int {
	if limit <= 0 || limit > store.MaxPage {
		return store.MaxPage
	}
	return limit
}

// Head implements store.Reader.
func (s *Store) Head(ctx context.Context, stream string) (event.Head, error) {
	h := event.Head{Stream: stream}
	var hash []byte
	_, err := s.read.row(ctx, selectHeadOf, []any{stream}, &h.Seq, &hash)
	copy(h.Hash[:], hash)
	return h, err
}

// Events implements store.Reader.
func (s *Store) Events(ctx context.Context, stream string, q store.Query) ([]event.Event, bool, error) {
	if events, last, ok := s.tails.since(stream, q); ok {
		if q.Mine {
			return events, false, nil
		}
		head, err := s.Head(ctx, stream)
		if err != nil || head.Hash == last {
			return events, false, err
		}
	}
	defer s.read.gate.read()()
	limit, maxBytes := pageSize(q.Limit), store.MaxPageBytes
	sqlText, args := selectPage, []any{q.Bodies, stream, q.From, limit + 1}
	kinds, err := kindList(q.Kinds)
	if err != nil {
		return nil, false, err
	}
	switch {
	case q.Last > 0 && kinds != "":
		sqlText, args = selectLastKinds, []any{q.Bodies, stream, q.Last, kinds}
	case q.Last > 0:
		sqlText, args = selectLast, []any{q.Bodies, stream, q.Last}
	case kinds != "":
		sqlText, args = selectPageKinds, append(args, kinds)
	}
	if q.Last > 0 {
		limit, maxBytes = q.Last, 0
	}
	rows, err := s.read.query(ctx, sqlText, args...)
	if err != nil {
		return nil, false, s.read.err(ctx, err)
	}
	p := page{path: s.path, stream: stream, bodies: q.Bodies, maxBytes: maxBytes, query: s.read.query}
	if err := p.scan(rows, limit); err != nil {
		return nil, false, s.read.err(ctx, err)
	}
	if q.Last > 0 {
		p.reverse()
	}
	events, err := p.finish(ctx)
	if err != nil {
		return nil, false, s.read.err(ctx, err)
	}
	return events, p.more, nil
}

// kindList is the JSON array that the queries take their kinds from.
func kindList(kinds []string) (string, error) {
	if len(kinds) == 0 {
		return "", nil
	}
	list := make([]any, len(kinds))
	for i, k := range kinds {
		list[i] = k
	}
	b, err := logjson.Marshal(list)
	return string(b), err
}

// Streams implements store.Reader. A stream's id is larger than those of all that
// began before it: none is ever removed.
func (s *Store) Streams(ctx context.Context, after string, limit int) ([]event.Head, error) {
	var id int64
	if after != "" {
		ok, err := s.read.row(ctx, "SELECT id FROM stream WHERE stream = ?", []any{after}, &id)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, kernel.Errorf(opRead, kernel.NotFound, "no stream is named %q", after)
		}
	}
	defer s.read.gate.read()()
	rows, err := s.read.query(ctx, selectHeads, id, pageSize(limit))
	if err != nil {
		return nil, s.read.err(ctx, err)
	}
	defer rows.Close()
	var heads []event.Head
	for rows.Next() {
		var h event.Head
		var hash []byte
		if err := rows.Scan(&h.Stream, &h.Seq, &hash); err != nil {
			return nil, s.read.err(ctx, err)
		}
		copy(h.Hash[:], hash)
		heads = append(heads, h)
	}
	return heads, s.read.err(ctx, rows.Err())
}

// Row implements store.Reader.
func (s *Store) Row(ctx context.Context, table store.Table, key string) ([]byte, bool, error) {
	var value []byte
	ok, err := s.read.row(ctx, selectRow, []any{string(table), key}, &value)
	return value, ok, err
}

// Rows implements store.Reader.
func (s *Store) Rows(ctx context.Context, table store.Table, after string, limit int) ([]store.Row, error) {
	defer s.read.gate.read()()
	rows, err := s.read.query(ctx, selectRows, string(table), after, pageSize(limit))
	if err != nil {
		return nil, s.read.err(ctx, err)
	}
	out, err := scanRows(rows)
	return out, s.read.err(ctx, err)
}

func scanRows(rows *sql.Rows) ([]store.Row, error) {
	defer rows.Close()
	var out []store.Row
	for rows.Next() {
		var r store.Row
		if err := rows.Scan(&r.Key, &r.Value); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// Content implements store.Reader.
func (s *Store) Content(ctx context.Context, h event.Hash) ([]byte, error) {
	defer s.read.gate.read()()
	p := page{path: s.path, query: s.read.query}
	body, ok, err := p.byHash(ctx, h)
	if err != nil {
		return nil, s.read.err(ctx, err)
	}
	if !ok {
		return nil, kernel.Errorf(opRead, kernel.NotFound, "no content has the hash %s", h)
	}
	return body, nil
}

// query makes tx a querier, as reader is one.
func (t *tx) query(ctx context.Context, q string, args ...any) (*sql.Rows, error) {
	st, err := t.stmt(q)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}
