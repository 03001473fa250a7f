package sqlite

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"ashlar/kernel"
)

// owner is this opening's name, proved by a lock that the operating system drops
// when the process ends, however it ends.
type owner struct {
	name string
	dir  string   // of the lock files; "" in memory
	file *os.File // nil in memory
}

const lockSuffix = ".lock"

// newOwner takes a name that was never used before.
func newOwner(dir string, random io.Reader) (owner, error) {
	const op = "store.open"
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return owner{}, kernel.Errorf(op, kernel.Storage, "no randomness for the owner's name: %w", err)
	}
	o := owner{name: hex.EncodeToString(b[:]), dir: dir}
	if dir == "" {
		return o, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return owner{}, kernel.Errorf(op, kernel.Storage, "%w", err)
	}
	// Locked before it has its name: whoever sees the name sees it locked.
	unborn := filepath.Join(dir, o.name+".new")
	f, err := os.OpenFile(unborn, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err == nil {
		if err = lockFile(f, exclusive, true); err == nil {
			err = os.Rename(unborn, o.path(o.name))
		}
		if err != nil {
			f.Close()
			os.Remove(unborn)
		}
	}
	if err != nil {
		return owner{}, kernel.Errorf(op, kernel.Storage, "the owner's lock: %w", err)
	}
	o.file = f
	return o, nil
}

func (o owner) path(name string) string { return filepath.Join(o.dir, name+lockSuffix) }

// release ends the owner's life.
func (o owner) release() {
	if o.file != nil {
		os.Remove(o.path(o.name))
		o.file.Close()
	}
}

// alive reports whether a name's lock is held. A name whose lock is free is dead
// for ever, so its file is removed, under the lock: names are not used twice.
// What cannot be told counts as alive: taking over from the living is worse than
// waiting for the dead.
func (o owner) alive(name string) bool {
	if name == o.name {
		return true
	}
	if !isOwnerName(name) || o.dir == "" {
		return false
	}
	f, err := os.OpenFile(o.path(name), os.O_RDWR, 0)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	if err := lockFile(f, shared, false); err != nil {
		return true
	}
	if lockFile(f, exclusive, false) == nil {
		os.Remove(o.path(name))
	}
	return false
}

// isOwnerName keeps names that come out of the database from becoming paths.
func isOwnerName(s string) bool {
	_, err := hex.DecodeString(s)
	return err == nil && len(s) == 32
}
