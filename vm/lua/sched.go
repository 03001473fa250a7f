package lua

import (
	"slices"
	"sync"

	"ashlar/vm"
)

// sched is the engine's lock. It is given to those who wait in the order in which
// they asked, and it is handed over: a release with waiters never lets a later one
// slip in between, so the journal's order of hand-overs is the order of execution.
// On a replay the order is that of the record: the lock waits for the task whose turn
// it is.
type sched struct {
	journal vm.Journal // may be nil

	mu    sync.Mutex
	order vm.Replay  // nil on a live run, and where a replay has come to its end
	live  func() int // tasks
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
	if !s.held && s.order == nil {
		s.grant(t)
		return t
	}
	t.ready = make(chan struct{})
	s.queue = append(s.queue, t)
	if !s.held {
		s.next()
	}
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
	s.held = false
	s.next()
}

// next gives the lock, which is free, to the ticket whose turn it is; mu is held.
func (s *sched) next() {
	i := s.turn()
	if i < 0 {
		return
	}
	t := s.queue[i]
	if i == 0 {
		s.queue[0] = nil // let the ticket go
		s.queue = s.queue[1:]
	} else {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.grant(t)
	close(t.ready)
}

// turn gives the place of the ticket that comes next, -1 when there is none; mu is held.
func (s *sched) turn() int {
	task, known := 0, false
	if s.order != nil {
		task, known = s.order.Turn(s.turns + 1)
	}
	for i, t := range s.queue {
		if !known || t.task == task {
			return i
		}
	}
	if s.order != nil {
		waiting := make([]int, len(s.queue))
		for i, t := range s.queue {
			waiting[i] = t.task
		}
		s.order.Idle(s.turns+1, waiting, s.live())
	}
	return -1
}

// free ends the order of a replay: from here on who waits longest comes next.
func (s *sched) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.order == nil {
		return
	}
	s.order = nil
	if !s.held {
		s.next()
	}
}

// grant gives the lock to a ticket; mu is held.
func (s *sched) grant(t *ticket) {
	s.held = true
	s.turns++
	if s.journal != nil {
		s.journal.Handover(s.turns, t.task)
	}
}
