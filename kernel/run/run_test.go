package run_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

var _ session.Run = (*run.Handle)(nil)

func open(t *testing.T, path string, o sqlite.Options) store.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func ledger(s store.Store) *run.Ledger {
	return run.New(s, ident.New(ident.System{}, rand.Reader), 42)
}

func fresh(t *testing.T) (store.Store, *run.Ledger) {
	s := open(t, filepath.Join(t.TempDir(), "kernel.db"), sqlite.Options{})
	return s, ledger(s)
}

func begin(t *testing.T, l *run.Ledger, bounds budget.Amounts) *run.Handle {
	t.Helper()
	h, err := l.Begin(context.Background(), run.Start{Block: "b", Digest: "d", Bounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err error, kind kernel.Kind) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want kind %s", err, kind)
	}
}

func kinds(t *testing.T, s store.Store, stream string) string {
	t.Helper()
	events, _, err := s.Events(context.Background(), stream, store.Query{})
	must(t, err)
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Kind + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestAnAttachedRunIsQueuedAndOwnedInOneTransaction(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, budget.Amounts{"beats": 2, "tokens": 100})
	if got := kinds(t, s, h.Stream()); got != "run_queued budget_granted budget_granted run_owned" {
		t.Errorf("events: %s", got)
	}
	row, err := l.Get(ctx, h.ID())
	if err != nil || row.State != run.Running || row.Attempt != 1 || row.PID != 42 || row.Bounds["beats"] != 2 || row.Block != "b" {
		t.Errorf("%+v, %v", row, err)
	}
	must(t, h.Settle(ctx, run.Outcome{State: run.Completed, Result: map[string]any{"answer": int64(42)}}))
	row, err = l.Get(ctx, h.ID())
	if err != nil || row.State != run.Completed || !reflect.DeepEqual(row.Result, map[string]any{"answer": int64(42)}) || row.EndedMS == 0 {
		t.Errorf("%+v, %v", row, err)
	}
	want(t, h.Settle(ctx, run.Outcome{State: run.Failed}), kernel.Closed)
	rows, err := l.List(ctx, "", 0)
	if err != nil || len(rows) != 1 || rows[0].State != run.Completed {
		t.Errorf("%+v, %v", rows, err)
	}
	_, err = l.Get(ctx, "nobody")
	want(t, err, kernel.NotFound)
}

// Every state and every move that its owner or a stranger can make.
func TestAStateChangesAlongTheTableAlone(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, l := fresh(t)
	row, err := l.Queue(ctx, run.Start{Block: "b"})
	must(t, err)
	_, err = l.Take(ctx, row.ID)
	want(t, err, kernel.Closed)
	h, err := l.Own(ctx, row.ID)
	must(t, err)
	for _, no := range []func() error{
		func() error { _, err := l.Own(ctx, row.ID); return err },
		func() error { _, err := l.Take(ctx, row.ID); return err },
		func() error { return l.Cancel(ctx, row.ID, run.Outcome{State: run.Cancelled}) },
		func() error { return h.GoOn(ctx) },
	} {
		want(t, no(), kernel.Closed)
	}
	want(t, h.Settle(ctx, run.Outcome{State: run.Waiting}), kernel.Validation)
	must(t, h.Wait(ctx, "approval-1"))
	if r, _ := l.Get(ctx, row.ID); r.State != run.Waiting || r.Approval != "approval-1" {
		t.Errorf("%+v", r)
	}
	must(t, h.GoOn(ctx))
	must(t, h.Wait(ctx, "approval-2"))
	second, err := l.Take(ctx, row.ID)
	must(t, err)
	if second.Attempt() != 2 {
		t.Errorf("attempt %d", second.Attempt())
	}
	want(t, h.Settle(ctx, run.Outcome{State: run.Completed}), kernel.Closed)
	must(t, second.Settle(ctx, run.Outcome{State: run.Cancelled, StoppedBy: "cancel"}))
	queued, err := l.Queue(ctx, run.Start{})
	must(t, err)
	must(t, l.Cancel(ctx, queued.ID, run.Outcome{State: run.Cancelled}))
	_, err = l.Own(ctx, queued.ID)
	want(t, err, kernel.Closed)
}

