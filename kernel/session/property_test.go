package session_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
	"ashlar/kernel/verify"
)

// ordered is a store that tells each operation its place among all: the order in which
// the transactions were carried out. The place is that of the last run of a
// transaction, as it is the one that was committed.
type ordered struct {
	store.Store
	count atomic.Int64
}

type placeKey struct{}

func (o *ordered) Write(ctx context.Context, fn func(store.Tx) error) error {
	place, _ := ctx.Value(placeKey{}).(*int64)
	if place == nil {
		return o.Store.Write(ctx, fn)
	}
	return o.Store.Write(ctx, func(tx store.Tx) error {
		err := fn(tx)
		*place = o.count.Add(1)
		return err
	})
}

// step is one operation that was carried out, and what the model says to it.
type step struct {
	place int64
	name  string
	got   string
	want  func(*model) string
}

// world is what the goroutines share. Those operations that read, or end much at once,
// hold mu alone; the others share it and meet in the store.
type world struct {
	t      *testing.T
	st     *ordered
	ledger *run.Ledger
	mu     sync.RWMutex
	places []*place

	steps struct {
		sync.Mutex
		all   []step
		known []string // sessions
	}
}

// place is where sessions are opened: a run, and its book.
type place struct {
	run  *run.Handle
	book *session.Book
}

type held struct {
	*session.Session
	at    *place
	model *modelHandle
}

// modelEnv makes the test a process of TestProcessesEqualTheModel: PATH SEED OPERATIONS.
const modelEnv = "ASHLAR_TEST_MODEL"

func TestSessionsEqualTheModel(t *testing.T) {
	if os.Getenv(modelEnv) == "" {
		t.Parallel()
	}
	path, seed, operations := filepath.Join(t.TempDir(), "kernel.db"), uint64(time.Now().UnixNano()), 10_000
	if testing.Short() {
		operations = 3000
	}
	order := strings.Fields(os.Getenv(modelEnv))
	if len(order) == 3 {
		path = order[0]
		seed, _ = strconv.ParseUint(order[1], 10, 64)
		operations, _ = strconv.Atoi(order[2])
	}
	st := equalsTheModel(t, path, seed, operations)
	if len(order) == 0 {
		sound(t, st)
	}
}

func TestProcessesEqualTheModel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	operations := 1500
	if testing.Short() {
		operations = 300
	}
	var wg sync.WaitGroup
	for i := range uint64(3) {
		seed := uint64(time.Now().UnixNano()) + i
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestSessionsEqualTheModel$")
			cmd.Env = append(os.Environ(), fmt.Sprint(modelEnv, "=", path, " ", seed, " ", operations))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	sound(t, newStore(t, path))
}

// sound holds a store to `log verify`.
func sound(t *testing.T, st store.Store) {
	t.Helper()
	r, err := verify.Check(ctx, st, nil)
	must(t, err)
	for _, f := range r.Faults {
		t.Error(f)
	}
}

// equalsTheModel carries out operations on several goroutines, then the model's in the
// order in which the store took them, and compares every outcome, every balance and
// the kinds of every stream.
func equalsTheModel(t *testing.T, path string, seed uint64, operations int) store.Store {
	t.Helper()
	const goroutines = 8
	w := &world{t: t, st: &ordered{Store: newStore(t, path)}}
	w.ledger = run.New(w.st, ids(), os.Getpid())
	first := rand.New(rand.NewPCG(seed, 0))
	for range 3 {
		w.places = append(w.places, w.begin(first))
	}
	var wg sync.WaitGroup
	for g := range uint64(goroutines) {
		wg.Go(func() {
			a := actor{world: w, r: rand.New(rand.NewPCG(seed, g+1))}
			for range operations / goroutines {
				a.act()
			}
		})
	}
	wg.Wait()
	slices.SortStableFunc(w.steps.all, func(a, b step) int { return cmp.Compare(a.place, b.place) })
	m := newModel()
	count := map[string]int{}
	for _, s := range w.steps.all {
		if want := s.want(m); s.got != want {
			t.Fatalf("seed %d, operation %d, %s: got %q, the model %q", seed, s.place, s.name, s.got, want)
		}
		word, _, _ := strings.Cut(s.name, " ")
		outcome, _, _ := strings.Cut(s.got, " ")
		count[word+" "+outcome]++
	}
	m.compare(t, w.st, seed)
	if operations >= 3000 {
		for _, seen := range []string{"open ok", "child ok", "child refused", "child closed", "commit granted", "commit refused", "commit closed",
			"commit validation", "resume ok", "resume closed", "resume busy", "pool granted", "pool refused", "end ok"} {
			if count[seen] == 0 {
				t.Errorf("seed %d: %q never happened: %v", seed, seen, count)
			}
		}
	}
	return w.st.Store
}

func (m *model) compare(t *testing.T, st store.Store, seed uint64) {
	t.Helper()
	for id, s := range m.streams {
		var kinds []string
		for more := true; more; {
			var page []event.Event
			var err error
			page, more, err = st.Events(ctx, id, store.Query{From: int64(len(kinds)) + 1})
			must(t, err)
			for _, e := range page {
				kinds = append(kinds, e.Kind)
			}
		}
		if !slices.Equal(kinds, s.kinds) {
			t.Errorf("seed %d, stream %s:\n got %v\nwant %v", seed, id, kinds, s.kinds)
		}
		b, err := budget.Read(st.Row(ctx, store.Balances, id))
		must(t, err)
		if got, want := fmt.Sprint(b.Tags, nonZero(b.Left), nonZero(b.Held)), fmt.Sprint(s.tags, nonZero(s.left), nonZero(s.held)); got != want {
			t.Errorf("seed %d, balance of %s: got %s, the model %s", seed, id, got, want)
		}
	}
}

func nonZero(amounts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for tag, n := range amounts {
		if n != 0 {
			out[tag] = n
		}
	}
	return out
}

// begin begins a run. The caller holds mu, or is alone.
func (w *world) begin(r *rand.Rand) *place {
	bounds := amountsOf(r, 3, 400)
	h, err := w.ledger.Begin(ctx, run.Start{Block: "b", Bounds: bounds})
	if err != nil {
		w.t.Error(err)
		return nil
	}
	w.did(w.st.count.Add(1), "begin", "ok", func(m *model) string { m.begin(h.ID(), bounds); return "ok" })
	return &place{run: h, book: bookOn(w.st, h)}
}

func (w *world) did(place int64, name, got string, want func(*model) string) {
	w.steps.Lock()
	defer w.steps.Unlock()
	w.steps.all = append(w.steps.all, step{place, name, got, want})
}

func amountsOf(r *rand.Rand, most, limit int) map[string]int64 {
	tags := []string{"beats", "tokens", "cost", "units", "tool_calls"}
	out := map[string]int64{}
	for range 1 + r.IntN(most) {
		out[tags[r.IntN(len(tags))]] = int64(r.IntN(limit))
	}
	return out
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if kind := kernel.KindOf(err); kind != "" {
		return string(kind)
	}
	return err.Error()
}
