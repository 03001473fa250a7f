package ashlar_test

import (
	"context"
	"crypto/rand"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
)

// crashed leaves a session as a process that died inside a beat does: cut says how
// many of the beat's events after the reply's were written. Nothing closes it.
func crashed(t testing.TB, st store.Store, cut int) (id string) {
	t.Helper()
	ctx := context.Background()
	s, err := session.NewBook(session.Options{Store: st, IDs: ident.New(ident.System{}, rand.Reader), PID: 1}).Open(ctx, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	use := func(id string) any {
		return map[string]any{"type": "tool_use", "id": id, "name": "t", "input": map[string]any{}}
	}
	meta := map[string]any{"beat": "b1"}
	drafts := []event.Draft{
		// An earlier beat, complete, whose server gave the same ids.
		{Kind: event.LLMResponse, Meta: map[string]any{"beat": "b0"}, Data: map[string]any{"content": []any{use("a"), use("b")},
			"usage": map[string]any{"input_tokens": int64(1), "output_tokens": int64(1)}}},
		{Kind: event.ToolCall, Meta: map[string]any{"beat": "b0"}, Data: map[string]any{"call_id": "a", "name": "t", "args": map[string]any{}}},
		{Kind: event.ToolResult, Meta: map[string]any{"beat": "b0"}, Data: map[string]any{"call_id": "a", "ok": true, "result": "r"}},
		{Kind: event.ToolCall, Meta: map[string]any{"beat": "b0"}, Data: map[string]any{"call_id": "b", "name": "t", "args": map[string]any{}}},
		{Kind: event.ToolResult, Meta: map[string]any{"beat": "b0"}, Data: map[string]any{"call_id": "b", "ok": true, "result": "r"}},
		{Kind: event.MsgUser, Data: map[string]any{"content": "go"}},
		{Kind: event.LLMRequest, Meta: meta, Data: map[string]any{"request": map[string]any{"messages": []any{}}}},
		{Kind: event.LLMResponse, Meta: meta, Data: map[string]any{"content": []any{use("a"), use("b")},
			"usage": map[string]any{"input_tokens": int64(1), "output_tokens": int64(1)}}},
		{Kind: event.ToolCall, Meta: meta, Data: map[string]any{"call_id": "a", "name": "t", "args": map[string]any{}}},
		{Kind: event.ToolResult, Meta: meta, Data: map[string]any{"call_id": "a", "ok": true, "result": "r"}},
	}
	if _, err := s.Append(ctx, drafts[:7+cut]...); err != nil {
		t.Fatal(err)
	}
	return s.ID()
}
