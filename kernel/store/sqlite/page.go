package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"ashlar/kernel"
	"ashlar/kernel/event"
)

// page turns rows into events: scan reads the rows, finish puts strings, bodies
// and requests together again and upcasts. What one page needs of content and
// messages is read once. Rows are closed before the next query: the writer has
// one connection, and readers that wait for one another's would wait for ever.
type page struct {
	path     string
	stream   string
	bodies   bool
	maxBytes int // 0: no bound
	query    func(ctx context.Context, q string, args ...any) (*sql.Rows, error)

	rows     []pageRow
	more     bool
	messages map[int64]*message
	contents map[int64]kept
}

// pageRow is an event as it is stored, with the bodies that its columns name.
type pageRow struct {
	event.Event
	meta, data kept
}

// kept is a row of content: a body that may have strings elsewhere, and the hash
// of the whole.
type kept struct {
	hash []byte
	body []byte
}

// scan reads up to limit rows, fewer when their bodies pass the bound, and closes
// them.
func (p *page) scan(rows *sql.Rows, limit int) error {
	defer rows.Close()
	size := 0
	for rows.Next() {
		if len(p.rows) == limit || p.maxBytes > 0 && size > p.maxBytes {
			p.more = true
			return nil
		}
		r := pageRow{Event: event.Event{Stream: p.stream}}
		var hash []byte
		if err := rows.Scan(&r.Position, &r.Seq, &r.EpochMS, &r.Kind, &r.SchemaVersion, &r.Meta, &r.Data,
			&hash, &r.meta.hash, &r.meta.body, &r.data.hash, &r.data.body); err != nil {
			return err
		}
		copy(r.Hash[:], hash)
		size += len(r.Meta) + len(r.Data) + len(r.meta.body) + len(r.data.body)
		p.rows = append(p.rows, r)
	}
	return rows.Err()
}

func (p *page) reverse() { slices.Reverse(p.rows) }

// finish gives the events. The lists of the newest request are read first: they
// mostly hold those of the others.
func (p *page) finish(ctx context.Context) ([]event.Event, error) {
	refs := make([]reference, len(p.rows))
	for i := len(p.rows) - 1; i >= 0; i-- {
		r := &p.rows[i]
		if len(r.Data) == 0 || r.Data[0] != requestPrefix[0] {
			continue
		}
		var ok bool
		if refs[i], ok = parseReference(string(r.Data)); !ok {
			return nil, kernel.Errorf(opRead, kernel.Corruption, "%s:%d: the data column is no reference", r.Stream, r.Seq)
		}
		if err := p.list(ctx, refs[i].last); err != nil {
			return nil, p.at(r.Event, err)
		}
	}
	events, size := make([]event.Event, 0, len(p.rows)), 0
	for i := range p.rows {
		if p.maxBytes > 0 && size > p.maxBytes {
			p.more = true
			break
		}
		e, err := p.event(ctx, &p.rows[i], refs[i])
		if err != nil {
			return nil, p.at(p.rows[i].Event, err)
		}
		size += len(e.Meta) + len(e.Data)
		events = append(events, e)
	}
	return events, nil
}

func (p *page) at(e event.Event, err error) error {
	if kernel.KindOf(err) != kernel.Corruption {
		return err
	}
	return kernel.Errorf(opRead, kernel.Corruption, "%s:%d: %w", e.Stream, e.Seq, err)
}

func (p *page) event(ctx context.Context, r *pageRow, ref reference) (e event.Event, err error) {
	e = r.Event
	if e.Meta, err = p.whole(ctx, e.Meta, r.meta); err != nil {
		return e, err
	}
	if ref.frame != 0 {
		e.Data, err = p.request(ctx, ref)
	} else {
		e.Data, err = p.whole(ctx, e.Data, r.data)
	}
	if err != nil {
		return e, err
	}
	if e, err = e.Upcast(); err != nil {
		return e, err
	}
	if e.Kind == event.LLMRequest && !p.bodies {
		e.Data = []byte("{}")
	}
	return e, nil
}

// whole gives the log JSON that a column stands for, checked against its hash
// where it has one; k is the row of content that the column names.
func (p *page) whole(ctx context.Context, column []byte, k kept) ([]byte, error) {
	id, ok := contentID(column)
	if !ok {
		return p.fill(ctx, column)
	}
	if k.hash == nil {
		return nil, kernel.Errorf(opRead, kernel.Corruption, "%s: the content %d is missing", p.path, id)
	}
	return p.check(ctx, k)
}

// check fills a body of content and compares it with its hash.
func (p *page) check(ctx context.Context, k kept) ([]byte, error) {
	body, err := p.fill(ctx, k.body)
	if err != nil {
		return nil, err
	}
	return body, p.verify(k.hash, body)
}

func (p *page) verify(hash, body []byte) error {
	if h := event.HashOf(body); string(h[:]) != string(hash) {
		return kernel.Errorf(opRead, kernel.Corruption, "%s: the content %x does not match its hash", p.path, hash)
	}
	return nil
}

// fill puts the strings in that are kept elsewhere.
func (p *page) fill(ctx context.Context, b []byte) ([]byte, error) {
	var out []byte
	for rest := b; ; {
		start, end, id, ok := nextString(rest)
		switch {
		case !ok:
			return nil, kernel.Errorf(opRead, kernel.Corruption, "%s: the place of a string is damaged", p.path)
		case start < 0 && out == nil:
			return b, nil
		case start < 0:
			return append(out, rest...), nil
		}
		k, err := p.content(ctx, id)
		if err != nil {
			return nil, err
		}
		out = append(append(out, rest[:start]...), k.body...)
		rest = rest[end:]
	}
}
