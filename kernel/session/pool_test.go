package session_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

func TestARunsPoolBoundsAllItsSessions(t *testing.T) {
	t.Parallel()
	for name, abroad := range map[string]bool{"one store": false, "two stores": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
			st := home
			if abroad {
				st = newStore(t, filepath.Join(t.TempDir(), "other.db"))
			}
			ledger := run.New(home, ids(), 7)
			h, err := ledger.Begin(ctx, run.Start{Block: "b", Bounds: budget.Amounts{"beats": 2, "tokens": 100}})
			must(t, err)
			b := bookOn(st, h)
			a, c := open(t, b, budget.Grant{Tag: "beats", Amount: 9}), open(t, b)
			if !c.Has("beats") || !c.Has("tokens") || c.Has("cost") {
				t.Error("what the sessions are limited by")
			}
			for _, s := range []*session.Session{a, c} {
				r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1, "tokens": 40}, Append: []event.Draft{request()}})
				if err != nil || !r.Granted {
					t.Fatalf("%+v %v", r, err)
				}
				must(t, s.Settle(ctx, session.Settlement{Tag: "tokens", Reserved: 40, Used: 30}))
			}
			if h.Bound() != "" {
				t.Errorf("bound %s before any refusal", h.Bound())
			}
			r, err := a.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1}, Append: []event.Draft{request()}})
			if err != nil || r.Granted || r.Bound != session.BoundRun || r.Tag != "beats" || r.Remaining != 0 {
				t.Errorf("%+v %v", r, err)
			}
			if h.Bound() != "beats" {
				t.Errorf("bound %q", h.Bound())
			}
			if left, ok, err := c.RunRemaining(ctx, "tokens"); left != 40 || !ok || err != nil {
				t.Errorf("%d %v %v", left, ok, err)
			}
			tell(t, st, a.ID(), "session_opened, budget_granted beats 9, budget_reserved beats 1, llm_request, budget_refused beats 1 0 run")
			tell(t, st, c.ID(), "session_opened, llm_request")
			tell(t, home, h.Stream(), "run_queued, budget_granted beats 2 run, budget_granted tokens 100 run, run_owned, run_session, run_session, "+
				"budget_reserved beats 1 run, budget_reserved tokens 40 run, budget_settled tokens 40 30 10 run, "+
				"budget_reserved beats 1 run, budget_reserved tokens 40 run, budget_settled tokens 40 30 10 run, "+
				"budget_refused beats 1 0 run")
			checkBalance(t, home, h.Stream())
			checkBalance(t, st, a.ID())
			must(t, b.CloseRun(ctx, session.ReasonError, "deadline"))
			_, err = a.Append(ctx, user("late"))
			want(t, err, kernel.Closed)
			tell(t, st, c.ID(), "session_opened, llm_request, session_closed error deadline")
		})
	}
}

func TestTheSmallerBoundWins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		session, pool int64
		bound         string
	}{{1, 0, "run"}, {0, 1, ""}, {0, 0, "run"}} {
		st := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
		h, err := run.New(st, ids(), 7).Begin(ctx, run.Start{Bounds: budget.Amounts{"beats": c.pool}})
		must(t, err)
		s := open(t, bookOn(st, h), budget.Grant{Tag: "beats", Amount: c.session})
		r, err := s.Reserve(ctx, budget.Amounts{"beats": 2})
		if err != nil || r.Granted || r.Bound != c.bound {
			t.Errorf("%+v: %+v %v", c, r, err)
		}
	}
}

