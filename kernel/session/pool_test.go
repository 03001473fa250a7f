package session_test

import (
	"path/filepath"
	"sync"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
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
