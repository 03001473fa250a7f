package run_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

func TestThePoolGivesAllOrNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, budget.Amounts{"beats": 3, "tokens": 100})
	take := func(a budget.Amounts, granted bool, tag string) {
		t.Helper()
		if g, short, err := h.Reserve(ctx, a); err != nil || g != granted || short != tag {
			t.Errorf("%v: %v %q %v", a, g, short, err)
		}
	}
	left := func(tag string, n int64) {
		t.Helper()
		if got, ok, err := h.Remaining(ctx, tag); err != nil || !ok || got != n {
			t.Errorf("%s: %d %v %v, want %d", tag, got, ok, err, n)
		}
	}
	take(budget.Amounts{"tool_calls": 9}, true, "") // no bound, nothing is taken
	take(budget.Amounts{"beats": 1, "tokens": 60, "cost": 5}, true, "")
	if h.Bound() != "" {
		t.Errorf("bound %q before any refusal", h.Bound())
	}
	take(budget.Amounts{"beats": 1, "tokens": 60}, false, "tokens")
	if h.Bound() != "tokens" {
		t.Errorf("bound %q", h.Bound())
	}
	left("beats", 2)
	must(t, h.SettleUse(ctx, "tokens", 60, 25))
	left("tokens", 75)
	take(budget.Amounts{"tokens": 10}, true, "")
	must(t, h.SettleUse(ctx, "tokens", 10, 500)) // overdrawn, and never negative
	left("tokens", 0)
	must(t, h.SettleUse(ctx, "tokens", 10, 0)) // nothing is held: no grant
	left("tokens", 0)
	must(t, h.SettleUse(ctx, "cost", 10, 0))
	_, _, err := h.Reserve(ctx, budget.Amounts{"beats": -1})
	want(t, err, kernel.Validation)

	var wg sync.WaitGroup
	var mu sync.Mutex
	granted := 0
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			g, _, err := h.Reserve(ctx, budget.Amounts{"beats": 1})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			if g {
				granted++
			}
		}()
	}
	wg.Wait()
	if granted != 2 {
		t.Errorf("%d of 2 beats were granted", granted)
	}

	// What is left is the fold over the run's events, each of which says whose it is.
	b := budget.Balance{Left: budget.Amounts{}, Held: budget.Amounts{}}
	events, _, err := s.Events(ctx, h.Stream(), store.Query{Bodies: true})
	must(t, err)
	for _, e := range events {
		must(t, b.Apply(e))
		if event.Ledger(e.Kind) && !strings.Contains(string(e.Data), `"bound":"run"`) {
			t.Errorf("%s", e.Data)
		}
	}
	if b.Left["beats"] != 0 || b.Left["tokens"] != 0 {
		t.Errorf("the fold gives %v", b.Left)
	}
	must(t, h.Settle(ctx, run.Outcome{State: run.Completed}))
	_, _, err = h.Reserve(ctx, budget.Amounts{"beats": 1})
	want(t, err, kernel.Closed)
}
