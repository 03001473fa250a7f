package sqlite

import (
	"os"
	"sync"
)

// gate is what a commit holds. On disk it is the lock file that all processes
// share, and readers are free: WAL gives them their snapshot. In memory SQLite
// has no WAL, so readers and the commit take turns.
type gate struct {
	file *os.File // nil in memory
	turn sync.RWMutex
}

func (g *gate) lock() error {
	if g.file != nil {
		return lockFile(g.file, exclusive, true)
	}
	g.turn.Lock()
	return nil
}

// tryLock is lock where nobody else holds it; an error of the file is left to lock.
func (g *gate) tryLock() bool {
	if g.file != nil {
		return lockFile(g.file, exclusive, false) == nil
	}
	return g.turn.TryLock()
}

func (g *gate) unlock() {
	if g.file != nil {
		// Cannot fail for an open file; closing it would release the lock as well.
		unlockFile(g.file) //nolint:errcheck
		return
	}
	g.turn.Unlock()
}

// read enters a reader and returns its way out.
func (g *gate) read() (leave func()) {
	if g.file != nil {
		return func() {}
	}
	g.turn.RLock()
	return g.turn.RUnlock
}
