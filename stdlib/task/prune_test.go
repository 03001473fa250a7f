package task

import (
	"context"
	"testing"
	"time"

	"ashlar/vm"
)

type fixedClock struct{ now time.Time }

func (c fixedClock) Now() time.Time                                   { return c.now }
func (c fixedClock) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// Scenario 37: a scope keeps the children that run, whatever number has ended.
func TestAScopeForgetsTheChildrenThatEnded(t *testing.T) {
	t.Parallel()
	g := newGroup(&vm.Host{Clock: fixedClock{}, Log: func(string, string, map[string]any) {}, Redact: func(s string) string { return s }})
	sc := g.newScope(context.Background(), "s")
	last := (*entry)(nil)
	for i := range 1000 {
		last = g.add(&vm.Task{ID: i, Ctx: context.Background(), Done: make(chan struct{})}, "", sc)
		if i < 999 {
			g.ended(last)
		}
	}
	if len(sc.live) != 1 || len(g.byID) != 1 || len(g.failed) != 0 {
		t.Errorf("%d live, %d known, %d failed", len(sc.live), len(g.byID), len(g.failed))
	}
	if _, idle := sc.idle(); idle {
		t.Error("one child runs, and the scope is idle")
	}
	g.ended(last)
	if _, idle := sc.idle(); !idle || sc.open() == nil {
		t.Error("no child runs, and the scope is not over")
	}
}
