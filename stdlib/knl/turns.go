package knl

import (
	"context"
	"math"
	"sync"

	"ashlar/kernel/session"
)

// turns lets the calls of one beat that run side by side record their beginnings in
// the model's order: call n waits until every call before it has begun or was
// refused.
type turns struct {
	session string // set once

	mu     sync.Mutex
	passed map[int64]bool
	next   int64
	moved  chan struct{} // closed and made anew when next moves
}

func newTurns() *turns {
	return &turns{passed: map[int64]bool{}, next: 1, moved: make(chan struct{})}
}

// wait gives the cause of ctx when it ends first.
func (t *turns) wait(ctx context.Context, n int64) error {
	for {
		t.mu.Lock()
		ready, moved := t.next >= n, t.moved
		t.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pass ends the turn of call n; again does nothing.
func (t *turns) pass(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < t.next || t.passed[n] {
		return
	}
	t.passed[n] = true
	for t.passed[t.next] {
		delete(t.passed, t.next)
		t.next++
	}
	close(t.moved)
	t.moved = make(chan struct{})
}

// release lets every call go that waits, and every later one.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = math.MaxInt64
	close(t.moved)
	t.moved = make(chan struct{})
}

// over forgets what is kept of a beat that is done.
func (k *Kernel) over(beat string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.turns, beat)
	delete(k.beats, beat)
}

// turnsOf gives the turns of a beat; nil where its session has ended and nothing is
// recorded any more.
func (k *Kernel) turnsOf(s *session.Session, beat string) *turns {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.Closed() {
		return nil
	}
	if k.turns == nil {
		k.turns = map[string]*turns{}
	}
	t := k.turns[beat]
	if t == nil {
		t = newTurns()
		t.session = s.ID()
		k.turns[beat] = t
	}
	return t
}
