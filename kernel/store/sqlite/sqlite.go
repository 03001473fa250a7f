package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	driver "modernc.org/sqlite" // registers itself with database/sql

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
)

// Options are what the host injects. The zero value is the machine's clock and
// randomness, and no redaction.
type Options struct {
	Now    func() time.Time
	Rand   io.Reader       // for the owner's name
	Redact encode.Redactor // applied to every piece of log JSON before it is hashed or stored

	// Exclusive opens the file for this process alone at once, as Open otherwise does
	// where shared memory cannot be had (exclusive.go). It is for tests.
	Exclusive bool

	// Statement is called after each statement that changes something, BEGIN and COMMIT
	// among them, with its number, which counts from 1. It is for tests, which end the
	// process there.
	Statement func(n int64)
}

// readers is the size of the read-only pool.
const readers = 2

// pageBytes is the page size of a new database: three tool results of 2 KB share
// a page, where pages of 4 KB would be half empty.
const pageBytes = 8192

// BusyTimeout is how long SQLite waits for programs that do not take our lock.
const BusyTimeout = 5 * time.Second

// Store is one opening of one database.
type Store struct {
	url    string
	dsn    string // ends in ? or &
	path   string // what errors name
	redact encode.Redactor
	owner  owner
	gate   gate
	writer *writer
	write  *sql.DB
	conn   *sql.Conn // the writer's, of write
	read   *reader
	tails  *tails
	asks   querying
	alone  bool      // no other process can open the file meanwhile
	closed sync.Once // of a reader
}

var _ store.Store = (*Store)(nil)

// Open opens or creates the database at path; a missing folder is created.
// Files are 0600 and folders 0700. Where the file system has no shared memory, the
// file is this process's alone (Exclusive). Kinds of failure: corruption for a file that
// is no database (never deleted), unsupported for one of a newer program or of
// another program, busy for one that another process has to itself, storage otherwise.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	const op = "store.open"
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	if err := os.MkdirAll(filepath.Dir(abs), 0o700); err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	if err := createFile(abs); err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	if o.Exclusive {
		return openFile(ctx, abs, o, true)
	}
	s, err := openFile(ctx, abs, o, false)
	if unshared(err) {
		return fallBack(ctx, abs, o, err)
	}
	return s, err
}

// createFile makes the database's file where there is none: SQLite gives its side files
// the mode of the database, so this one decides. One that is there is not opened, since
// closing it would drop the locks that this process's other connections have on it.
func createFile(abs string) error {
	f, err := os.OpenFile(abs, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		return f.Close()
	}
	st, serr := os.Stat(abs)
	switch {
	case serr != nil:
		return err
	case st.IsDir():
		return &os.PathError{Op: "open", Path: abs, Err: syscall.EISDIR}
	}
	return nil
}

// openFile opens the database at a path that is absolute and there.
func openFile(ctx context.Context, abs string, o Options, alone bool) (*Store, error) {
	s := &Store{url: "sqlite:" + abs, path: abs, alone: alone}
	var err error
	if s.gate.file, err = os.OpenFile(abs+".wlock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, kernel.Errorf("store.open", kernel.Storage, "%w", err)
	}
	dsn := fileDSN(abs)
	if alone {
		dsn += exclusiveVFS
	}
	if s, err = s.open(ctx, o, dsn, abs+".owners"); err != nil {
		return nil, whoIsAlone(abs, err)
	}
	if alone {
		err = sayAlone(abs)
	}
	if err != nil {
		s.Close() //nolint:errcheck // the first error says why
		return nil, err
	}
	return s, nil
}

// OpenMemory opens a new database that lives until it is closed, by the same
// code as one on disk.
func OpenMemory(ctx context.Context, name string, o Options) (*Store, error) {
	return (&Store{url: "mem:" + name, path: "mem:" + name}).open(ctx, o, "", "")
}

