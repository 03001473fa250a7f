package verify

import (
	"bytes"
	"slices"
	"strings"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/run"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// model is every projection as the events give it, and as it is.
type model struct {
	balances map[string]*budget.Balance
	sessions map[string]*session
	order    []string // of sessions, as they were opened
	runs     map[string]*run.Rebuilt
	joined   map[string]map[string]int64 // run, session: the seq of its run_session
	present  map[store.Table]map[string][]byte
}

type session struct {
	owner, scope, parent string
	ended                bool
}

const runPrefix = "run:"

func newModel() *model {
	m := &model{
		balances: map[string]*budget.Balance{}, sessions: map[string]*session{}, runs: map[string]*run.Rebuilt{},
		joined: map[string]map[string]int64{}, present: map[store.Table]map[string][]byte{},
	}
	for _, t := range store.Tables() {
		m.present[t] = map[string][]byte{}
	}
	return m
}

func (m *model) row(t store.Table, r store.Row) {
	if rows := m.present[t]; rows != nil {
		rows[r.Key] = r.Value
	}
}

// event folds one event. An error of kind corruption is of the event.
func (m *model) event(e event.Event) error {
	switch {
	case event.Ledger(e.Kind):
		if e.Kind == event.BudgetRefused {
			return nil // nothing moves
		}
		b := m.balances[e.Stream]
		if b == nil {
			b = &budget.Balance{Left: budget.Amounts{}, Held: budget.Amounts{}}
			m.balances[e.Stream] = b
		}
		return b.Apply(e)
	case e.Kind == event.SessionOpened:
		data, err := logjson.Object(e.Data)
		if err != nil {
			return kernel.Errorf("verify", kernel.Corruption, "the opening does not decode: %w", err)
		}
		s := &session{owner: str(data, "owner"), scope: str(data, "scope_id"), parent: str(data, "parent")}
		if m.sessions[e.Stream] != nil || e.Seq != 1 {
			return kernel.Errorf("verify", kernel.Corruption, "a session is opened once, by its first event")
		}
		m.sessions[e.Stream], m.order = s, append(m.order, e.Stream)
	case e.Kind == event.SessionClosed:
		if s := m.sessions[e.Stream]; s != nil {
			s.ended = true
		}
	case strings.HasPrefix(e.Stream, runPrefix):
		return m.ofRun(e)
	}
	return nil
}

func (m *model) ofRun(e event.Event) error {
	if !strings.HasPrefix(e.Kind, "run_") {
		return nil
	}
	id := strings.TrimPrefix(e.Stream, runPrefix)
	r := m.runs[id]
	if r == nil {
		r = &run.Rebuilt{}
		m.runs[id] = r
	}
	if e.Kind == event.RunSession {
		data, err := logjson.Object(e.Data)
		if err != nil {
			return kernel.Errorf("verify", kernel.Corruption, "a session of the run does not decode: %w", err)
		}
		if m.joined[id] == nil {
			m.joined[id] = map[string]int64{}
		}
		m.joined[id][str(data, "session")] = e.Seq
		return nil
	}
	return r.Apply(id, e)
}

func str(m map[string]any, key string) string { s, _ := m[key].(string); return s }

// expected is what a table should hold, by key.
type expected map[string][]byte

// compare tells of every row that differs, and gives what would put it right. Rows of
// streams that are broken themselves are passed over: the fault is told already.
func (m *model) compare(found func(t store.Table, key, what string), broken map[string]bool) ([]Fix, error) {
	want, err := m.expected()
	if err != nil {
		return nil, err
	}
	var fixes []Fix
	for _, t := range store.Tables() {
		if t == store.Leases {
			m.leases(func(key, what string) {
				found(t, key, what)
				fixes = append(fixes, Fix{Table: t, Key: key, was: m.present[t][key]})
			})
			continue
		}
		keys := make([]string, 0, len(want[t]))
		for key := range want[t] {
			keys = append(keys, key)
		}
		for key := range m.present[t] {
			if _, both := want[t][key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			value, should := want[t][key]
			is, there := m.present[t][key]
			if should == there && bytes.Equal(value, is) || brokenKey(broken, key) {
				continue
			}
			what := "it is " + clip(is) + ", and the events give " + clip(value)
			switch {
			case !there:
				what = "it is missing; the events give " + clip(value)
			case !should:
				what = "it is there, and no event says so: " + clip(is)
			}
			found(t, key, what)
			fixes = append(fixes, Fix{Table: t, Key: key, Value: value, was: is})
		}
	}
	return fixes, nil
}

// brokenKey reports whether a row is of a stream that has a fault of its own.
func brokenKey(broken map[string]bool, key string) bool {
	for _, part := range strings.Split(key, "/") {
		if part != "" && (broken[part] || broken[runPrefix+part]) {
			return true
		}
	}
	return false
}

// leases holds leases to their form: a lease of a session that is none, or has ended.
func (m *model) leases(found func(key, what string)) {
	keys := make([]string, 0, len(m.present[store.Leases]))
	for key := range m.present[store.Leases] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		s := m.sessions[key]
		switch _, err := logjson.Object(m.present[store.Leases][key]); {
		case err != nil:
			found(key, "it does not decode")
		case s == nil:
			found(key, "there is no such session")
		case s.ended:
			found(key, "the session has ended")
		}
	}
}

func clip(b []byte) string {
	if len(b) > 200 {
		return string(bytes.ToValidUTF8(b[:200], nil)) + "…"
	}
	return string(b)
}
