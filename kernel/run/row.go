package run

import (
	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
)

// Row is what the ledger says of a run.
type Row struct {
	ID        string
	Attempt   int64
	State     State
	Block     string
	Digest    string
	Project   string
	Labels    map[string]any
	Bounds    budget.Amounts
	StoppedBy string         // the first bound that refused or fired
	Error     map[string]any // of an ending that was none of the block's
	Result    any            // filled by Ledger.Get alone; kept in the event Settled
	Owner     string         // the opening of the store that runs it
	PID       int64
	CreatedMS int64
	EndedMS   int64
	Settled   int64    // seq of run_settled in the run's stream; 0 until then
	Approval  string   // what a waiting run waits for
	Sessions  []string // filled by Ledger.Get alone, in the order in which they joined
}

// Stream is the run's stream in the log.
func (r Row) Stream() string { return StreamOf(r.ID) }

// StreamOf names the stream of a run.
func StreamOf(id string) string { return "run:" + id }

func (r Row) encode() ([]byte, error) {
	m := map[string]any{
		"id": r.ID, "attempt": r.Attempt, "state": string(r.State), "block": r.Block, "digest": r.Digest, "project": r.Project,
		"labels": r.Labels, "bounds": amounts(r.Bounds), "owner": r.Owner, "pid": r.PID, "created_ms": r.CreatedMS,
	}
	for key, v := range map[string]string{"stopped_by": r.StoppedBy, "approval": r.Approval} {
		if v != "" {
			m[key] = v
		}
	}
	if r.Error != nil {
		m["error"] = r.Error
	}
	if r.Settled > 0 {
		m["settled"], m["ended_ms"] = r.Settled, r.EndedMS
	}
	return logjson.Marshal(m)
}

func decode(b []byte) (Row, error) {
	m, err := logjson.Object(b)
	if err != nil {
		return Row{}, kernel.Errorf("run", kernel.Corruption, "a row of the ledger does not decode: %w", err)
	}
	text := func(key string) string { s, _ := m[key].(string); return s }
	number := func(key string) int64 { n, _ := m[key].(int64); return n }
	r := Row{
		ID: text("id"), Attempt: number("attempt"), State: State(text("state")), Block: text("block"), Digest: text("digest"),
		Project: text("project"), StoppedBy: text("stopped_by"), Owner: text("owner"), PID: number("pid"), Approval: text("approval"),
		CreatedMS: number("created_ms"), EndedMS: number("ended_ms"), Settled: number("settled"), Bounds: budget.Amounts{},
	}
	r.Labels, _ = m["labels"].(map[string]any)
	r.Error, _ = m["error"].(map[string]any)
	bounds, _ := m["bounds"].(map[string]any)
	for tag, v := range bounds {
		if tag == deadlineKey {
			continue // its owner keeps it; it is no part of the pool
		}
		r.Bounds[tag], _ = v.(int64)
	}
	return r, nil
}

func amounts(a budget.Amounts) map[string]any {
	m := make(map[string]any, len(a))
	for tag, n := range a {
		m[tag] = n
	}
	return m
}

func load(op, id string, value []byte, ok bool, err error) (Row, error) {
	if err != nil {
		return Row{}, err
	}
	if !ok {
		return Row{}, kernel.Errorf(op, kernel.NotFound, "there is no run %q", id)
	}
	return decode(value)
}

func read(op string, tx store.Tx, id string) (Row, error) {
	value, ok, err := tx.Row(store.Runs, id)
	return load(op, id, value, ok, err)
}

func (r Row) write(tx store.Tx) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	return tx.PutRow(store.Runs, r.ID, b)
}
