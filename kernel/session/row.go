package session

import (
	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// row is the projection of one session: what its first and its last event say.
type row struct {
	owner, scope, parent, run string
	ended                     bool
}

func readRow(tx store.Tx, id string) (r row, ok bool, err error) {
	m, err := object(tx.Row(store.Sessions, id))
	if err != nil || m == nil {
		return row{}, false, err
	}
	r = row{owner: str(m, "owner"), scope: str(m, "scope_id"), parent: str(m, "parent"), run: str(m, "run")}
	r.ended, _ = m["ended"].(bool)
	return r, true, nil
}

func (r row) write(tx store.Tx, id string) error {
	m := map[string]any{"owner": r.owner, "scope_id": r.scope, "ended": r.ended}
	if r.parent != "" {
		m["parent"] = r.parent
	}
	if r.run != "" {
		m["run"] = r.run
	}
	b, err := logjson.Marshal(m)
	if err != nil {
		return err
	}
	return tx.PutRow(store.Sessions, id, b)
}

// resumable gives the row of a session that may be taken up.
func resumable(tx store.Tx, id string) (row, error) {
	const op = "session.resume"
	r, ok, err := readRow(tx, id)
	switch {
	case err != nil:
		return r, err
	case !ok:
		return r, kernel.Errorf(op, kernel.Validation, "%q is no session of this store", id)
	case r.owner == System:
		return r, kernel.Errorf(op, kernel.Validation, "session %s belongs to the system", id)
	case r.ended:
		return r, kernel.Errorf(op, kernel.Closed, "session %s has ended: a session ends with its run, unless the run was interrupted; open a new one and append what it is to go on from", id)
	}
	return r, nil
}

// object decodes a row or a body that the kernel wrote; nil for one that is not
// there.
func object(b []byte, ok bool, err error) (map[string]any, error) {
	if err != nil || !ok {
		return nil, err
	}
	m, err := logjson.Object(b)
	if err != nil {
		return nil, kernel.Errorf("session", kernel.Corruption, "a record does not decode: %w", err)
	}
	return m, nil
}

func bodies(e event.Event) (meta, data map[string]any, err error) {
	if meta, err = object(e.Meta, true, nil); err != nil {
		return nil, nil, err
	}
	data, err = object(e.Data, true, nil)
	return meta, data, err
}

func str(m map[string]any, key string) string { s, _ := m[key].(string); return s }
