package verify_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
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
	"ashlar/kernel/verify"
)

// fill writes a small log of every kind of row, and closes it.
func fill(t testing.TB, path string, sessions, beats int) {
	t.Helper()
	ctx := context.Background()
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	check(t, err)
	ids := ident.New(ident.System{}, rand.Reader)
	ledger := run.New(db, ids, 1)
	for i := range sessions {
		h, err := ledger.Begin(ctx, run.Start{Block: "b", Project: "p", Bounds: budget.Amounts{"beats": 1000}})
		check(t, err)
		book := session.NewBook(session.Options{Store: db, IDs: ids, Run: h})
		s, err := book.Open(ctx, session.Opening{Budget: []budget.Grant{{Tag: "beats", Amount: 1000}, {Tag: "tokens", Amount: 1 << 40}}})
		check(t, err)
		var list []any
		for b := range beats {
			text := strings.Repeat(fmt.Sprintf("session %d says %d; ", i, b), 20)
			list = append(list, map[string]any{"role": "user", "content": text})
			data := map[string]any{"request": map[string]any{"messages": append([]any{}, list...), "system": text[:300]}}
			_, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1, "tokens": 50},
				Append: []event.Draft{{Kind: event.LLMRequest, Meta: map[string]any{"beat": "b"}, Data: data}}})
			check(t, err)
			_, err = s.Commit(ctx, session.Batch{Append: []event.Draft{{Kind: event.LLMResponse, Data: map[string]any{"content": text}}},
				Settle: []session.Settlement{{Tag: "tokens", Reserved: 50, Used: int64(b)}}})
			check(t, err)
		}
		child, err := book.Open(ctx, session.Opening{Parent: s, FromParent: []budget.Grant{{Tag: "beats", Amount: 2}}})
		check(t, err)
		if i%2 == 0 {
			check(t, child.Close(ctx, "", ""))
			check(t, s.Close(ctx, "", ""))
			check(t, h.Settle(ctx, run.Outcome{State: run.Completed, Result: "done"}))
		} else {
			check(t, h.Wait(ctx, "approval"))
		}
	}
	check(t, db.Close())
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func streams(t testing.TB, s store.Store) (map[string]string, error) {
	t.Helper()
	ctx := context.Background()
	got := map[string]string{}
	heads, err := s.Streams(ctx, "", store.MaxPage)
	if err != nil {
		return nil, err
	}
	for _, h := range heads {
		events, _, err := s.Events(ctx, h.Stream, store.Query{Bodies: true})
		if err != nil {
			got[h.Stream] = "error: " + err.Error()
			if kind := kernel.KindOf(err); kind != kernel.Corruption && kind != kernel.Storage && kind != kernel.Unsupported {
				t.Errorf("%s: %v", h.Stream, err)
			}
			continue
		}
		var b strings.Builder
		for _, e := range events {
			fmt.Fprintln(&b, e.Seq, e.Kind, string(e.Meta), string(e.Data), e.Hash)
		}
		got[h.Stream] = b.String()
	}
	return got, nil
}

// Every projection that the kernel writes is the one that its events give.
func TestWhatTheKernelWritesVerifies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	fill(t, path, 4, 3)
	s, err := sqlite.OpenReader(context.Background(), path, sqlite.Options{})
	check(t, err)
	defer s.Close()
	r, err := verify.Check(context.Background(), s, nil)
	check(t, err)
	if !r.OK() || r.Streams != 12 || r.Messages != 12 {
		t.Errorf("%+v", r)
	}
}

// TestADamagedFileIsNamed overwrites a piece of a store at 240 random places. What was
// damaged is named by opening, reading or verifying; what is read without a word is
// what was written; nothing panics, and no file is deleted.
func TestADamagedFileIsNamed(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	path := filepath.Join(dir, "kernel.db")
	fill(t, path, 3, 3)
	whole, err := os.ReadFile(path)
	check(t, err)
	s, err := sqlite.OpenReader(ctx, path, sqlite.Options{})
	check(t, err)
	want, err := streams(t, s)
	check(t, err)
	check(t, s.Close())
	random := mathrand.New(mathrand.NewPCG(1, 2))
	refused, named, unharmed, others := 0, 0, 0, 0
	for i := range 240 {
		at, n := random.IntN(len(whole)), 1+random.IntN(32)
		if i%4 == 0 {
			at, n = at/8192*8192, 8192 // a page
		}
		bytes := append([]byte(nil), whole...)
		for k := at; k < min(at+n, len(bytes)); k++ {
			bytes[k] = byte(random.Uint32())
		}
		file := filepath.Join(dir, fmt.Sprintf("damaged-%d.db", i))
		check(t, os.WriteFile(file, bytes, 0o600))
		s, err := sqlite.OpenReader(ctx, file, sqlite.Options{})
		if err != nil {
			kind := kernel.KindOf(err)
			if kind != kernel.Corruption && kind != kernel.Unsupported && kind != kernel.Storage || !strings.Contains(err.Error(), file) {
				t.Errorf("%d at %d: %v", n, at, err)
			}
			refused++
		} else {
			got, err := streams(t, s)
			r, checked := verify.Check(ctx, s, nil)
			switch {
			case checked != nil && kernel.KindOf(checked) != kernel.Corruption && kernel.KindOf(checked) != kernel.Storage:
				t.Errorf("%d at %d: %v", n, at, checked)
			case checked != nil || !r.OK() || err != nil:
				named++
				for stream, text := range want {
					if got[stream] == text {
						others++
						break
					}
				}
			default:
				unharmed++
				for stream, text := range want {
					if got[stream] != text {
						t.Errorf("%d at %d: %s changed and nobody says so", n, at, stream)
					}
				}
			}
			check(t, s.Close())
		}
		if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
			t.Fatalf("%s is gone", file)
		}
		os.Remove(file)
	}
	t.Logf("refused %d, named %d (other sessions open in %d), unharmed %d", refused, named, others, unharmed)
	if named == 0 || others == 0 || refused == 0 {
		t.Errorf("refused %d, named %d, others open %d: the test damages nothing", refused, named, others)
	}
}

// BenchmarkVerify reports events a second, and its time against a plain read of all
// events in the same run.
func BenchmarkVerify(b *testing.B) {
	ctx := context.Background()
	path := filepath.Join(b.TempDir(), "kernel.db")
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	check(b, err)
	defer s.Close()
	const streamsN, each = 100, 500
	text := strings.Repeat("a line of some tool ", 15)
	for i := range streamsN {
		check(b, s.Write(ctx, func(tx store.Tx) error {
			for n := range each {
				d := event.Draft{Kind: "note", Meta: map[string]any{"beat": "b"}, Data: map[string]any{"n": int64(n), "text": text[:n%len(text)]}}
				if _, err := tx.Append(fmt.Sprint("s", i), d); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	var plain, checked int64
	b.ResetTimer()
	for b.Loop() {
		start := b.Elapsed()
		for i := range streamsN {
			_, _, err := s.Events(ctx, fmt.Sprint("s", i), store.Query{Bodies: true})
			check(b, err)
		}
		middle := b.Elapsed()
		r, err := verify.Check(ctx, s, nil)
		check(b, err)
		if !r.OK() || r.Events != streamsN*each {
			b.Fatalf("%+v", r)
		}
		plain += int64(middle - start)
		checked += int64(b.Elapsed() - middle)
	}
	b.ReportMetric(float64(streamsN*each*b.N)/(float64(checked)/1e9), "events/s")
	b.ReportMetric(float64(checked)/float64(plain), "verify/read")
}
