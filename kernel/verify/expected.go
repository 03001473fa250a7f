package verify

import (
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// expected gives every row that the events give, but for the leases.
func (m *model) expected() (map[store.Table]expected, error) {
	want := map[store.Table]expected{}
	for _, t := range store.Tables() {
		want[t] = expected{}
	}
	for stream, b := range m.balances {
		row, err := b.Row()
		if err != nil {
			return nil, err
		}
		want[store.Balances][stream] = row
	}
	for id, r := range m.runs {
		row, err := r.Encode(m.present[store.Runs][id])
		if err != nil {
			return nil, err
		}
		if row != nil {
			want[store.Runs][id] = row
		}
	}
	for id, sessions := range m.joined {
		for name, seq := range sessions {
			row, err := logjson.Marshal(map[string]any{"seq": seq})
			if err != nil {
				return nil, err
			}
			want[store.Joined][id+"/"+name] = row
		}
	}
	for _, id := range m.order {
		if err := m.session(want, id); err != nil {
			return nil, err
		}
	}
	return want, nil
}

// session gives the rows of one session.
func (m *model) session(want map[store.Table]expected, id string) error {
	s := m.sessions[id]
	row := map[string]any{"owner": s.owner, "scope_id": s.scope, "ended": s.ended}
	if s.parent != "" {
		row["parent"] = s.parent
	}
	run := m.runOf(id)
	if run != "" {
		row["run"] = run
	}
	b, err := logjson.Marshal(row)
	if err != nil {
		return err
	}
	want[store.Sessions][id] = b
	if s.ended {
		return nil
	}
	if s.parent != "" {
		want[store.Children][s.parent+"/"+id] = []byte("{}")
	}
	if run != "" {
		want[store.Open][run+"/"+id] = []byte("{}")
	}
	return nil
}

// runOf is the run that a session belongs to. Each run that takes a session up records it
// once, in its own store, so which one has it now is what the row says, as long as that
// run has recorded it, or keeps its record in another store; a session that was taken up
// outside a run belongs to none.
func (m *model) runOf(id string) string {
	present, err := logjson.Object(m.present[store.Sessions][id])
	run := str(present, "run")
	_, recorded := m.joined[run][id]
	_, here := m.runs[run]
	whole := err == nil && str(present, "scope_id") == m.sessions[id].scope // else it is no witness
	if whole && (run == "" || recorded || !here) {
		return run
	}
	last := ""
	for r, sessions := range m.joined {
		if _, ok := sessions[id]; ok && r > last { // ids of runs are in the order of their beginning
			last = r
		}
	}
	return last
}
