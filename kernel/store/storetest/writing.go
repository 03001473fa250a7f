package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

func seqTimeAndHash(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{Now: clock()})
	for i := range 3 {
		e := appendOne(t, s, "a", "msg_user", map[string]any{"content": "x"})
		if e.Seq != int64(i+1) || e.EpochMS <= 1_757_300_000_000 || e.Position == 0 || e.Hash == (event.Hash{}) || e.SchemaVersion != 2 {
			t.Errorf("append %d gave %+v", i, e)
		}
		if string(e.Meta) != "{}" || string(e.Data) != `{"content":"x"}` {
			t.Errorf("append %d kept %s %s", i, e.Meta, e.Data)
		}
	}
	if got := all(t, s, "a"); len(got) != 3 || got[2].EpochMS <= got[0].EpochMS {
		t.Errorf("read %+v", got)
	}
	for _, d := range []event.Draft{{}, {Kind: "k", Meta: map[string]any{"a": nil}}, {Kind: "k", Data: map[string]any{"a": 1}}} {
		if err := s.Write(context.Background(), func(tx store.Tx) error { _, err := tx.Append("a", d); return err }); !errors.Is(err, kernel.Validation) {
			t.Errorf("%+v: %v", d, err)
		}
	}
	if err := s.Write(context.Background(), func(tx store.Tx) error { _, err := tx.Append("", event.Draft{Kind: "k"}); return err }); !errors.Is(err, kernel.Validation) {
		t.Errorf("a stream without a name: %v", err)
	}
	verifyChain(t, s, "a")
}

func chainHolds(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	for i := range 30 {
		appendOne(t, s, fmt.Sprint("s", i%3), "k", map[string]any{"n": int64(i), "text": text(i*40, "x")})
	}
	for i := range 3 {
		verifyChain(t, s, fmt.Sprint("s", i))
	}
	verifyChain(t, s, "nobody")
}

var errMine = errors.New("mine")

