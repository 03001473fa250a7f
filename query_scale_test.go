package ashlar_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sort"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
)

// The sizes of a log between which reading one session must not get dearer, and how much
// it may.
const (
	fewEvents  = 10_000
	manyEvents = 1_000_000
)

// BenchmarkReadsAtScale reads a session of 200 beats in a log of 10^4 events, then in
// the same log when it has 10^6, and reports for each kind of read the second time as
// a ratio to the first: at most 1.5. The view sessions lists the whole log, and is asked
// for a page of it.
func BenchmarkReadsAtScale(b *testing.B) {
	r := newRig(b)
	id := r.scaleSession(200)
	var first, second map[string]float64
	for b.Loop() {
		r.others(fewEvents)
		first = r.reads(id)
		r.others(manyEvents)
		second = r.reads(id)
	}
	for name, ms := range first {
		b.ReportMetric(second[name]/ms, name+"_ratio")
		b.ReportMetric(second[name], name+"_ms")
	}
}

// scaleSession writes a session that stays open, of n beats with a tool call each.
func (r *rig) scaleSession(n int) string {
	r.t.Helper()
	s := r.opened()
	ctx := context.Background()
	for i := range n {
		beat := map[string]any{"beat": fmt.Sprint("b", i)}
		_, err := s.Append(ctx,
			event.Draft{Kind: event.LLMRequest, Meta: beat, Data: map[string]any{"request": map[string]any{"messages": []any{map[string]any{"content": fmt.Sprint(i)}}}}},
			event.Draft{Kind: event.LLMResponse, Meta: beat, Data: map[string]any{"content": []any{}, "usage": map[string]any{"input_tokens": int64(i)}}},
			event.Draft{Kind: event.ToolCall, Meta: beat, Data: map[string]any{"call_id": "c", "name": "n", "args": map[string]any{}}},
			event.Draft{Kind: event.ToolResult, Meta: beat, Data: map[string]any{"call_id": "c", "ok": true, "result": "r"}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return s.ID()
}

func (r *rig) book() *session.Book {
	s, err := r.ws.Store(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	return session.NewBook(session.Options{Store: s, IDs: ident.New(ident.System{}, rand.Reader), PID: 1})
}

func (r *rig) opened() *session.Session {
	s, err := r.book().Open(context.Background(), session.Opening{})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// others fills the log up to a number of events, in sessions of 500.
func (r *rig) others(upTo int64) {
	ctx := context.Background()
	s, err := r.ws.Store(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	for have := int64(0); have < upTo; {
		name := r.opened().ID()
		err := s.Write(ctx, func(tx store.Tx) error {
			for i := range 500 {
				kind := []string{event.LLMResponse, event.ToolCall, event.ToolResult, "note"}[i%4]
				e, err := tx.Append(name, event.Draft{Kind: kind, Meta: map[string]any{"beat": "b"}, Data: map[string]any{"call_id": "c", "n": int64(i)}})
				if err != nil {
					return err
				}
				have = e.Position
			}
			return nil
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// reads gives the milliseconds of each kind of read, the median of several.
func (r *rig) reads(id string) map[string]float64 {
	ctx := context.Background()
	s, err := r.ws.Store(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	took := map[string]float64{
		"events": middle(func() error { _, _, err := s.Events(ctx, id, store.Query{From: 400, Bodies: true}); return err }),
		"resume": middle(func() error { _, err := r.book().Resume(ctx, id, session.Resuming{}); return err }),
	}
	for _, name := range []string{"usage", "ledger", "beats", "tool_pairs", "tree", "sessions"} {
		limit := 1000
		if name == "sessions" {
			limit = 20 // what there is in the small log
		}
		res := r.ok(fmt.Sprintf(`
			local s, took = knl.open(), {}
			for i = 1, 9 do
				local start = std.time.now()
				knl.views.%s(s, { sessions = { %q }, limit = %d })
				took[i] = (std.time.now() - start) * 1000
			end
			table.sort(took)
			return { ms = took[5] + 0.001 }`, name, id, limit))
		ms, _ := res.Value.(map[string]any)["ms"].(float64)
		took[name] = ms
	}
	return took
}

func middle(f func() error) float64 {
	var took []float64
	for range 15 {
		start := time.Now()
		if err := f(); err != nil {
			panic(err)
		}
		took = append(took, float64(time.Since(start).Microseconds())/1000)
	}
	sort.Float64s(took)
	return took[len(took)/2]
}
