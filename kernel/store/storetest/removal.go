package storetest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// removal: a stream goes whole, what it shared stays for the others, and what nobody
// refers to is freed, also while others write.
func removal(t *testing.T, sub Subject) {
	ctx := context.Background()
	s := sub.Open(t, Options{})
	long := func(what string) string { return strings.Repeat(what+" ", 200) }
	message := func(text string) map[string]any { return map[string]any{"role": "user", "content": text} }
	request := func(texts ...string) event.Draft {
		list := make([]any, len(texts))
		for i, text := range texts {
			list[i] = message(long(text))
		}
		return event.Draft{Kind: event.LLMRequest, Data: map[string]any{"request": map[string]any{"messages": list, "system": long("system")}}}
	}
	var kept, raw event.Hash
	write(t, s, func(tx store.Tx) (err error) {
		if kept, err = tx.PutContent([]byte("raw bytes of a kept result")); err != nil {
			return err
		}
		raw, err = tx.PutContent([]byte("raw bytes of a result that goes"))
		return err
	})
	fill := func(stream string, raw event.Hash, texts ...string) {
		write(t, s, func(tx store.Tx) error {
			for i := range texts {
				if _, err := tx.Append(stream, request(texts[:i+1]...)); err != nil {
					return err
				}
			}
			_, err := tx.Append(stream, event.Draft{Kind: "tool_result", Data: map[string]any{"result": long(texts[0]), "raw": "sha256:" + raw.String()}})
			return err
		})
	}
	fill("stays", kept, "shared", "own", "more")
	fill("goes", raw, "shared", "other", "yet another")
	before := all(t, s, "stays")
	freed, err := s.Collect(ctx)
	if err != nil || freed != 0 {
		t.Fatalf("freed %d %v while everything is referred to", freed, err)
	}
	gone := all(t, s, "goes")
	var head event.Head
	write(t, s, func(tx store.Tx) (err error) {
		if _, err := tx.Append(event.Audit, event.Draft{Kind: event.SessionRemoved, Data: map[string]any{"session": "goes"}}); err != nil {
			return err
		}
		head, err = tx.Remove("goes")
		return err
	})
	if head.Seq != int64(len(gone)) || head.Hash != gone[len(gone)-1].Hash {
		t.Errorf("the end was %+v", head)
	}
	if left := all(t, s, "goes"); len(left) != 0 {
		t.Errorf("%d events are left", len(left))
	}
	// Others write while it collects, and refer to what is about to go.
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20 {
			write(t, s, func(tx store.Tx) error { _, err := tx.Append("late", request("shared", "other")); return err })
		}
	})
	freed, err = s.Collect(ctx)
	wg.Wait()
	if err != nil || freed == 0 {
		t.Fatalf("freed %d %v", freed, err)
	}
	if _, err := s.Content(ctx, raw); kernel.KindOf(err) != kernel.NotFound {
		t.Errorf("the raw bytes of what went: %v", err)
	}
	if b, err := s.Content(ctx, kept); err != nil || string(b) != "raw bytes of a kept result" {
		t.Errorf("the raw bytes of what stays: %q %v", b, err)
	}
	after := all(t, s, "stays")
	if len(after) != len(before) {
		t.Fatalf("%d events, were %d", len(after), len(before))
	}
	for i := range after {
		if string(after[i].Data) != string(before[i].Data) || after[i].Hash != before[i].Hash {
			t.Errorf("event %d is another", i+1)
		}
	}
	for _, e := range all(t, s, "late") {
		if !strings.Contains(string(e.Data), "other other") {
			t.Errorf("what came late lost its messages: %.100s", e.Data)
		}
	}
	// The name may come again, and begins anew.
	fill("goes", kept, "shared", "other")
	if again := all(t, s, "goes"); len(again) != 3 || again[0].Seq != 1 {
		t.Errorf("%d events", len(again))
	}
	if freed, err := s.Collect(ctx); err != nil || freed != 0 {
		t.Errorf("freed %d more, %v", freed, err)
	}
}