func TestARunWhoseOwnerIsGoneIsLost(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "kernel.db")
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	h := begin(t, ledger(a), nil)
	l := ledger(b)
	if r, err := l.Get(ctx, h.ID()); err != nil || r.State != run.Running {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, a.Close())
	if r, err := l.Get(ctx, h.ID()); err != nil || r.State != run.Lost {
		t.Errorf("%+v, %v", r, err)
	}
	taken, err := l.Take(ctx, h.ID())
	must(t, err)
	if taken.Attempt() != 2 {
		t.Errorf("attempt %d", taken.Attempt())
	}
}

func TestTheFirstBoundIsWhatStopped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, l := fresh(t)
	h := begin(t, l, budget.Amounts{"beats": 1})
	h.Refused("beats")
	h.Fired("deadline")
	must(t, h.Settle(ctx, run.Outcome{State: run.Failed, Error: map[string]any{"kind": "limit"}}))
	if r, _ := l.Get(ctx, h.ID()); r.StoppedBy != "beats" || r.Error["kind"] != "limit" {
		t.Errorf("%+v", r)
	}
}

func TestTheLedgerHoldsNoSecret(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	redact := func(b []byte) []byte { return []byte(strings.ReplaceAll(string(b), "hunter2", "[secret]")) }
	s := open(t, filepath.Join(t.TempDir(), "kernel.db"), sqlite.Options{Redact: redact})
	l := ledger(s)
	h, err := l.Begin(ctx, run.Start{Block: "b", Labels: map[string]any{"x": "hunter2"}})
	must(t, err)
	must(t, h.Settle(ctx, run.Outcome{State: run.Failed, Error: map[string]any{"message": "hunter2"}, Result: "hunter2"}))
	row, _, err := s.Row(ctx, store.Runs, h.ID())
	must(t, err)
	if strings.Contains(string(row), "hunter2") || strings.Count(string(row), "[secret]") != 2 {
		t.Errorf("%s", row)
	}
}

func TestTheJournalGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, nil)
	calls := []run.Syscall{
		{N: 1, K: 1, Name: "std.fs.read", Args: []any{"a"}, Result: []any{strings.Repeat("x", 3000), int64(1)}},
		{N: 2, K: 1, Task: 1, Name: "http.get", Args: []any{}, Error: map[string]any{"kind": "network"}},
		{N: 3, K: 2, Name: "std.env.get", ArgsHash: "abc", Result: []any{}},
	}
	for i, task := range []int{0, 0, 1, 0, 2, 2} {
		h.Handover(int64(i+1), task)
		if i < len(calls) {
			h.Record(calls[i])
		}
		if i == 3 {
			must(t, s.Flush(ctx))
		}
	}
	must(t, h.Settle(ctx, run.Outcome{State: run.Completed}))
	j, err := run.ReadJournal(ctx, s, h.ID())
	must(t, err)
	for i := range j.Syscalls {
		if j.Syscalls[i].Seq < 3 {
			t.Errorf("call %d is in event %d", i+1, j.Syscalls[i].Seq)
		}
		j.Syscalls[i].Seq = 0
	}
	if !reflect.DeepEqual(j.Syscalls, calls) || !j.Exact {
		t.Errorf("syscalls %+v", j.Syscalls)
	}
	if !reflect.DeepEqual(j.Handovers, []int{0, 0, 1, 0, 2, 2}) {
		t.Errorf("hand-overs %v", j.Handovers)
	}
	if got := strings.Count(kinds(t, s, h.Stream()), event.Handover); got != 2 {
		t.Errorf("%d events hold the hand-overs", got)
	}
}

func TestWhatTheJournalCannotKeepLeavesAMark(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, nil)
	h.Record(run.Syscall{N: 1, K: 1, Name: "big", Result: []any{strings.Repeat("x", run.MaxJournalBytes)}})
	h.Record(run.Syscall{N: 2, K: 2, Name: "odd", Result: []any{make(chan int)}})
	must(t, s.Flush(ctx))
	j, err := run.ReadJournal(ctx, s, h.ID())
	must(t, err)
	if j.Exact || len(j.Syscalls) != 2 || !j.Syscalls[0].Mark || len(j.Syscalls[0].ArgsHash) != 64 || !j.Syscalls[1].Mark {
		t.Errorf("%+v", j)
	}
}

func TestARunWithOneTaskRecordsNoHandovers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, nil)
	for n := range 100 {
		h.Handover(int64(n+1), 0)
	}
	must(t, s.Flush(ctx))
	if got := kinds(t, s, h.Stream()); strings.Contains(got, event.Handover) {
		t.Errorf("%s", got)
	}
}