// open finishes what Open and OpenMemory began; dsn ends in "?" or is empty.
func (s *Store) open(ctx context.Context, o Options, dsn, ownersDir string) (_ *Store, err error) {
	if o.Now == nil {
		o.Now = ident.System{}.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	s.redact = o.Redact
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.owner, err = newOwner(ownersDir, o.Rand); err != nil {
		return nil, err
	}
	if dsn == "" {
		dsn = "file:/" + s.owner.name + "?vfs=memdb&"
	}
	s.write = openDB(dsn+"_txlock=immediate", 1)
	// The write lock covers the switch to WAL and the making of tables.
	if err := s.gate.lock(); err != nil {
		return nil, kernel.Errorf("store.open", kernel.Storage, "%s.wlock: %w", s.path, err)
	}
	err = s.prepareWriter(ctx)
	s.gate.unlock()
	if err != nil {
		return nil, err
	}
	s.read = newReader(openDB(readOnly(dsn), readers), &s.gate, s.path)
	s.dsn, s.asks.dsn = dsn, queryDSN(dsn)
	s.tails = &tails{of: map[string]*tail{}}
	s.writer = startWriter(newTx(s.conn, o.Now, s.path, s.redact, s.tails, o.Statement), &s.gate, s.path)
	return s, nil
}

// queryDSN is how the connections that answer queries are opened.
func queryDSN(dsn string) string {
	return readOnly(dsn) + fmt.Sprintf("&_pragma=busy_timeout(%d)", BusyTimeout.Milliseconds())
}

// readOnly is how a database is opened that is only read.
func readOnly(dsn string) string { return dsn + "mode=ro&_pragma=query_only(1)" }

func openDB(dsn string, conns int) *sql.DB {
	db, err := sql.Open("sqlite", fmt.Sprintf("%s&_pragma=busy_timeout(%d)", dsn, BusyTimeout.Milliseconds()))
	if err != nil {
		panic(err) // only for a driver that is not linked in, which the import above rules out
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db
}

// prepareWriter opens the writing connection; the caller holds the gate.
func (s *Store) prepareWriter(ctx context.Context) (err error) {
	const op = "store.open"
	if s.conn, err = s.write.Conn(ctx); err != nil {
		return classify(op, s.path, err)
	}
	if _, err := s.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA page_size = %d", pageBytes)); err != nil {
		return classify(op, s.path, err)
	}
	if s.gate.file != nil {
		var mode string
		if err := s.conn.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return classify(op, s.path, err)
		}
		if mode != "wal" {
			return &noWAL{kernel.Errorf(op, kernel.Unsupported,
				"%s: the file system cannot keep a write-ahead log (journal mode %q); put it on a local disk", s.path, mode)}
		}
		for _, p := range []string{"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = OFF", "PRAGMA journal_size_limit = 67108864",
			"PRAGMA wal_autocheckpoint = 500"} {
			if _, err := s.conn.ExecContext(ctx, p); err != nil {
				return classify(op, s.path, err)
			}
		}
		// The write-ahead log stays, empty, when the last process closes: removing it
		// and making it again is two writes of the folder for every short run.
		err := s.conn.Raw(func(c any) error {
			_, err := c.(driver.FileControl).FileControlPersistWAL("main", 1)
			return err
		})
		if err != nil {
			return classify(op, s.path, err)
		}
	}
	return migrate(ctx, s.conn, s.path)
}

// Prepare implements store.Store.
func (s *Store) Prepare(d event.Draft) (event.Draft, error) {
	enc, err := encode.Draft(d, s.redact)
	if err != nil {
		return d, err
	}
	d.Prepared = enc
	return d, nil
}

// Owner implements store.Store.
func (s *Store) Owner() string { return s.owner.name }

// Alive implements store.Store.
func (s *Store) Alive(owner string) bool { return s.owner.alive(owner) }

// URL implements store.Store.
func (s *Store) URL() string { return s.url }

// Close implements store.Store. A second call returns nil.
func (s *Store) Close() error {
	if s.writer == nil {
		var err error
		s.closed.Do(func() { err = s.release() })
		return err
	}
	first, err := s.writer.stop()
	if !first {
		return nil
	}
	return errors.Join(err, s.release())
}

// release lets go of everything that was opened so far.
func (s *Store) release() error {
	errs := []error{s.asks.close()}
	if s.read != nil {
		errs = append(errs, s.read.close())
	}
	if s.writer != nil {
		s.writer.tx.close() // an open statement would keep SQLite from folding the write-ahead log in
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
	}
	if s.write != nil {
		errs = append(errs, s.write.Close())
	}
	if s.alone && s.writer != nil {
		sayShared(s.path)
	}
	s.owner.release()
	if s.gate.file != nil {
		errs = append(errs, s.gate.file.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return kernel.Errorf("store.close", kernel.Storage, "%s: %w", s.path, err)
	}
	return nil
}
