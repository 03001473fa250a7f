package session_test

import (
	"context"
	"fmt"
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

// brittle is a store whose transactions fail at their n-th write.
type brittle struct {
	store.Store
	at int // 0 never
}

type brittleTx struct {
	store.Tx
	left int
}

func (b *brittle) Write(ctx context.Context, fn func(store.Tx) error) error {
	if b.at == 0 {
		return b.Store.Write(ctx, fn)
	}
	return b.Store.Write(ctx, func(tx store.Tx) error { return fn(&brittleTx{tx, b.at}) })
}

func (t *brittleTx) step() error {
	if t.left--; t.left <= 0 {
		return kernel.Errorf("store", kernel.Storage, "the disk is full")
	}
	return nil
}

func (t *brittleTx) Append(stream string, d event.Draft) (event.Event, error) {
	if err := t.step(); err != nil {
		return event.Event{}, err
	}
	return t.Tx.Append(stream, d)
}

func (t *brittleTx) PutRow(table store.Table, key string, value []byte) error {
	if err := t.step(); err != nil {
		return err
	}
	return t.Tx.PutRow(table, key, value)
}

func (t *brittleTx) DeleteRow(table store.Table, key string) error {
	if err := t.step(); err != nil {
		return err
	}
	return t.Tx.DeleteRow(table, key)
}

// everything is what a store holds, in one text.
func everything(t *testing.T, s store.Store) string {
	t.Helper()
	var all strings.Builder
	heads, err := s.Streams(ctx, "", store.MaxPage)
	must(t, err)
	for _, h := range heads {
		fmt.Fprintln(&all, h.Stream, h.Seq, story(t, s, h.Stream))
	}
	for _, table := range store.Tables() {
		rows, err := s.Rows(ctx, table, "", store.MaxPage)
		must(t, err)
		for _, r := range rows {
			fmt.Fprintln(&all, table, r.Key, string(r.Value))
		}
	}
	return all.String()
}

func TestAnAllocationThatFailsAnywhereLeavesNeitherSide(t *testing.T) {
	t.Parallel()
	st := &brittle{Store: newStore(t, filepath.Join(t.TempDir(), "kernel.db"))}
	h, err := run.New(st, ids(), 7).Begin(ctx, run.Start{Block: "b", Bounds: budget.Amounts{"beats": 20}})
	must(t, err)
	b := bookOn(st, h)
	p := open(t, b, budget.Grant{Tag: "beats", Amount: 5}, budget.Grant{Tag: "tokens", Amount: 100})
	child := session.Opening{Parent: p, FromParent: []budget.Grant{{Tag: "tokens", Amount: 10}, {Tag: "beats", Amount: 3}}}
	before, writes := everything(t, st), 0
	for st.at = 1; ; st.at++ {
		c, err := b.Open(ctx, child)
		if err == nil {
			writes = st.at
			tell(t, st, c.ID(), "session_opened, budget_granted tokens 10, budget_granted beats 3")
			break
		}
		want(t, err, kernel.Storage)
		if after := everything(t, st); after != before {
			t.Fatalf("a failure at write %d left\n%s\nbefore\n%s", st.at, after, before)
		}
	}
	if writes < 8 {
		t.Errorf("an allocation is only %d writes", writes)
	}
	st.at = 0
	tell(t, st, p.ID(), "session_opened, budget_granted beats 5, budget_granted tokens 100, budget_reserved beats 3, budget_reserved tokens 10")
	tell(t, st, h.Stream(), "run_queued, budget_granted beats 20 run, run_owned, run_session, run_session")
}

// Both sides lie side by side in the log.
func TestAnAllocationIsAdjacent(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	p := open(t, b, budget.Grant{Tag: "beats", Amount: 5})
	c, err := b.Open(ctx, session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 3, Desc: "a part"}}})
	must(t, err)
	_, err = b.Open(ctx, session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 9}}})
	want(t, err, kernel.Refused)
	if err == nil || !strings.Contains(err.Error(), "9 beats asked of the parent "+p.ID()+", which has 2 left") {
		t.Errorf("%v", err)
	}
	var all []event.Event
	for _, s := range []*session.Session{p, c} {
		page, _, err := s.Events(ctx, 1, true)
		must(t, err)
		all = append(all, page...)
	}
	reserved, refused, opened, granted := all[2], all[3], all[4], all[5]
	if opened.Position != reserved.Position+1 || granted.Position != reserved.Position+2 {
		t.Errorf("positions %d %d %d", reserved.Position, opened.Position, granted.Position)
	}
	for e, fact := range map[*event.Event]string{
		&reserved: `"child":"` + c.ID() + `"`, &opened: `"parent":"` + p.ID() + `"`, &granted: `"parent":"` + p.ID() + `"`, &refused: `"child":"`,
	} {
		if !strings.Contains(string(e.Data), fact) {
			t.Errorf("%s holds %s, and no %s", e.Kind, e.Data, fact)
		}
	}
	heads, err := b.Store().Streams(ctx, "", store.MaxPage)
	must(t, err)
	if len(heads) != 2 {
		t.Errorf("%d streams: a refused child has one", len(heads))
	}
	must(t, c.Close(ctx, "", ""))
	if left, _, _ := p.Remaining(ctx, "beats"); left != 2 {
		t.Errorf("%d left: a child's end gave back", left)
	}
	must(t, p.Close(ctx, "", ""))
	tell(t, b.Store(), p.ID(), "session_opened, budget_granted beats 5, budget_reserved beats 3, budget_refused beats 9 2, session_closed closed")
}

