package session_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
)

// One beat late in a long session: a request of 400 messages with 2 KB each, its
// response with the settlement, both under a bound of the run.
func BenchmarkBeatOf400Messages(b *testing.B) {
	st := newStore(b, filepath.Join(b.TempDir(), "kernel.db"))
	h, err := run.New(st, ids(), 7).Begin(ctx, run.Start{Bounds: budget.Amounts{"beats": 1 << 40, "tokens": 1 << 40}})
	must(b, err)
	s := open(b, bookOn(st, h), budget.Grant{Tag: "beats", Amount: 1 << 40})
	var messages []any
	grow := func() {
		messages = append(messages, map[string]any{"role": "user", "content": fmt.Sprint(len(messages), strings.Repeat(" some words", 186))})
	}
	for range 400 {
		grow()
	}
	for b.Loop() {
		messages = messages[1:]
		grow() // the list is another one: nothing of it is known, which is the worst case
		r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1, "tokens": 1000},
			Append: []event.Draft{{Kind: event.LLMRequest, Data: map[string]any{"request": map[string]any{"messages": append([]any(nil), messages...)}}}}})
		if err != nil || !r.Granted {
			b.Fatal(r, err)
		}
		_, err = s.Commit(ctx, session.Batch{Append: []event.Draft{{Kind: event.LLMResponse}},
			Settle: []session.Settlement{{Tag: "tokens", Reserved: 1000, Used: 10}}})
		must(b, err)
	}
}
