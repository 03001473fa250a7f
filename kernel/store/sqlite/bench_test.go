package sqlite_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
	"ashlar/kernel/store/sqlite"
)

func small(n int) event.Draft {
	return event.Draft{Kind: "k", Meta: map[string]any{"beat": "b1"}, Data: map[string]any{"n": int64(n), "text": "some words"}}
}

func appendTo(b *testing.B, s store.Store, stream string, n int) {
	err := s.Write(context.Background(), func(tx store.Tx) error { _, err := tx.Append(stream, small(n)); return err })
	if err != nil {
		b.Error(err)
	}
}

// One session alone: an fsync for each event.
func BenchmarkAppend1Session(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "kernel.db"), sqlite.Options{})
	n := 0
	for b.Loop() {
		n++
		appendTo(b, s, "a", n)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}

// 64 sessions at once share their commits: the baseline is measured in the same
// run, in the same folder.
func BenchmarkAppend64Sessions(b *testing.B) {
	const sessions = 64
	s := open(b, filepath.Join(b.TempDir(), "kernel.db"), sqlite.Options{})
	const alone = 200
	began := time.Now()
	for i := range alone {
		appendTo(b, s, "alone", i)
	}
	baseline := float64(alone) / time.Since(began).Seconds()

	before := s.Commits()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for w := range sessions {
		wg.Go(func() {
			for i := 0; left.Add(-1) >= 0; i++ {
				appendTo(b, s, fmt.Sprint("s", w), i)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	rate := float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "events/s")
	b.ReportMetric(rate/baseline, "times-alone")
	b.ReportMetric(float64(b.N)/float64(s.Commits()-before), "events/commit")
}

// beats writes what a run of n beats writes, each with a tool result of its own of
// about 2 KB, under a budget, a bound of the run and the journal.
func beats(t testing.TB, s store.Store, n int) {
	ctx := context.Background()
	random := func(n int) string {
		raw := make([]byte, n/2)
		rand.Read(raw) //nolint:errcheck // it never fails
		return hex.EncodeToString(raw)
	}
	const session = "0c8e1f6a-6f0e-4b5e-9d0e-3d1f0a9b7c11"
	stream := "run:0198e1f6-6f0e-7b5e-9d0e-3d1f0a9b7c22"
	tools := random(3000)
	messages := []any{map[string]any{"role": "user", "content": "do it"}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		beat := map[string]any{"beat": random(32)}
		call, output := random(24), random(2048)
		ledger := func(stream, kind string, amount int64) func(store.Tx) error {
			return func(tx store.Tx) error {
				_, err := tx.Append(stream, event.Draft{Kind: kind, Data: map[string]any{"scope_id": session, "tag": "beats", "amount": amount}})
				return err
			}
		}
		appending := func(stream string, d event.Draft) func(store.Tx) error {
			p, err := s.Prepare(d)
			must(err)
			return func(tx store.Tx) error { _, err := tx.Append(stream, p); return err }
		}
		write := func(steps ...func(store.Tx) error) {
			t.Helper()
			must(s.Write(ctx, func(tx store.Tx) error {
				for _, step := range steps {
					if err := step(tx); err != nil {
						return err
					}
				}
				return tx.PutRow(store.Balances, session, fmt.Appendf(nil, `{"left":%d}`, i))
			}))
		}
		use := map[string]any{"type": "tool_use", "id": call, "name": "read", "input": map[string]any{"path": "a/b.go"}}
		write(ledger(session, event.BudgetReserved, 1), ledger(stream, event.BudgetReserved, 1),
			appending(session, event.Draft{Kind: event.LLMRequest, Meta: beat, Data: map[string]any{
				"request": map[string]any{"messages": append([]any(nil), messages...), "model": "m", "tools": tools}}}))
		s.Later(appending(stream, event.Draft{Kind: event.Syscall, Data: map[string]any{"n": int64(2 * i), "task": int64(0), "name": "llm.send",
			"args_hash": random(64), "result": []any{map[string]any{"content": []any{use}, "stop_reason": "tool_use"}}}}))
		write(appending(session, event.Draft{Kind: event.LLMResponse, Meta: beat, Data: map[string]any{"content": []any{use},
			"stop_reason": "tool_use", "usage": map[string]any{"input_tokens": int64(i), "output_tokens": int64(30)}}}),
			ledger(session, event.BudgetSettled, 1), ledger(stream, event.BudgetSettled, 1))
		write(appending(session, event.Draft{Kind: event.ToolCall, Meta: beat, Data: map[string]any{"call_id": call, "name": "read", "args": use["input"]}}))
		s.Later(appending(stream, event.Draft{Kind: event.Syscall, Data: map[string]any{"n": int64(2*i + 1), "task": int64(0), "name": "std.fs.read",
			"args": []any{"a/b.go"}, "result": []any{output}}}))
		write(appending(session, event.Draft{Kind: event.ToolResult, Meta: beat, Data: map[string]any{"call_id": call, "ok": true, "result": output}}))
		messages = append(messages,
			map[string]any{"role": "assistant", "content": []any{use}},
			map[string]any{"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": call, "content": output}}})
	}
}

func sizeOf(t testing.TB, path string) (n int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			n += info.Size()
		}
	}
	return n
}

// newIn gives the bytes of log JSON that are new in the events of all streams: each
// long string and each message of a request counts once.
func newIn(t testing.TB, s store.Store) (unique int) {
	t.Helper()
	ctx := context.Background()
	seen := map[event.Hash]bool{}
	count := func(b []byte) {
		at := 0
		for _, l := range encode.Cut(b) {
			unique += l.Start - at
			at = l.End
			if !seen[l.Hash] {
				seen[l.Hash] = true
				unique += l.End - l.Start
			}
		}
		unique += len(b) - at
	}
	heads, err := s.Streams(ctx, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heads {
		for from, more := int64(1), true; more; {
			var page []event.Event
			if page, more, err = s.Events(ctx, h.Stream, store.Query{From: from, Limit: 100, Bodies: true}); err != nil {
				t.Fatal(err)
			}
			for _, e := range page {
				from = e.Seq + 1
				unique += len(e.Meta)
				if e.Kind != event.LLMRequest {
					count(e.Data)
					continue
				}
				data, _ := logjson.Object(e.Data)
				request := data["request"].(map[string]any)
				for _, m := range request["messages"].([]any) {
					b, _ := logjson.Marshal(m)
					if h := event.HashOf(b); !seen[h] {
						seen[h] = true
						count(b)
					}
				}
				delete(request, "messages")
				b, _ := logjson.Marshal(data)
				if h := event.HashOf(b); !seen[h] {
					seen[h] = true
					count(b)
				}
			}
		}
	}
	return unique
}

// The log of a session grows with what is new in it, however long its requests
// are: at most two bytes for each.
func TestALogIsAtMostTwiceItsUniqueContent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	s := open(t, path, sqlite.Options{})
	beats(t, s, 200)
	unique := newIn(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	size := sizeOf(t, path)
	t.Logf("%d bytes for %d of unique content: %.2f times; %d a beat", size, unique, float64(size)/float64(unique), size/200)
	if size > int64(2*unique) {
		t.Errorf("%d bytes for %d of unique content", size, unique)
	}
}

// What 200 beats cost, and how large their log is.
func BenchmarkSessionOf200Beats(b *testing.B) {
	for b.Loop() {
		path := filepath.Join(b.TempDir(), "kernel.db")
		s := open(b, path, sqlite.Options{})
		beats(b, s, 200)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sizeOf(b, path))/200, "bytes/beat")
	}
}
