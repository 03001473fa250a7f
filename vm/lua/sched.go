package lua

import (
	"sync"

	"ashlar/vm"
)

// sched is the engine's lock. It is given to those who wait in the order in which
// they asked, and it is handed over: a release with waiters never lets a later one
// slip in between, so the journal's order of hand-overs is the order of execution.
type sched struct {
	journal vm.Journal // may be nil

	mu    sync.Mutex
	held  bool
	queue []*ticket // those who wait, oldest first
	turns int64     // hand-overs so far
}

// ticket is one place in the queue.
type ticket struct {
	task  int
	ready chan struct{} // nil when the lock was free
}

// enqueue takes a place for a task. Separate from wait so that a spawned task has
// its place from the moment of the spawn, whatever the Go scheduler does.
func (s *sched) enqueue(task int) *ticket {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &ticket{task: task}
	if !s.held {
		s.grant(t)
		return t
	}
	t.ready = make(chan struct{})
	s.queue = append(s.queue, t)
	return t
}

// wait returns when the ticket's holder has the lock. It cannot be given up: Lua
// that was cancelled must still unwind under the lock.
func (t *ticket) wait() {
	if t.ready != nil {
		<-t.ready
	}
}

func (s *sched) acquire(task int) { s.enqueue(task).wait() }

func (s *sched) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		s.held = false
		return
	}
	next := s.queue[0]
	s.queue[0] = nil // let the ticket go
	s.queue = s.queue[1:]
	s.grant(next)
	close(next.ready)
}

// grant gives the lock to a ticket; mu is held.
func (s *sched) grant(t *ticket) {
	s.held = true
	s.turns++
	if s.journal != nil {
		s.journal.Handover(s.turns, t.task)
	}
}