// TestTheJournalWaitsForTheDisk: a script that makes syscalls faster than they can be
// written leaves no more than a bound of them for the run's end.
func TestTheJournalWaitsForTheDisk(t *testing.T) {
	s, l := fresh(t)
	h := begin(t, l, nil)
	const calls = 20_000
	for n := range int64(calls) {
		h.Record(run.Syscall{N: n + 1, K: n + 1, Name: "std.time.now", Result: []any{1.5}})
	}
	j, err := run.ReadJournal(t.Context(), s, h.ID())
	must(t, err)
	if len(j.Syscalls) < calls-5000 {
		t.Errorf("%d of %d are written when the last one returns", len(j.Syscalls), calls)
	}
	must(t, h.Settle(t.Context(), run.Outcome{State: run.Completed}))
	j, err = run.ReadJournal(t.Context(), s, h.ID())
	must(t, err)
	if len(j.Syscalls) != calls || !j.Exact || j.Syscalls[calls-1].K != calls || j.Syscalls[0].Name != "std.time.now" {
		t.Errorf("%d of %d are written at the end", len(j.Syscalls), calls)
	}
	ended := h.Ended()
	if len(ended.Heads) != 1 || ended.Heads[0].Stream != h.Stream() || ended.Heads[0].Seq > calls/10 {
		t.Errorf("ended with %+v", ended)
	}
}

func TestSessionsOfARunAreListedInTheOrderOfJoining(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, l := fresh(t)
	h := begin(t, l, nil)
	const n = store.MaxPage + 5
	var want []string
	for i := range n {
		id := fmt.Sprintf("%04d", (i*7919)%10_000)
		want = append(want, id)
		if err := h.Store().Write(ctx, func(tx store.Tx) error {
			if err := h.Join(tx, id, "mem:"); err != nil {
				return err
			}
			return h.Join(tx, id, "mem:") // again is nothing
		}); err != nil {
			t.Fatal(err)
		}
	}
	row, err := l.Get(ctx, h.ID())
	if err != nil || !slices.Equal(row.Sessions, want) {
		t.Errorf("%d sessions %v, want %d in order", len(row.Sessions), err, n)
	}
}

func TestAMissingNumberMakesAJournalInexact(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, c := range []struct {
		numbers []int64
		exact   bool
	}{{nil, true}, {[]int64{3, 1, 2}, true}, {[]int64{1, 3}, false}, {[]int64{2}, false}, {[]int64{0, 1}, false}} {
		s, l := fresh(t)
		h := begin(t, l, nil)
		for _, n := range c.numbers {
			h.Record(run.Syscall{N: n, K: 1, Name: "std.time.now"})
		}
		must(t, h.Settle(ctx, run.Outcome{State: run.Completed}))
		j, err := run.ReadJournal(ctx, s, h.ID())
		must(t, err)
		if j.Exact != c.exact {
			t.Errorf("%v: exact %v", c.numbers, j.Exact)
		}
	}
}

func TestALostJournalIsNotSilent(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, l := fresh(t)
	h := begin(t, l, nil)
	s.Later(func(store.Tx) error { return kernel.Errorf("disk", kernel.Storage, "full") })
	err := h.Settle(ctx, run.Outcome{State: run.Completed, Result: int64(1)})
	want(t, err, kernel.Storage)
	row, err := l.Look(ctx, h.ID())
	if err != nil || row.State != run.Failed || row.Error["kind"] != "storage" || row.Result != nil || row.Sessions != nil {
		t.Errorf("%+v, %v", row, err)
	}
}

// deafStore takes what is queued and never comes to it.
type deafStore struct {
	store.Store
	barriers int
}

func (*deafStore) Later(func(store.Tx) error) {}

func (d *deafStore) Write(ctx context.Context, fn func(store.Tx) error) error {
	d.barriers++
	return d.Store.Write(ctx, fn)
}

func TestSyscallsThatWereLostDoNotCountAsPending(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	deaf := &deafStore{Store: s}
	h := begin(t, ledger(deaf), nil)
	deaf.barriers = 0
	for n := range int64(3 * 4 * store.LaterLimit) {
		h.Record(run.Syscall{N: n + 1, K: n + 1, Name: "std.time.now"})
	}
	if deaf.barriers != 3 {
		t.Errorf("waited %d times for the disk", deaf.barriers)
	}
}
