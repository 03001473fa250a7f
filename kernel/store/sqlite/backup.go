package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ashlar/kernel"
)

// Backup writes a copy of the database, as it is at one moment, to a new file of mode
// 0600; writers go on meanwhile. It is whole and on the disk when Backup returns nil;
// otherwise there is no file. Kinds: validation for a file that exists, or a folder
// that does not, unsupported for a store in memory.
func (s *Store) Backup(ctx context.Context, path string) (err error) {
	const op = "store.backup"
	if strings.HasPrefix(s.url, "mem:") {
		return kernel.Errorf(op, kernel.Unsupported, "%s lives with its process, and has no file to copy", s.url)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	f, err := os.OpenFile(abs, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return kernel.Errorf(op, kernel.Validation, "%s exists; a backup is a new file", abs)
	case errors.Is(err, fs.ErrNotExist):
		return kernel.Errorf(op, kernel.Validation, "the folder of %s does not exist", abs)
	case err != nil:
		return kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(abs)
		}
	}()
	// SQLite takes an empty file for none. A read-only connection makes the copy: with
	// query_only it could not write that either.
	db := openDB(s.dsn+"mode=ro", 1)
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", abs); err != nil {
		return s.read.err(ctx, err)
	}
	if err := f.Sync(); err != nil {
		return kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	return syncFolder(filepath.Dir(abs))
}

// syncFolder makes a new name last.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return kernel.Errorf("store.backup", kernel.Storage, "%w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return kernel.Errorf("store.backup", kernel.Storage, "%w", err)
	}
	return nil
}
