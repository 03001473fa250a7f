package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"ashlar/kernel"
	"ashlar/kernel/ident"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Run is what a session needs of the run that it belongs to. Its methods are
// safe for concurrent use.
type Run interface {
	// ID names the run, Stream the stream that holds its ledger and its pool.
	ID() string
	Stream() string

	// Store is where that stream lives.
	Store() store.Store

	// Has reports whether a bound of the run limits the tag.
	Has(tag string) bool

	// Join records within a transaction of Store that a session of the run was
	// opened or resumed in the store that url names.
	Join(tx store.Tx, session, url string) error

	// Refused is told of a refusal by the pool once it is durable.
	Refused(tag string)
}

// Options are what a Book is made of. Run is nil outside a run.
type Options struct {
	Store store.Store
	IDs   *ident.Source
	PID   int
	Run   Run
}

// Book opens and resumes the sessions of one run in one store. It is safe for
// concurrent use.
type Book struct {
	store store.Store
	ids   *ident.Source
	pid   int
	run   Run
	over  atomic.Bool // CloseRun was called

	mu   sync.Mutex
	mine map[string]string // id to scope: what this Book opened or resumed and nobody closed
}

// NewBook returns a Book.
func NewBook(o Options) *Book {
	return &Book{store: o.Store, ids: o.IDs, pid: o.PID, run: o.Run, mine: map[string]string{}}
}

// Store is where the Book's sessions live.
func (b *Book) Store() store.Store { return b.store }

func (b *Book) runID() string {
	if b.run == nil {
		return ""
	}
	return b.run.ID()
}

// local reports whether the run's pool is in this store, so that both can change
// in one transaction.
func (b *Book) local() bool { return b.run != nil && b.run.Store() == b.store }

// join enters a session into its run, within the transaction where the run's
// store is this one. after does what is left when it is another.
func (b *Book) join(tx store.Tx, id string) (after func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	if b.run == nil {
		return nothing, nil
	}
	if err := tx.PutRow(store.Open, openKey(b.run.ID(), id), []byte("{}")); err != nil {
		return nil, err
	}
	if b.local() {
		return nothing, b.run.Join(tx, id, b.store.URL())
	}
	return func(ctx context.Context) error {
		return b.run.Store().Write(ctx, func(tx store.Tx) error { return b.run.Join(tx, id, b.store.URL()) })
	}, nil
}

func openKey(run, id string) string { return run + "/" + id }

// account opens the balance of a session within a transaction.
func account(tx store.Tx, id, scope string) (*budget.Account, error) {
	return budget.Open(tx, id, budget.Fields{"scope_id": scope})
}

// pool opens the balance of the run for one session's moves.
func (b *Book) pool(tx store.Tx, session string) (*budget.Account, error) {
	return budget.Open(tx, b.run.Stream(), budget.Fields{"session": session, "bound": "run"})
}

func checkGrants(grants []budget.Grant) error {
	seen := map[string]bool{}
	for _, g := range grants {
		if g.Amount < 0 {
			return kernel.Errorf("budget", kernel.Validation, "a grant of %d; an amount is never negative", g.Amount)
		}
		if seen[g.Tag] {
			return kernel.Errorf("budget", kernel.Validation, "two grants for the tag %q; give one", g.Tag)
		}
		seen[g.Tag] = true
	}
	return nil
}

// as gives an error the name of the operation that the caller asked for; the
// kind and the prose stay.
func as(op string, err error) error {
	var e *kernel.Error
	if !errors.As(err, &e) {
		return err
	}
	return &kernel.Error{Op: op, Kind: e.Kind, Err: e.Err}
}
