package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"ashlar/kernel"
	"ashlar/kernel/store"
)

// MaxGather is the largest number of Writes in one commit.
const MaxGather = 256

// job is one queued call. Its state settles who has it: the writer, which then
// carries it through, or the caller that stopped waiting.
type job struct {
	fn    func(store.Tx) error // nil for Flush
	later bool
	taken atomic.Bool
	done  chan struct{} // closed when err is set; nil for later jobs
	err   error
}

// writer makes the commits. A caller that finds nobody committing makes its own and
// needs no other goroutine; what comes meanwhile is committed together by the
// writer's goroutine, which also serves the Later calls.
type writer struct {
	gate *gate
	path string

	lead sync.Mutex // held by who makes a commit; tx is its
	tx   *tx

	mu      sync.Mutex
	queue   []*job
	laters  int  // how many of the queue are Later calls
	due     bool // something in the queue wants a commit
	closed  bool
	lateErr error // the first failure of a Later that no Flush has returned
	failed  error // the first failure of a Later at all

	commits atomic.Int64

	wake    chan struct{}
	stopped chan struct{}
}

func startWriter(t *tx, g *gate, path string) *writer {
	w := &writer{
		gate: g, path: path, tx: t,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
	}
	go w.run()
	return w
}

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, fn func(store.Tx) error) error {
	if s.writer == nil {
		return s.readOnlyError()
	}
	return s.writer.await(ctx, fn)
}

// Flush implements store.Store.
func (s *Store) Flush(ctx context.Context) error {
	if s.writer == nil {
		return nil
	}
	err := s.writer.await(ctx, nil)
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	late := s.writer.lateErr
	s.writer.lateErr = nil
	return errors.Join(err, late)
}

// Commits counts the commits of this Store, for those who measure.
func (s *Store) Commits() int64 { return s.writer.commits.Load() }

// Later implements store.Store. After Close it does nothing.
func (s *Store) Later(fn func(store.Tx) error) {
	if s.writer != nil {
		s.writer.enqueue(&job{fn: fn, later: true})
	}
}

func (w *writer) await(ctx context.Context, fn func(store.Tx) error) error {
	j := &job{fn: fn, done: make(chan struct{})}
	if ctx.Err() != nil {
		return kernel.Errorf("store.write", kernel.Cancelled, "%w", context.Cause(ctx))
	}
	if !w.enqueue(j) {
		return kernel.Errorf("store.write", kernel.Closed, "%s is closed", w.path)
	}
	w.commitNow()
	select {
	case <-j.done:
	case <-ctx.Done():
		if j.taken.CompareAndSwap(false, true) {
			return kernel.Errorf("store.write", kernel.Cancelled, "%w", context.Cause(ctx))
		}
		<-j.done // it has begun, so it is carried through
	}
	return j.err
}

// enqueue reports false when the writer has been stopped.
func (w *writer) enqueue(j *job) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.queue = append(w.queue, j)
	if j.later {
		w.laters++
	}
	switch {
	case !j.later:
		w.due = true // its caller commits, or rings
	case w.laters >= store.LaterLimit:
		w.ring()
	}
	return true
}

// commitNow makes one commit on the caller's goroutine where nobody is at it and no
// other process writes; else, and for what came meanwhile, it rings.
func (w *writer) commitNow() {
	if w.lead.TryLock() {
		if w.pending() && w.gate.tryLock() {
			w.commit()
		}
		w.lead.Unlock()
	}
	// After Unlock: what was queued before it, whose caller found the lead taken, is
	// seen here; what is queued later finds it free.
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due && len(w.queue) > 0 {
		w.ring()
	}
}

// ring asks for a commit. The caller holds mu.
func (w *writer) ring() {
	w.due = true
	select {
	case w.wake <- struct{}{}:
	default: // the writer has not yet answered the last one
	}
}

// stop commits what is queued and waits for the goroutine. first is false when
// somebody else stops it or has stopped it.
func (w *writer) stop() (first bool, err error) {
	w.mu.Lock()
	first = !w.closed
	w.closed = true
	w.ring()
	w.mu.Unlock()
	<-w.stopped
	w.lead.Lock() // a caller may still be at the last commit
	defer w.lead.Unlock()
	return first, w.failed
}

func (w *writer) run() {
	defer close(w.stopped)
	for range w.wake {
		for w.pending() {
			w.round()
		}
		w.mu.Lock()
		over := w.closed && len(w.queue) == 0
		w.mu.Unlock()
		if over {
			return
		}
	}
}

// pending reports whether a commit is wanted, and answers the bell when nothing
// is left to commit.
func (w *writer) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.due = w.due && len(w.queue) > 0
	return w.due
}

// round makes one commit. The batch is gathered under the lock, so that what
// arrives while other processes write rides along.
func (w *writer) round() {
	w.lead.Lock()
	defer w.lead.Unlock()
	if !w.pending() {
		return // a caller has committed it
	}
	if err := w.gate.lock(); err != nil {
		err = kernel.Errorf("store.write", kernel.Storage, "%s.wlock: %w", w.path, err)
		w.finish(w.gather(), err)
		return
	}
	w.commit()
}

// commit makes one commit of what is queued. The caller holds lead and the gate,
// which it lets go of.
func (w *writer) commit() {
	batch := w.gather()
	err := w.tx.commit(batch)
	w.commits.Add(1)
	w.gate.unlock()
	w.finish(batch, err)
}

// gather takes up to MaxGather Writes off the queue, with every Later before or
// between them.
func (w *writer) gather() []*job {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, writes := 0, 0
	for ; n < len(w.queue) && writes < MaxGather; n++ {
		if w.queue[n].later {
			w.laters--
		} else {
			writes++
		}
	}
	batch := w.queue[:n:n]
	w.queue = append([]*job(nil), w.queue[n:]...)
	if len(w.queue) == w.laters && w.laters < store.LaterLimit && !w.closed {
		w.due = false
	}
	taken := batch[:0]
	for _, j := range batch {
		if j.taken.CompareAndSwap(false, true) { // else its caller has gone
			taken = append(taken, j)
		}
	}
	return taken
}

// finish tells every caller; err is the failure of the commit as a whole.
func (w *writer) finish(batch []*job, err error) {
	for _, j := range batch {
		if err != nil && j.err == nil {
			j.err = err
		}
		if !j.later {
			close(j.done)
			continue
		}
		if j.err != nil {
			w.mu.Lock()
			if w.lateErr == nil {
				w.lateErr = j.err
			}
			if w.failed == nil {
				w.failed = j.err
			}
			w.mu.Unlock()
		}
	}
}
