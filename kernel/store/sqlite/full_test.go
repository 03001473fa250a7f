package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

func TestAFullDiskWritesNothingAndMayHaveRoomAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := Open(ctx, filepath.Join(t.TempDir(), "kernel.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	put := func(text string) error {
		return s.Write(ctx, func(tx store.Tx) error {
			if _, err := tx.Append("a", event.Draft{Kind: "first"}); err != nil {
				return err
			}
			_, err := tx.Append("a", event.Draft{Kind: "second", Data: map[string]any{"text": text}})
			return err
		})
	}
	limit := func(pages int) {
		if _, err := s.conn.ExecContext(ctx, pragma("max_page_count", pages)); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("small"); err != nil {
		t.Fatal(err)
	}
	limit(1) // SQLite takes the present size when it is more
	if err := put(strings.Repeat("x", 1<<20)); !errors.Is(err, kernel.Storage) {
		t.Errorf("a full disk: %v", err)
	}
	if h, err := s.Head(ctx, "a"); err != nil || h.Seq != 2 {
		t.Errorf("head %+v, %v", h, err)
	}
	limit(1 << 30)
	if err := put(strings.Repeat("x", 1<<20)); err != nil {
		t.Errorf("room again: %v", err)
	}
	events, _, err := s.Events(ctx, "a", store.Query{})
	if err != nil || len(events) != 4 || len(events[3].Data) < 1<<20 {
		t.Errorf("%d events, %v", len(events), err)
	}
	prev := event.Origin("a")
	for _, e := range events {
		if want := event.Link(prev, &e, event.HashOf(e.Meta), event.HashOf(e.Data)); e.Hash != want {
			t.Error(fmt.Sprint("the chain breaks at ", e.Seq))
		}
		prev = e.Hash
	}
}
