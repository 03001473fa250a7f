package ashlar

import (
	"context"
	"crypto/rand"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

// asked counts what is read of a store.
type asked struct {
	store.Store
	events, rows int
	scans        int // reads of more than one event
}

func (a *asked) Events(ctx context.Context, stream string, q store.Query) ([]event.Event, bool, error) {
	a.events++
	if q.Limit != 1 && q.Last != 1 || q.Limit == 1 && len(q.Kinds) > 0 {
		a.scans++
	}
	return a.Store.Events(ctx, stream, q)
}

func (a *asked) Rows(ctx context.Context, table store.Table, after string, limit int) ([]store.Row, error) {
	a.rows++
	return a.Store.Rows(ctx, table, after, limit)
}

// A listing reads the ends of a session, never what lies between, and of its run the
// row alone.
func TestAListingScansNoSession(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, t.TempDir()+"/kernel.db", sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ids := ident.New(ident.System{}, rand.Reader)
	h, err := run.New(db, ids, 1).Begin(ctx, run.Start{Block: "b", Project: "p"})
	if err != nil {
		t.Fatal(err)
	}
	book := session.NewBook(session.Options{Store: db, IDs: ids, Run: h})
	closed, err := book.Open(ctx, session.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := book.Resume(ctx, closed.ID(), session.Resuming{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := book.Open(ctx, session.Opening{}); err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(ctx, "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Append(ctx, event.Draft{Kind: event.MsgUser, Data: map[string]any{"content": "last words"}}); err != nil {
		t.Fatal(err)
	}
	a := &asked{Store: db}
	list, _, err := (&Log{store: a}).Sessions(ctx, "", 10, nil, "p")
	if err != nil || len(list) != 2 || list[0].Closed != "closed" || list[1].Closed != "" || list[0].Block != "b" {
		t.Fatalf("%+v, %v", list, err)
	}
	if a.events != 3 || a.scans != 0 || a.rows != 0 {
		t.Errorf("%d reads of events, %d of them scans, %d listings", a.events, a.scans, a.rows)
	}
}
