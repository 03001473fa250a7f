package sqlite

import (
	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
)

// view is the store.Tx of one job. It is dead when the job has returned, so that
// a job that keeps it cannot write into somebody else's transaction.
type view struct{ tx *tx }

var _ store.Tx = (*view)(nil)

func (v *view) alive() (*tx, error) {
	if v.tx == nil {
		return nil, kernel.Errorf(opWrite, kernel.Closed, "the transaction is over")
	}
	return v.tx, nil
}

func (v *view) Append(stream string, d event.Draft) (event.Event, error) {
	t, err := v.alive()
	if err != nil {
		return event.Event{}, err
	}
	enc, err := encode.Draft(d, t.redact)
	if err != nil {
		return event.Event{}, err
	}
	return t.append(stream, enc)
}

func (v *view) Head(stream string) (event.Head, error) {
	t, err := v.alive()
	if err != nil {
		return event.Head{}, err
	}
	e, err := t.head(stream)
	return e.Head, err
}

func (v *view) Last(stream, kind string) (event.Event, bool, error) {
	t, err := v.alive()
	if err != nil {
		return event.Event{}, false, err
	}
	rows, err := t.query(background, selectLastOfKind, true, stream, kind)
	if err != nil {
		return event.Event{}, false, t.failed(err)
	}
	p := page{path: t.path, stream: stream, bodies: true, query: t.query}
	if err := p.scan(rows, 1); err != nil {
		return event.Event{}, false, t.failed(err)
	}
	events, err := p.finish(background)
	if err != nil || len(events) == 0 {
		return event.Event{}, false, err
	}
	return events[0], true, nil
}

func (v *view) Row(table store.Table, key string) ([]byte, bool, error) {
	t, err := v.alive()
	if err != nil {
		return nil, false, err
	}
	k := rowKey{table, key}
	r, have := t.known.rows[k]
	if !have {
		if r.ok, err = t.row(selectRow, []any{string(table), key}, &r.value); err != nil {
			return nil, false, err
		}
		t.known.keepRow(k, r)
	}
	if !r.ok {
		return nil, false, nil
	}
	return []byte(r.value), true, nil
}

func (v *view) PutRow(table store.Table, key string, value []byte) error {
	t, err := v.alive()
	if err != nil {
		return err
	}
	clean := value
	if t.redact != nil {
		clean = t.redact(value)
	}
	_, err = t.exec("INSERT INTO projection (tab, key, value) VALUES (?1, ?2, ?3) ON CONFLICT (tab, key) DO UPDATE SET value = ?3",
		string(table), key, string(clean))
	if err == nil {
		t.known.keepRow(rowKey{table, key}, row{value: string(clean), ok: true})
	}
	return err
}

func (v *view) DeleteRow(table store.Table, key string) error {
	t, err := v.alive()
	if err != nil {
		return err
	}
	_, err = t.exec("DELETE FROM projection WHERE tab = ? AND key = ?", string(table), key)
	if err == nil {
		t.known.keepRow(rowKey{table, key}, row{})
	}
	return err
}

func (v *view) Rows(table store.Table, after string, limit int) ([]store.Row, error) {
	t, err := v.alive()
	if err != nil {
		return nil, err
	}
	rows, err := t.query(background, selectRows, string(table), after, pageSize(limit))
	if err != nil {
		return nil, t.failed(err)
	}
	out, err := scanRows(rows)
	if err != nil {
		return nil, t.failed(err)
	}
	return out, nil
}

func (v *view) PutContent(body []byte) (event.Hash, error) {
	t, err := v.alive()
	if err != nil {
		return event.Hash{}, err
	}
	h := event.HashOf(body)
	_, err = t.keep(h, append(make([]byte, 0, len(body)), body...))
	return h, err
}

func (v *view) Remove(stream string) (event.Head, error) {
	t, err := v.alive()
	if err != nil {
		return event.Head{}, err
	}
	return t.remove(stream)
}

func (v *view) NowMS() int64 {
	if v.tx == nil {
		return 0
	}
	return v.tx.nowMS
}