func TestOpeningsOfChildrenAreChecked(t *testing.T) {
	t.Parallel()
	b, other := newBook(t), newBook(t)
	p := open(t, b, budget.Grant{Tag: "beats", Amount: 5})
	one := []budget.Grant{{Amount: 1}}
	for name, c := range map[string]struct {
		o    session.Opening
		kind kernel.Kind
	}{
		"no from_parent":    {session.Opening{Parent: p}, kernel.Validation},
		"an amount too":     {session.Opening{Parent: p, FromParent: one, Budget: one}, kernel.Validation},
		"an amount instead": {session.Opening{Parent: p, Budget: one}, kernel.Validation},
		"no parent":         {session.Opening{FromParent: one}, kernel.Validation},
		"negative":          {session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: -1}}}, kernel.Validation},
		"one tag twice":     {session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 1}, {Tag: "beats", Amount: 1}}}, kernel.Validation},
		"reserved owner":    {session.Opening{Parent: p, FromParent: one, Owner: "anon"}, kernel.Validation},
	} {
		if _, err := b.Open(ctx, c.o); !strings.HasPrefix(fmt.Sprint(kernel.KindOf(err)), string(c.kind)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := other.Open(ctx, session.Opening{Parent: p, FromParent: one})
	want(t, err, kernel.Validation)
	again, err := b.Resume(ctx, p.ID(), session.Resuming{})
	must(t, err)
	must(t, p.Close(ctx, "", ""))
	_, err = b.Open(ctx, session.Opening{Parent: again, FromParent: one})
	want(t, err, kernel.Closed)
	tell(t, b.Store(), p.ID(), "session_opened, budget_granted beats 5, session_closed closed")
}

// However deep a tree is and however many of it work at once, no unit is used twice:
// the children's use is at most their parent's grant, and the pool pays it once.
func TestATreeSharesWhatItsRootHas(t *testing.T) {
	t.Parallel()
	st := newStore(t, filepath.Join(t.TempDir(), "kernel.db"))
	h, err := run.New(st, ids(), 7).Begin(ctx, run.Start{Block: "b", Bounds: budget.Amounts{"beats": 11}})
	must(t, err)
	b := bookOn(st, h)
	root := open(t, b, budget.Grant{Tag: "beats", Amount: 40})
	var (
		work    sync.WaitGroup
		mu      sync.Mutex
		used    int
		refused int
	)
	for range 16 {
		work.Go(func() {
			kid, err := b.Open(ctx, session.Opening{Parent: root, FromParent: []budget.Grant{{Amount: 3}}})
			if err != nil {
				want(t, err, kernel.Refused)
				mu.Lock()
				refused++
				mu.Unlock()
				return
			}
			grandkid, err := b.Open(ctx, session.Opening{Parent: kid, FromParent: []budget.Grant{{Amount: 2}}})
			if err != nil {
				t.Error(err)
				return
			}
			for _, s := range []*session.Session{kid, grandkid, kid, grandkid, grandkid} {
				r, err := s.Reserve(ctx, budget.Amounts{"beats": 1})
				if err != nil {
					t.Error(err)
				}
				if r.Granted {
					mu.Lock()
					used++
					mu.Unlock()
				}
			}
		})
	}
	work.Wait()
	left, _, _ := root.Remaining(ctx, "beats")
	if used != 11 || refused != 3 || left != 1 {
		t.Errorf("used %d of 11, %d children refused of 3, %d left of 1", used, refused, left)
	}
	for _, stream := range []string{root.ID(), h.Stream()} {
		checkBalance(t, st, stream)
	}
}
