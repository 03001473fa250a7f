package run

import (
	"slices"
	"strings"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// Join records that a session of the run was opened or resumed. It costs the same
// however many have joined.
func (h *Handle) Join(tx store.Tx, session, url string) error {
	if _, err := h.mine("run.session", tx); err != nil {
		return err
	}
	key := h.id + "/" + session
	if _, known, err := tx.Row(store.Joined, key); err != nil || known {
		return err
	}
	e, err := tx.Append(h.Stream(), event.Draft{Kind: event.RunSession, Data: map[string]any{"session": session, "store": url}})
	if err != nil {
		return err
	}
	value, err := logjson.Marshal(map[string]any{"seq": e.Seq})
	if err != nil {
		return err
	}
	return tx.PutRow(store.Joined, key, value)
}

// joined lists the sessions of a run in the order in which they joined.
func joined(id string, rows func(table store.Table, after string, limit int) ([]store.Row, error)) ([]string, error) {
	type member struct {
		session string
		seq     int64
	}
	var all []member
	for after, prefix := id+"/", id+"/"; ; {
		page, err := rows(store.Joined, after, store.MaxPage)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			session, ours := strings.CutPrefix(r.Key, prefix)
			if !ours {
				page = nil // the next run's
				break
			}
			m, err := logjson.Object(r.Value)
			if err != nil {
				return nil, err
			}
			seq, _ := m["seq"].(int64)
			all = append(all, member{session, seq})
			after = r.Key
		}
		if len(page) < store.MaxPage {
			break
		}
	}
	slices.SortFunc(all, func(a, b member) int { return int(a.seq - b.seq) })
	sessions := make([]string, len(all))
	for i, m := range all {
		sessions[i] = m.session
	}
	return sessions, nil
}
