package knl

import (
	"context"
	"crypto/rand"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/vm"
)

// reader tells whether bodies were read.
type reader struct {
	store.Store
	bodies bool
}

func (r *reader) Events(ctx context.Context, stream string, q store.Query) ([]event.Event, bool, error) {
	r.bodies = r.bodies || q.Bodies
	return r.Store.Events(ctx, stream, q)
}

func TestMessagesNeedNoBodies(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), t.TempDir()+"/kernel.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := &reader{Store: db}
	b := session.NewBook(session.Options{Store: r, IDs: ident.New(ident.System{}, rand.Reader)})
	s, err := b.Open(t.Context(), session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Append(t.Context(), event.Draft{Kind: event.MsgUser, Data: map[string]any{"content": "hi"}},
		event.Draft{Kind: event.LLMRequest, Data: map[string]any{"request": map[string]any{}}})
	if err != nil {
		t.Fatal(err)
	}
	for as, n := range map[string]int{"messages": 1, "events": 3} {
		r.bodies = false
		out, err := export(t.Context(), &vm.Call{}, s, as)
		if err != nil {
			t.Fatal(err)
		}
		if list := out[0].([]any); len(list) != n || r.bodies != (as == "events") {
			t.Errorf("%s: %v, bodies %v", as, list, r.bodies)
		}
	}
}
