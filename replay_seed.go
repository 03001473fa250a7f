package ashlar

import (
	"context"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// begun is how many events of the run's own stream its beginning made.
func (rec *recording) begun() int {
	for i, e := range rec.streams[rec.row.Stream()] {
		if e.Kind == event.RunOwned {
			return i + 1
		}
	}
	return 0
}

// seed gives the scratch store what was there of the sessions that the run took up:
// their events as they were, to the hash, and what follows from them.
func (a *replaying) seed(ctx context.Context, g *gate) error {
	for id := range a.rec.before {
		events, err := eventsOf(ctx, a.from, id, true)
		if err != nil {
			return err
		}
		if err := seedSession(ctx, g, id, events[:min(len(events), len(a.rec.before[id]))]); err != nil {
			return err
		}
	}
	return nil
}

func seedSession(ctx context.Context, g *gate, id string, events []event.Event) error {
	var b budget.Balance
	b.Left, b.Held = budget.Amounts{}, budget.Amounts{}
	row := map[string]any{"ended": false}
	for _, e := range events {
		meta, err := logjson.Object(e.Meta)
		if err != nil {
			return err
		}
		data, err := logjson.Object(e.Data)
		if err != nil {
			return err
		}
		if e.Kind == event.SessionOpened {
			for _, key := range []string{"owner", "scope_id", "parent"} {
				if v, ok := data[key]; ok {
					row[key] = v
				}
			}
		}
		if err := b.Apply(e); err != nil {
			return err
		}
		g.now = e.Time()
		if err := g.Store.Write(ctx, func(tx store.Tx) error {
			_, err := tx.Append(id, event.Draft{Kind: e.Kind, Meta: meta, Data: data})
			return err
		}); err != nil {
			return err
		}
	}
	balance, err := b.Row()
	if err != nil {
		return err
	}
	session, err := logjson.Marshal(row)
	if err != nil {
		return err
	}
	return g.Store.Write(ctx, func(tx store.Tx) error {
		if len(b.Tags) > 0 {
			if err := tx.PutRow(store.Balances, id, balance); err != nil {
				return err
			}
		}
		return tx.PutRow(store.Sessions, id, session)
	})
}
