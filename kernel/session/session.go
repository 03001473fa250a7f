package session

import (
	"context"
	"sync/atomic"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Session is one handle on a session. It is safe for concurrent use; several
// handles of one process interleave by arrival.
type Session struct {
	book   *Book
	id     string
	scope  string
	owner  string
	epoch  int64
	closed atomic.Bool
	tags   atomic.Pointer[[]string] // as of the last transaction of this handle
}

// handle makes a Session of what a transaction has committed.
func (b *Book) handle(id string, r row, epoch int64, tags []string) *Session {
	s := &Session{book: b, id: id, scope: r.scope, owner: r.owner, epoch: epoch}
	s.tags.Store(&tags)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mine[id] = r.scope
	return s
}

// ID names the session and its stream.
func (s *Session) ID() string { return s.id }

// ScopeID names what the session's budget belongs to.
func (s *Session) ScopeID() string { return s.scope }

// Owner is the principal that the session was opened for.
func (s *Session) Owner() string { return s.owner }

// Store is where the session lives.
func (s *Session) Store() store.Store { return s.book.store }

// Book is what opened the session: a child is opened through it too.
func (s *Session) Book() *Book { return s.book }

// Closed reports whether this handle refuses writes.
func (s *Session) Closed() bool { return s.closed.Load() || s.book.over.Load() }

// Tag is the tag of the first grant; ok is false when nothing was granted.
func (s *Session) Tag() (tag string, ok bool) {
	if tags := *s.tags.Load(); len(tags) > 0 {
		return tags[0], true
	}
	return "", false
}

// Has reports whether the session or its run limits the tag. It touches no
// store: a grant that another handle added shows after this one's next write.
func (s *Session) Has(tag string) bool {
	if (budget.Balance{Tags: *s.tags.Load()}).Holds(tag) {
		return true
	}
	return s.book.run != nil && s.book.run.Has(tag)
}

// Balance is what is left of the session's own grants.
func (s *Session) Balance(ctx context.Context) (budget.Balance, error) {
	b, err := budget.Read(s.book.store.Row(ctx, store.Balances, s.id))
	return b, as("session.remaining", err)
}

// Remaining is what is left of the session's grants of a tag; ok is false when
// it was never granted.
func (s *Session) Remaining(ctx context.Context, tag string) (left int64, ok bool, err error) {
	b, err := s.Balance(ctx)
	return b.Left[tag], b.Holds(tag), err
}

// RunRemaining is what is left of the run's bound on a tag; ok is false when
// there is no such bound.
func (s *Session) RunRemaining(ctx context.Context, tag string) (left int64, ok bool, err error) {
	run := s.book.run
	if run == nil || !run.Has(tag) {
		return 0, false, nil
	}
	b, err := budget.Read(run.Store().Row(ctx, store.Balances, run.Stream()))
	return b.Left[tag], b.Holds(tag), as("session.remaining", err)
}

// Exhausted reports whether nothing is left of a tag that was granted.
func (s *Session) Exhausted(ctx context.Context) (bool, error) {
	b, err := s.Balance(ctx)
	return b.Exhausted(), as("session.exhausted", err)
}

// Events reads up to store.MaxPage events from a seq on; more reports that the
// page was cut. Without bodies the data of llm_request is {}.
func (s *Session) Events(ctx context.Context, from int64, bodies bool) (events []event.Event, more bool, err error) {
	events, more, err = s.book.store.Events(ctx, s.id, store.Query{From: from, Bodies: bodies})
	return events, more, as("session.events", err)
}

// Conversation is Events without bodies, for a beat that folds the session. It may
// leave out the newest ledger events that another process wrote while it opened a child
// here; all else is written by this process as long as the lease holds.
func (s *Session) Conversation(ctx context.Context, from int64) (events []event.Event, more bool, err error) {
	events, more, err = s.book.store.Events(ctx, s.id, store.Query{From: from, Mine: !s.Closed()})
	return events, more, as("session.events", err)
}

// Tail reads the last n events, at most store.MaxPage.
func (s *Session) Tail(ctx context.Context, n int) ([]event.Event, error) {
	if n < 0 {
		return nil, kernel.Errorf("session.view", kernel.Validation, "n is %d; it is never negative", n)
	}
	if n > store.MaxPage {
		return nil, kernel.Errorf("session.view", kernel.Validation, "n is %d, more than %d; read the session page by page", n, store.MaxPage)
	}
	if n == 0 {
		return nil, nil
	}
	events, _, err := s.book.store.Events(ctx, s.id, store.Query{Last: n, Bodies: true})
	return events, as("session.view", err)
}

// Len counts the session's events.
func (s *Session) Len(ctx context.Context) (int64, error) {
	h, err := s.book.store.Head(ctx, s.id)
	return h.Seq, as("session.len", err)
}