// However many tasks ask at once, the pool gives what it has and no more.
func TestAPoolIsNeverOverdrawnByConcurrentSessions(t *testing.T) {
	t.Parallel()
	st := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
	h, err := run.New(st, ids(), 7).Begin(ctx, run.Start{Bounds: budget.Amounts{"beats": 10}})
	must(t, err)
	b := bookOn(st, h)
	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 8 {
		s := open(t, b)
		wg.Go(func() {
			for range 5 {
				r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1}, Append: []event.Draft{request()}})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if r.Granted {
					granted++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if granted != 10 {
		t.Errorf("%d beats were granted of 10", granted)
	}
	checkBalance(t, st, h.Stream())
}

func TestTheEndOfARunClosesWhatEarlierAttemptsLeft(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	first := newStore(t, path)
	h, err := run.New(first, ids(), 7).Begin(ctx, run.Start{})
	must(t, err)
	s := open(t, bookOn(first, h))
	must(t, first.Close())
	st := newStore(t, path)
	second, err := run.New(st, ids(), 8).Take(ctx, h.ID())
	must(t, err)
	b := bookOn(st, second)
	must(t, b.CloseRun(ctx, session.ReasonDropped, ""))
	tell(t, st, s.ID(), "session_opened, session_closed dropped")
	must(t, b.CloseRun(ctx, session.ReasonDropped, ""))
	if h, err := st.Head(ctx, s.ID()); err != nil || h.Seq != 2 {
		t.Errorf("%+v, %v", h, err)
	}
}

// What the session refuses or fails to write costs a pool elsewhere no tokens.
func TestAPoolElsewhereGetsBackWhatItsSessionDidNotTake(t *testing.T) {
	t.Parallel()
	home := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
	st := newStore(t, filepath.Join(t.TempDir(), "other.db"))
	h, err := run.New(home, ids(), 7).Begin(ctx, run.Start{Bounds: budget.Amounts{"beats": 5, "tokens": 100}})
	must(t, err)
	failing := &failingStore{Store: st}
	s := open(t, bookOn(failing, h))
	failing.fail = true
	_, err = s.Reserve(ctx, budget.Amounts{"beats": 1, "tokens": 40})
	want(t, err, kernel.Storage)
	failing.fail = false
	tell(t, home, h.Stream(), "run_queued, budget_granted beats 5 run, budget_granted tokens 100 run, run_owned, run_session, "+
		"budget_reserved beats 1 run, budget_reserved tokens 40 run, budget_settled tokens 40 0 40 run")
	checkBalance(t, home, h.Stream())
	// A refusal by the session: nothing is reserved, and nothing is spent or settled.
	poor := open(t, bookOn(failing, h), budget.Grant{Tag: "tokens", Amount: 1})
	r, err := poor.Commit(ctx, session.Batch{Reserve: budget.Amounts{"tokens": 2}, Spend: budget.Amounts{"beats": 1}})
	if err != nil || r.Granted || r.Bound != "" {
		t.Errorf("%+v %v", r, err)
	}
	if left, _, err := h.Remaining(ctx, "beats"); left != 4 || err != nil {
		t.Errorf("%d beats left, %v", left, err)
	}
	if left, _, err := h.Remaining(ctx, "tokens"); left != 100 || err != nil {
		t.Errorf("%d tokens left, %v", left, err)
	}
}

type failingStore struct {
	store.Store
	fail bool
}

func (f *failingStore) Write(ctx context.Context, fn func(store.Tx) error) error {
	if f.fail {
		return kernel.Errorf("store.write", kernel.Storage, "disk full")
	}
	return f.Store.Write(ctx, fn)
}

func TestASessionThatAnotherLiveRunHoldsIsBusy(t *testing.T) {
	t.Parallel()
	st := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
	ledger := run.New(st, ids(), 7)
	begin := func() (*run.Handle, *session.Book) {
		h, err := ledger.Begin(ctx, run.Start{})
		must(t, err)
		return h, bookOn(st, h)
	}
	one, first := begin()
	_, second := begin()
	s := open(t, first)
	_, err := second.Resume(ctx, s.ID(), session.Resuming{})
	want(t, err, kernel.Busy)
	if err == nil || !strings.Contains(err.Error(), "run "+one.ID()) {
		t.Errorf("the lease names the run: %v", err)
	}
	again, err := first.Resume(ctx, s.ID(), session.Resuming{})
	must(t, err)
	for _, handle := range []*session.Session{s, again, s} {
		if _, err := handle.Append(ctx, user("on")); err != nil {
			t.Error(err)
		}
	}
	// A run that ended without closing its sessions holds them no longer.
	must(t, one.Settle(ctx, run.Outcome{State: run.Failed}))
	taken, err := second.Resume(ctx, s.ID(), session.Resuming{})
	must(t, err)
	if _, err := taken.Append(ctx, user("on")); err != nil {
		t.Error(err)
	}
	_, err = s.Append(ctx, user("late"))
	want(t, err, kernel.Busy)
}
