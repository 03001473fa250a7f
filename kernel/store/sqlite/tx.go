package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
)

// tx is the writing connection with its statements and caches; it is reused for
// every transaction and used by who holds the writer's lead. A job sees it as a
// store.Tx through a view that dies with the job.
type tx struct {
	conn   *sql.Conn
	now    func() time.Time
	path   string
	redact encode.Redactor
	stmts  map[string]*sql.Stmt
	known  known
	tails  *tails
	after  func(n int64) // Options.Statement
	count  int64         // of statements that change something

	nowMS int64
	fault error         // the first storage failure of the running job
	fresh []event.Event // what the running commit has appended
}

// known is what the writer remembers of the database. It is right while nobody
// else has committed, which each transaction asks SQLite first.
type known struct {
	version  int64 // PRAGMA data_version
	ends     map[string]end
	nodes    map[event.Hash]int64 // message lists by node
	contents map[event.Hash]int64 // content by hash
	rows     map[rowKey]row       // of projections
}

// rowKey names a row of a projection.
type rowKey struct {
	table store.Table
	key   string
}

// row is the value of a row; one that does not exist is known too.
type row struct {
	value string
	ok    bool
}

// maxRowBytes is the largest row that is remembered.
const maxRowBytes = 4096

func (k *known) keepRow(key rowKey, r row) {
	if len(r.value) > maxRowBytes {
		delete(k.rows, key)
		return
	}
	if len(k.rows) >= maxKnown {
		clear(k.rows)
	}
	k.rows[key] = r
}

// end is the end of a stream and the stream's id.
type end struct {
	event.Head
	id int64
}

// maxKnown bounds each cache; a full one is emptied.
const maxKnown = 8192

func (k *known) forget() {
	k.ends, k.nodes, k.contents, k.rows = map[string]end{}, map[event.Hash]int64{}, map[event.Hash]int64{}, map[rowKey]row{}
}

func newTx(conn *sql.Conn, now func() time.Time, path string, redact encode.Redactor, tails *tails, after func(int64)) *tx {
	t := &tx{conn: conn, now: now, path: path, redact: redact, tails: tails, after: after, stmts: map[string]*sql.Stmt{}}
	t.known.forget()
	return t
}

// background is used for everything on the writing connection: a commit is
// carried through or rolled back, never cancelled.
var background = context.Background()

const opWrite = "store.write"

func (t *tx) exec(q string, args ...any) (sql.Result, error) {
	st, err := t.stmt(q)
	if err != nil {
		return nil, t.failed(err)
	}
	res, err := st.ExecContext(background, args...)
	if err != nil {
		return nil, t.failed(err)
	}
	if t.count++; t.after != nil {
		t.after(t.count)
	}
	return res, nil
}

// row scans the one row of a query and reports whether there was one.
func (t *tx) row(q string, args []any, to ...any) (bool, error) {
	st, err := t.stmt(q)
	if err != nil {
		return false, t.failed(err)
	}
	err = st.QueryRowContext(background, args...).Scan(to...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, t.failed(err)
	}
	return true, nil
}

func (t *tx) stmt(q string) (*sql.Stmt, error) {
	if st, ok := t.stmts[q]; ok {
		return st, nil
	}
	st, err := t.conn.PrepareContext(background, q)
	if err != nil {
		return nil, err
	}
	t.stmts[q] = st
	return st, nil
}

func (t *tx) close() {
	for _, st := range t.stmts {
		st.Close() //nolint:errcheck // the connection is closed next
	}
}

// failed remembers a failure of the database: a job that ignores one must not be
// committed, since a part of it is missing.
func (t *tx) failed(err error) error {
	err = classify(opWrite, t.path, err)
	if t.fault == nil {
		t.fault = err
	}
	return err
}

