package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
)

var _ store.Auditor = (*Store)(nil)

// auditBatch is the number of rows that an audit reads at a time, and auditBytes what it
// keeps of content that it has read.
const (
	auditBatch = 1000
	auditBytes = 64 << 20
)

// audit is one reading of the whole database, in one read transaction.
type audit struct {
	store.Audit
	ctx    context.Context
	c      *sql.Conn
	path   string
	got    store.Audited
	chains map[int64]*chainEnd
	list   map[int64]link // messages by id
	parts  cache          // content by id, filled
	bodies cache          // messages by id, whole
	sums   sums
}

// chainEnd is where the chain of a stream has come to.
type chainEnd struct {
	name string
	seq  int64
	hash event.Hash
}

// link is a message in its list.
type link struct {
	prev int64
	node event.Hash
}

// Audit implements store.Auditor.
func (s *Store) Audit(ctx context.Context, a store.Audit) (store.Audited, error) {
	defer s.read.gate.read()()
	c, err := s.read.db.Conn(ctx)
	if err != nil {
		return store.Audited{}, s.read.err(ctx, err)
	}
	defer c.Close()
	if _, err := c.ExecContext(ctx, "BEGIN"); err != nil {
		return store.Audited{}, s.read.err(ctx, err)
	}
	defer c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") //nolint:errcheck // nothing was written
	v := &audit{Audit: a, ctx: ctx, c: c, path: s.path, chains: map[int64]*chainEnd{}, list: map[int64]link{}}
	v.got.Whole = true
	for _, step := range []func() error{v.file, v.contents, v.messages, v.streams, v.events, v.missing, v.rows} {
		err := step()
		if ctx.Err() != nil {
			return v.got, s.read.err(ctx, err)
		}
		if err == nil {
			continue
		}
		switch kind := kernel.KindOf(classify(opRead, s.path, err)); kind {
		case kernel.Corruption, kernel.Storage:
			v.got.Whole = false
			v.fault("", 0, "%s", kernel.Message(classify(opRead, s.path, err)))
		default:
			return v.got, err
		}
	}
	return v.got, nil
}

func (v *audit) fault(stream string, seq int64, format string, args ...any) {
	v.Fault(store.Fault{Stream: stream, Seq: seq, What: fmt.Sprintf(format, args...)})
}

// scan calls row with each row of a query of two arguments, an id to go on from and a
// number of rows; row gives the id.
func (v *audit) scan(query string, row func(*sql.Rows) (id int64, err error), batch func() error) error {
	for from := int64(-1 << 62); ; {
		rows, err := v.c.QueryContext(v.ctx, query, from, auditBatch)
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			if from, err = row(rows); err != nil {
				break
			}
			n++
		}
		if err == nil {
			err = rows.Err()
		}
		rows.Close() //nolint:errcheck // its error was asked for
		if err == nil && batch != nil {
			err = batch()
		}
		if err != nil {
			return err
		}
		if n < auditBatch {
			return nil
		}
	}
}

// file lets SQLite look at its own pages, tables and indexes.
func (v *audit) file() error {
	rows, err := v.c.QueryContext(v.ctx, "PRAGMA integrity_check(20)")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if text != "ok" {
			v.fault("", 0, "the file: %s", text)
		}
	}
	return rows.Err()
}

// contents holds every body of content against its hash.
func (v *audit) contents() error {
	type row struct {
		id         int64
		hash, body []byte
		kind       string
	}
	var batch []row
	return v.scan("SELECT id, hash, typeof(body), body FROM content WHERE id > ?1 ORDER BY id LIMIT ?2",
		func(rows *sql.Rows) (int64, error) {
			var r row
			err := rows.Scan(&r.id, &r.hash, &r.kind, &r.body)
			batch = append(batch, r)
			return r.id, err
		},
		func() error {
			for _, r := range batch {
				v.got.Contents++
				body := r.body
				if r.kind == "text" {
					filled, err := v.fill(body)
					if err != nil {
						if err = v.only(err); err != nil {
							return err
						}
						v.fault("", 0, "the content %d names a string that is not there", r.id)
						continue
					}
					body = filled
				}
				if h := event.HashOf(body); string(h[:]) != string(r.hash) {
					v.fault("", 0, "the content %d does not match its hash", r.id)
				}
			}
			batch = batch[:0]
			return nil
		})
}

// messages holds every message of the persistent list against its node.
func (v *audit) messages() error {
	type row struct {
		id, prev   int64
		node, body []byte
	}
	var batch []row
	return v.scan("SELECT id, prev, node, body FROM message WHERE id > ?1 ORDER BY id LIMIT ?2",
		func(rows *sql.Rows) (int64, error) {
			var r row
			err := rows.Scan(&r.id, &r.prev, &r.node, &r.body)
			batch = append(batch, r)
			return r.id, err
		},
		func() error {
			for _, r := range batch {
				v.got.Messages++
				before, ok := v.list[r.prev]
				if r.prev >= r.id || r.prev != 0 && !ok {
					v.fault("", 0, "the message %d follows the message %d, which is not there", r.id, r.prev)
				}
				body, err := v.whole(r.body)
				if err != nil {
					if err = v.only(err); err != nil {
						return err
					}
					v.fault("", 0, "the message %d names content that is not there", r.id)
					continue
				}
				l := link{prev: r.prev}
				copy(l.node[:], r.node)
				if node := encode.Node(before.node, event.HashOf(body)); string(node[:]) != string(r.node) {
					v.fault("", 0, "the message %d does not match its node", r.id)
				}
				if r.prev < r.id {
					v.list[r.id] = l
				}
			}
			batch = batch[:0]
			return nil
		})
}

// streams reads the names of the streams.
func (v *audit) streams() error {
	return v.scan("SELECT id, stream FROM stream WHERE id > ?1 ORDER BY id LIMIT ?2", func(rows *sql.Rows) (int64, error) {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		v.got.Streams++
		v.chains[id] = &chainEnd{name: name, hash: event.Origin(name)}
		return id, err
	}, nil)
}

// missing finds the streams that have a name and no events: a name is made with the
// first one.
func (v *audit) missing() error {
	for _, c := range v.chains {
		if c.seq == 0 {
			v.fault(c.name, 1, "the stream has no events: they were removed")
		}
	}
	return nil
}

// rows reads the projections.
func (v *audit) rows() error {
	table, key := "", ""
	for {
		rows, err := v.c.QueryContext(v.ctx, "SELECT tab, key, value FROM projection WHERE (tab, key) > (?, ?) ORDER BY tab, key LIMIT ?", table, key, auditBatch)
		if err != nil {
			return err
		}
		n := 0
		for rows.Next() {
			var value []byte
			if err = rows.Scan(&table, &key, &value); err == nil {
				err = v.Row(store.Table(table), store.Row{Key: key, Value: value})
			}
			if err != nil {
				break
			}
			n++
		}
		if err == nil {
			err = rows.Err()
		}
		rows.Close() //nolint:errcheck // its error was asked for
		v.got.Rows += int64(n)
		if err != nil || n < auditBatch {
			return err
		}
	}
}

// only passes an error on that is no damage of what was looked up.
func (v *audit) only(err error) error {
	if kernel.KindOf(err) == kernel.Corruption {
		return nil
	}
	return err
}
