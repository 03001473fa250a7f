package ashlar

import (
	"io"
	"sync"
	"time"
)

// Bounds of an NDJSON sink.
const (
	StreamBuffer   = 4096                   // lines
	StreamFlush    = 2 * time.Second        // at the end of a run
	StreamFlushCut = 500 * time.Millisecond // after a cut
)

// NDJSON writes facts as lines, from a goroutine of its own. When its buffer is
// full it drops deltas, then progress, then whatever comes, and says how many in
// one notice; a run's first and last line are never dropped. Close it.
type NDJSON struct {
	w    io.Writer
	done chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []Fact
	spare   [2]int // how many of the queue are of each weight that may be dropped
	dropped int64
	closed  bool
	failed  bool // the sink is broken: nothing more is written
}

// NewNDJSON starts a sink on w.
func NewNDJSON(w io.Writer) *NDJSON {
	s := &NDJSON{w: w, done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.drain()
	return s
}

// Fact implements Sink.
func (s *NDJSON) Fact(f Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.failed {
		return
	}
	if len(s.queue) >= StreamBuffer && f.Type != "run_finished" && !s.room(f.Type) {
		s.dropped++
		return
	}
	s.queue = append(s.queue, f)
	if w := weight(f.Type); w < len(s.spare) {
		s.spare[w]++
	}
	s.wake.Signal()
}

// room makes room by dropping something less important than typ.
func (s *NDJSON) room(typ string) bool {
	for rank := 0; rank < weight(typ) && rank < len(s.spare); rank++ {
		if s.spare[rank] == 0 {
			continue // nothing to look for: a blocked sink costs the run nothing
		}
		for i, f := range s.queue {
			if weight(f.Type) == rank {
				s.queue = append(s.queue[:i], s.queue[i+1:]...)
				s.spare[rank]--
				s.dropped++
				return true
			}
		}
	}
	return false
}

func weight(typ string) int {
	switch typ {
	case "assistant_delta", "reasoning_delta":
		return 0
	case "tool_progress":
		return 1
	}
	return 2
}

func (s *NDJSON) drain() {
	defer close(s.done)
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.closed {
			s.wake.Wait()
		}
		if len(s.queue) == 0 {
			s.mu.Unlock()
			return
		}
		f := s.queue[0]
		s.queue = s.queue[1:]
		if w := weight(f.Type); w < len(s.spare) {
			s.spare[w]--
		}
		lost := int64(0)
		if f.Type == "run_finished" || s.dropped > 0 && len(s.queue) < StreamBuffer/2 {
			lost, s.dropped = s.dropped, 0
		}
		s.mu.Unlock()
		if lost > 0 {
			s.write(Fact{Seq: f.Seq, At: f.At, Run: f.Run, Type: "notice", Fields: map[string]any{
				"severity": "warning", "message": "the event sink was slow: lines were dropped", "dropped": lost,
			}})
		}
		s.write(f)
	}
}

func (s *NDJSON) write(f Fact) {
	b, err := f.line()
	if err != nil {
		return // no field but one of the envelope can do that
	}
	if _, err := s.w.Write(b); err != nil {
		s.mu.Lock()
		s.failed, s.queue = true, nil
		s.mu.Unlock()
	}
}

// Close writes what is queued, for at most so long, and reports whether all that was
// queued was written. A writer that hangs keeps its goroutine until it returns.
func (s *NDJSON) Close(limit time.Duration) bool {
	s.mu.Lock()
	s.closed = true
	s.wake.Signal()
	s.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return !s.failed
	case <-timer.C:
		return false
	}
}