// commit runs a batch in one transaction. Each job's own failure is left in its
// err and undone by itself; the error returned is of the whole, of which then
// nothing was written. Jobs hardly ever fail, and savepoints are a third of the
// statements of a small commit: at first there are none, and where one of several
// jobs fails all is undone and every job runs again, under a savepoint of its own.
func (t *tx) commit(batch []*job) error {
	again, err := t.try(batch, false)
	if again {
		_, err = t.try(batch, true)
	}
	return err
}

// try is one attempt of commit; again reports that it was undone for a job that has to
// stand apart.
func (t *tx) try(batch []*job, apart bool) (again bool, err error) {
	t.fault, t.fresh = nil, t.fresh[:0]
	if _, err := t.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	defer func() {
		if err != nil || again {
			t.exec("ROLLBACK") //nolint:errcheck // SQLite may have rolled back already
			t.known.forget()
		}
	}()
	var version int64
	if _, err := t.row("PRAGMA data_version", nil, &version); err != nil {
		return false, err
	}
	if version != t.known.version {
		t.known.forget()
		t.known.version = version
	}
	for _, j := range batch {
		if j.fn == nil {
			continue
		}
		if err := t.job(j, apart); err != nil {
			return !apart && len(batch) > 1, err
		}
	}
	t.fault = nil
	if _, err = t.exec("COMMIT"); err == nil {
		t.tails.add(t.fresh)
	}
	return false, err
}

// job runs one job, under a savepoint where it stands apart from those that share its
// transaction. The error returned is one after which the transaction cannot go on.
func (t *tx) job(j *job, apart bool) error {
	t.fault = nil
	t.nowMS = t.now().UnixMilli()
	before := len(t.fresh)
	if apart {
		if _, err := t.exec("SAVEPOINT job"); err != nil {
			return err
		}
	}
	j.err = t.call(j.fn)
	switch {
	case j.err == nil && apart:
		_, err := t.exec("RELEASE job")
		return err
	case j.err == nil:
		return nil
	case !apart:
		return j.err // all of the transaction is undone
	}
	t.known.forget()
	t.fresh = t.fresh[:before]
	if _, err := t.exec("ROLLBACK TO job"); err != nil {
		return err // SQLite gave the whole transaction up (disk full, I/O error)
	}
	_, err := t.exec("RELEASE job")
	return err
}

// call runs fn; a panic in it is its failure alone.
func (t *tx) call(fn func(store.Tx) error) (err error) {
	v := &view{tx: t}
	defer func() {
		v.tx = nil
		if p := recover(); p != nil {
			err = kernel.Errorf(opWrite, kernel.Internal, "panic in a write: %v", p)
		}
	}()
	if err := fn(v); err != nil {
		return err
	}
	return t.fault
}

// head gives the end of a stream; id is 0 for one that has no events.
func (t *tx) head(stream string) (end, error) {
	if e, ok := t.known.ends[stream]; ok {
		return e, nil
	}
	e := end{Head: event.Head{Stream: stream}}
	var hash []byte
	ok, err := t.row("SELECT id FROM stream WHERE stream = ?", []any{stream}, &e.id)
	if err != nil || !ok {
		return e, err
	}
	if _, err := t.row(selectHead, []any{e.id}, &e.Seq, &hash); err != nil {
		return e, err
	}
	copy(e.Hash[:], hash)
	t.remember(e)
	return e, nil
}

// endOf gives the end of a stream that is about to get an event.
func (t *tx) endOf(stream string) (end, error) {
	e, err := t.head(stream)
	if err != nil || e.id != 0 {
		return e, err
	}
	res, err := t.exec("INSERT INTO stream (stream) VALUES (?)", stream)
	if err != nil {
		return e, err
	}
	if e.id, err = res.LastInsertId(); err != nil {
		return e, t.failed(err)
	}
	return e, nil
}

func (t *tx) remember(e end) {
	if len(t.known.ends) >= maxKnown {
		clear(t.known.ends)
	}
	t.known.ends[e.Stream] = e
}