func failedWriteLeavesNothing(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	appendOne(t, s, "a", "k", nil)
	// Alone, and between others in one commit.
	for round := range 2 {
		errs := together(s, 4, func(i int, tx store.Tx) error {
			if _, err := tx.Append("a", event.Draft{Kind: "k", Data: map[string]any{"text": text(500, fmt.Sprint(round, i))}}); err != nil {
				return err
			}
			if err := tx.PutRow(store.Balances, fmt.Sprint(round, "/", i), []byte(`1`)); err != nil {
				return err
			}
			if i%2 == 1 {
				return errMine
			}
			return nil
		})
		for i, err := range errs {
			if (i%2 == 1) != errors.Is(err, errMine) {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if err := s.Write(context.Background(), func(tx store.Tx) error {
			tx.Append("a", event.Draft{Kind: "lost"}) //nolint:errcheck
			return errMine
		}); !errors.Is(err, errMine) {
			t.Errorf("alone: %v", err)
		}
	}
	if n := len(all(t, s, "a")); n != 5 {
		t.Errorf("%d events, want 5", n)
	}
	rows, err := s.Rows(context.Background(), store.Balances, "", 0)
	if err != nil || len(rows) != 4 {
		t.Errorf("rows %v, %v", rows, err)
	}
	verifyChain(t, s, "a")
}

func ignoredFailureIsUndone(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	// A refused draft writes nothing and may be ignored: the rest stands.
	write(t, s, func(tx store.Tx) error {
		tx.Append("a", event.Draft{}) //nolint:errcheck
		_, err := tx.Append("a", event.Draft{Kind: "k"})
		return err
	})
	verifyChain(t, s, "a")
}

func panicFailsAlone(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	errs := together(s, 3, func(i int, tx store.Tx) error {
		if _, err := tx.Append("a", event.Draft{Kind: "k"}); err != nil {
			return err
		}
		if i == 1 {
			panic("boom")
		}
		return nil
	})
	if !errors.Is(errs[1], kernel.Internal) || errs[0] != nil || errs[2] != nil {
		t.Errorf("%v", errs)
	}
	if n := len(all(t, s, "a")); n != 2 {
		t.Errorf("%d events", n)
	}
	verifyChain(t, s, "a")
}

// together makes n Writes that are queued while another one runs, so that they
// share a commit.
func together(s store.Store, n int, fn func(i int, tx store.Tx) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	release, begun := make(chan struct{}), make(chan struct{})
	wg.Go(func() {
		s.Write(context.Background(), func(store.Tx) error { close(begun); <-release; return nil }) //nolint:errcheck
	})
	<-begun
	for i := range n {
		wg.Go(func() {
			errs[i] = s.Write(context.Background(), func(tx store.Tx) error { return fn(i, tx) })
		})
	}
	time.Sleep(20 * time.Millisecond) // for the queue to fill; the outcome does not depend on it
	close(release)
	wg.Wait()
	return errs
}

func concurrentWriters(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	const writers, each = 16, 20
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				err := s.Write(context.Background(), func(tx store.Tx) error {
					if _, err := tx.Append("shared", event.Draft{Kind: "k"}); err != nil {
						return err
					}
					_, err := tx.Append(fmt.Sprint("own", w), event.Draft{Kind: "k", Data: map[string]any{"n": int64(i)}})
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(all(t, s, "shared")); n != writers*each {
		t.Errorf("%d shared events", n)
	}
	verifyChain(t, s, "shared")
	for w := range writers {
		verifyChain(t, s, fmt.Sprint("own", w))
	}
}

func kinds(events []event.Event) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.Kind + " ")
	}
	return strings.TrimSpace(b.String())
}

func later(s store.Store, stream, kind string) {
	s.Later(func(tx store.Tx) error { _, err := tx.Append(stream, event.Draft{Kind: kind}); return err })
}

func laterRidesBefore(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	later(s, "a", "l1")
	later(s, "a", "l2")
	if n := len(all(t, s, "a")); n != 0 {
		t.Errorf("a Later was committed by itself: %d", n)
	}
	appendOne(t, s, "a", "w1", nil)
	later(s, "a", "l3")
	appendOne(t, s, "a", "w2", nil)
	if got := kinds(all(t, s, "a")); got != "l1 l2 w1 l3 w2" {
		t.Errorf("order: %s", got)
	}
}

func laterFlushed(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	ctx := context.Background()
	later(s, "a", "k")
	if err := s.Flush(ctx); err != nil || len(all(t, s, "a")) != 1 {
		t.Errorf("flush: %v", err)
	}
	s.Later(func(store.Tx) error { return errMine })
	appendOne(t, s, "a", "w", nil)
	if err := s.Flush(ctx); !errors.Is(err, errMine) {
		t.Errorf("the failure of a Later was not reported: %v", err)
	}
	if err := s.Flush(ctx); err != nil {
		t.Errorf("it was reported twice: %v", err)
	}
	for range store.LaterLimit {
		later(s, "b", "k")
	}
	deadline := time.Now().Add(10 * time.Second)
	for len(all(t, s, "b")) < store.LaterLimit && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := len(all(t, s, "b")); n != store.LaterLimit {
		t.Errorf("%d of %d Laters were committed at the limit", n, store.LaterLimit)
	}
	if err := s.Close(); !errors.Is(err, errMine) {
		t.Errorf("close did not report it: %v", err)
	}
}

func closeCommits(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	appendOne(t, s, "a", "w", nil)
	later(s, "a", "l")
	var again store.Store
	if sub.Reopen != nil {
		again = sub.Reopen(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if again != nil {
		if got := kinds(all(t, again, "a")); got != "w l" {
			t.Errorf("after close: %s", got)
		}
	}
	if err := s.Write(context.Background(), func(store.Tx) error { return nil }); !errors.Is(err, kernel.Closed) {
		t.Errorf("a write after close: %v", err)
	}
	if _, err := s.Head(context.Background(), "a"); !errors.Is(err, kernel.Closed) {
		t.Errorf("a read after close: %v", err)
	}
	later(s, "a", "l")
}

func cancelledWrite(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	begun, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		// Begun: it is carried through although its context ends.
		if err := s.Write(ctx, func(tx store.Tx) error {
			close(begun)
			<-release
			_, err := tx.Append("a", event.Draft{Kind: "begun"})
			return err
		}); err != nil {
			t.Errorf("begun: %v", err)
		}
	})
	<-begun
	got := make(chan error)
	go func() {
		got <- s.Write(ctx, func(tx store.Tx) error { _, err := tx.Append("a", event.Draft{Kind: "queued"}); return err })
	}()
	time.Sleep(5 * time.Millisecond)
	cancel()
	if err := <-got; !errors.Is(err, kernel.Cancelled) {
		t.Errorf("queued: %v", err)
	}
	close(release)
	wg.Wait()
	if err := s.Write(ctx, func(store.Tx) error { return nil }); !errors.Is(err, kernel.Cancelled) {
		t.Errorf("late: %v", err)
	}
	if got := kinds(all(t, s, "a")); got != "begun" {
		t.Errorf("written: %s", got)
	}
}

func projections(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	ctx := context.Background()
	write(t, s, func(tx store.Tx) error {
		for _, k := range []string{"b", "a", "c"} {
			if err := tx.PutRow(store.Runs, k, []byte(`{"k":"`+k+`"}`)); err != nil {
				return err
			}
		}
		if err := tx.PutRow(store.Leases, "a", []byte(`0`)); err != nil {
			return err
		}
		return tx.PutRow(store.Runs, "a", []byte(`2`))
	})
	rows, err := s.Rows(ctx, store.Runs, "a", 1)
	if err != nil || len(rows) != 1 || rows[0].Key != "b" {
		t.Errorf("after a: %v, %v", rows, err)
	}
	if v, ok, err := s.Row(ctx, store.Runs, "a"); err != nil || !ok || string(v) != "2" {
		t.Errorf("row a: %s %v %v", v, ok, err)
	}
	write(t, s, func(tx store.Tx) error { return tx.DeleteRow(store.Runs, "a") })
	if _, ok, err := s.Row(ctx, store.Runs, "a"); ok || err != nil {
		t.Errorf("a deleted row is there: %v", err)
	}
	if v, ok, err := s.Row(ctx, store.Leases, "a"); err != nil || !ok || string(v) != "0" {
		t.Errorf("tables are not apart: %s %v %v", v, ok, err)
	}
}

func content(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	ctx := context.Background()
	for _, body := range []string{"", "\x00\xff binary", text(100_000, "c")} {
		var h event.Hash
		for range 2 {
			write(t, s, func(tx store.Tx) (err error) { h, err = tx.PutContent([]byte(body)); return err })
		}
		if h != event.HashOf([]byte(body)) {
			t.Errorf("hash %s of %.20q", h, body)
		}
		if got, err := s.Content(ctx, h); err != nil || string(got) != body {
			t.Errorf("%.20q came back as %.20q, %v", body, got, err)
		}
	}
	if _, err := s.Content(ctx, event.Hash{1}); !errors.Is(err, kernel.NotFound) {
		t.Errorf("unknown content: %v", err)
	}
}

func ownWrites(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	write(t, s, func(tx store.Tx) error {
		if _, err := tx.Append("a", event.Draft{Kind: "k", Data: map[string]any{"text": text(1000, "x")}}); err != nil {
			return err
		}
		head, err := tx.Head("a")
		if err != nil || head.Seq != 1 {
			t.Errorf("head %+v, %v", head, err)
		}
		e, ok, err := tx.Last("a", "k")
		if err != nil || !ok || e.Hash != head.Hash || len(e.Data) < 1000 || e.EpochMS != tx.NowMS() {
			t.Errorf("last %+v %v %v", e, ok, err)
		}
		if _, ok, err := tx.Last("a", "other"); ok || err != nil {
			t.Errorf("last of nothing: %v %v", ok, err)
		}
		if err := tx.PutRow(store.Runs, "r", []byte(`1`)); err != nil {
			return err
		}
		if v, ok, err := tx.Row(store.Runs, "r"); !ok || err != nil || string(v) != "1" {
			t.Errorf("row %s %v %v", v, ok, err)
		}
		if rows, err := tx.Rows(store.Runs, "", 0); err != nil || len(rows) != 1 {
			t.Errorf("rows %v %v", rows, err)
		}
		return nil
	})
}

func txEnds(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	var kept store.Tx
	write(t, s, func(tx store.Tx) error { kept = tx; return nil })
	if _, err := kept.Append("a", event.Draft{Kind: "k"}); !errors.Is(err, kernel.Closed) {
		t.Errorf("a transaction was used after its end: %v", err)
	}
}
