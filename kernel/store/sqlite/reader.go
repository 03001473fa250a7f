package sqlite

import (
	"context"
	"net/url"
	"os"
	"path/filepath"

	"ashlar/kernel"
)

// OpenReader opens the database at path for reading alone: it takes no lock that a
// writer waits for, makes no owner, and changes nothing in the file. Writes give kind
// unsupported. A database of an older version is opened as Open does, since it is
// brought up to date before it can be read; so is one on a file system without shared
// memory. Kinds of failure are those of Open, and not_found where there is no file.
func OpenReader(ctx context.Context, path string, o Options) (*Store, error) {
	const op = "store.open"
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	if _, err := os.Stat(abs); os.IsNotExist(err) {
		return nil, kernel.Errorf(op, kernel.NotFound, "there is no store at %s", abs)
	} else if err != nil {
		return nil, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	if o.Exclusive {
		return Open(ctx, abs, o)
	}
	dsn := fileDSN(abs)
	s := &Store{url: "sqlite:" + abs, path: abs, tails: &tails{of: map[string]*tail{}}}
	s.owner.dir = abs + ".owners"
	s.dsn, s.asks.dsn = dsn, queryDSN(dsn)
	s.read = newReader(openDB(readOnly(dsn), readers), &s.gate, abs)
	c, err := s.read.db.Conn(ctx)
	if err != nil {
		s.release() //nolint:errcheck // the first error says why
		return readerRefused(ctx, abs, o, classify(op, abs, err))
	}
	steps, err := outdated(ctx, c, abs)
	c.Close() //nolint:errcheck // back to its pool
	if err == nil && len(steps) == 0 {
		return s, nil
	}
	s.release() //nolint:errcheck // likewise
	if err != nil {
		return readerRefused(ctx, abs, o, err)
	}
	return Open(ctx, abs, o)
}

// readerRefused is the second way to open for reading, where there is one.
func readerRefused(ctx context.Context, abs string, o Options, err error) (*Store, error) {
	if unshared(err) {
		return fallBack(ctx, abs, o, err)
	}
	return nil, whoIsAlone(abs, err)
}

func fileDSN(abs string) string {
	file := url.URL{Scheme: "file", Path: abs}
	return file.String() + "?"
}

// readOnlyError is what every write of a reader gives.
func (s *Store) readOnlyError() error {
	return kernel.Errorf(opWrite, kernel.Unsupported, "%s was opened for reading", s.path)
}
