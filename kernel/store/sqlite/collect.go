package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// remove takes a stream's events out. The triggers that refuse this one by one are
// away for as long as the transaction runs, which nobody else sees.
func (t *tx) remove(stream string) (event.Head, error) {
	end, err := t.head(stream)
	if err != nil || end.id == 0 {
		return end.Head, err
	}
	for _, q := range []string{
		"DROP TRIGGER event_no_delete", "DELETE FROM event WHERE stream = ?", "DELETE FROM stream WHERE id = ?", noDelete,
	} {
		args := []any{end.id}
		if !bytes.Contains([]byte(q), []byte("?")) {
			args = nil
		}
		if _, err := t.exec(q, args...); err != nil {
			return end.Head, err
		}
	}
	delete(t.known.ends, stream)
	return end.Head, nil
}

// Collect implements store.Store: it marks what events refer to and frees the rest.
func (s *Store) Collect(ctx context.Context) (freed int64, err error) {
	m := &marker{}
	leave := s.read.gate.read()
	err = m.look(ctx, s.read.query)
	leave()
	if err != nil {
		return 0, s.read.err(ctx, err)
	}
	// What is newer than the look stays, and so does what it refers to.
	until := *m
	err = s.Write(ctx, func(tx store.Tx) error {
		v, ok := tx.(*view)
		if !ok {
			return kernel.Errorf(opWrite, kernel.Internal, "a transaction of another store")
		}
		m := until.again()
		if err := m.look(ctx, v.tx.query); err != nil {
			return v.tx.failed(err)
		}
		freed, err = v.tx.sweep(m)
		return err
	})
	return freed, err
}

// marker knows what is referred to. Ids up to the tops were looked at; what is above
// them is younger than the look.
type marker struct {
	position, content, message int64
	contents, messages         map[int64]bool
	byHash                     map[event.Hash]int64 // content that has a hash alone
	prev                       map[int64]int64      // of messages
	young                      map[int64]int64      // of those that are above the tops
}

// again gives a marker that goes on from here. The maps are its own: a transaction may
// run twice.
func (m *marker) again() *marker {
	next := &marker{position: m.position, content: m.content, message: m.message,
		contents: make(map[int64]bool, len(m.contents)), messages: make(map[int64]bool, len(m.messages)), byHash: m.byHash, prev: m.prev}
	for id := range m.contents {
		next.contents[id] = true
	}
	for id := range m.messages {
		next.messages[id] = true
	}
	return next
}

type querier func(ctx context.Context, q string, args ...any) (*sql.Rows, error)

// look marks what the events after position refer to. The first look also notes what
// there is.
func (m *marker) look(ctx context.Context, query querier) error {
	first := m.contents == nil
	if first {
		m.contents, m.messages = map[int64]bool{}, map[int64]bool{}
		m.byHash, m.prev = map[event.Hash]int64{}, map[int64]int64{}
		if err := each(ctx, query, "SELECT id, hash FROM content", func(rows *sql.Rows) error {
			var id int64
			var hash []byte
			err := rows.Scan(&id, &hash)
			m.content = max(m.content, id)
			m.byHash[event.Hash(hash)] = id
			return err
		}); err != nil {
			return err
		}
		if err := each(ctx, query, "SELECT id, prev FROM message", func(rows *sql.Rows) error {
			var id, prev int64
			err := rows.Scan(&id, &prev)
			m.message = max(m.message, id)
			m.prev[id] = prev
			return err
		}); err != nil {
			return err
		}
	}
	m.young = map[int64]int64{}
	if !first {
		if err := each(ctx, query, "SELECT id, prev FROM message WHERE id > ?", func(rows *sql.Rows) error {
			var id, prev int64
			err := rows.Scan(&id, &prev)
			m.young[id] = prev
			return err
		}, m.message); err != nil {
			return err
		}
	}
	var fresh []int64 // content whose own references are to be followed
	var lists []int64
	err := each(ctx, query, "SELECT position, meta, data FROM event WHERE position > ? ORDER BY position", func(rows *sql.Rows) error {
		var meta, data []byte
		if err := rows.Scan(&m.position, &meta, &data); err != nil {
			return err
		}
		fresh = m.column(meta, fresh)
		if ref, ok := parseReference(string(data)); ok {
			lists = append(lists, ref.last)
			fresh = m.mark(ref.frame, m.column([]byte(ref.envelope), fresh))
			return nil
		}
		fresh = m.column(data, fresh)
		return nil
	}, m.position)
	if err != nil {
		return err
	}
	var bodies []int64
	for _, last := range lists {
		for id := last; id != 0 && !m.messages[id]; {
			m.messages[id] = true
			bodies = append(bodies, id)
			before, old := m.prev[id]
			if !old {
				before = m.young[id]
			}
			id = before
		}
	}
	for _, id := range bodies {
		if err := each(ctx, query, "SELECT body FROM message WHERE id = ?", func(rows *sql.Rows) error {
			var body []byte
			err := rows.Scan(&body)
			fresh = m.column(body, fresh)
			return err
		}, id); err != nil {
			return err
		}
	}
	for len(fresh) > 0 {
		id := fresh[len(fresh)-1]
		fresh = fresh[:len(fresh)-1]
		if err := each(ctx, query, "SELECT body FROM content WHERE id = ?", func(rows *sql.Rows) error {
			var body []byte
			err := rows.Scan(&body)
			fresh = m.column(body, fresh)
			return err
		}, id); err != nil {
			return err
		}
	}
	return nil
}

// each scans the rows of a query.
func each(ctx context.Context, query querier, q string, scan func(*sql.Rows) error, args ...any) error {
	rows, err := query(ctx, q, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// column marks what a column or a body names: a row of content, strings that are kept
// elsewhere, and raw bytes by their hash. It gives fresh with what was not marked before.
func (m *marker) column(b []byte, fresh []int64) []int64 {
	if id, ok := contentID(b); ok {
		return m.mark(id, fresh)
	}
	for rest := b; ; {
		start, end, id, ok := nextString(rest)
		if !ok || start < 0 {
			break
		}
		fresh = m.mark(id, fresh)
		rest = rest[end:]
	}
	const name = "sha256:"
	for rest := b; ; {
		i := bytes.Index(rest, []byte(name))
		if i < 0 {
			return fresh
		}
		rest = rest[i+len(name):]
		var h event.Hash
		if len(rest) < 2*len(h) {
			return fresh
		}
		if _, err := hex.Decode(h[:], rest[:2*len(h)]); err == nil {
			if id, ok := m.byHash[h]; ok {
				fresh = m.mark(id, fresh)
			}
		}
	}
}

func (m *marker) mark(id int64, fresh []int64) []int64 {
	if m.contents[id] {
		return fresh
	}
	m.contents[id] = true
	return append(fresh, id)
}

// sweep frees what was there at the look and is not marked.
func (t *tx) sweep(m *marker) (freed int64, err error) {
	for id := range m.prev {
		if m.messages[id] {
			continue
		}
		if _, err := t.exec("DELETE FROM message WHERE id = ?", id); err != nil {
			return 0, err
		}
		freed++
	}
	for _, id := range m.byHash {
		if m.contents[id] {
			continue
		}
		if _, err := t.exec("DELETE FROM content WHERE id = ?", id); err != nil {
			return 0, err
		}
		freed++
	}
	clear(t.known.contents)
	clear(t.known.nodes)
	return freed, nil
}
