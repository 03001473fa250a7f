package ashlar

import (
	"fmt"
	"strings"

	"ashlar/kernel/store"
)

// Alone reports whether a store can be open in one process at a time only, since its
// file system has no shared memory.
func Alone(s store.Store) bool {
	e, ok := s.(interface{ Exclusive() bool })
	return ok && e.Exclusive()
}

// alone tells the user of a store that no other process can open meanwhile, once. The
// caller holds mu.
func (w *Workspace) alone(s store.Store) {
	if !Alone(s) || w.toldAlone {
		return
	}
	w.toldAlone = true
	w.opts.Notice(fmt.Sprintf("%s: the file system has no shared memory, so no other process can use this log meanwhile; a local disk has it",
		strings.TrimPrefix(s.URL(), "sqlite:")))
}
