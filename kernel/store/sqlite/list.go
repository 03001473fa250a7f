package sqlite

import (
	"context"
	"database/sql"
	"slices"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store/encode"
)

// message is one row of the persistent list, whole and verified.
type message struct {
	prev int64
	node event.Hash
	body []byte
}

// request puts a request together; its list has been read.
func (p *page) request(ctx context.Context, ref reference) ([]byte, error) {
	k, err := p.content(ctx, ref.frame)
	if err != nil {
		return nil, err
	}
	frame, err := p.check(ctx, k)
	if err != nil {
		return nil, err
	}
	k = kept{}
	if id, ok := contentID([]byte(ref.envelope)); ok {
		if k, err = p.content(ctx, id); err != nil {
			return nil, err
		}
	}
	envelope, err := p.whole(ctx, []byte(ref.envelope), k)
	if err != nil {
		return nil, err
	}
	var list [][]byte
	for id := ref.last; id != 0; id = p.messages[id].prev {
		list = append(list, p.messages[id].body)
	}
	slices.Reverse(list)
	return encode.Assemble(envelope, frame, list)
}

// content reads a row of content by id. A string is checked here: its body is the
// whole of it. Other bodies are checked when they are filled.
func (p *page) content(ctx context.Context, id int64) (kept, error) {
	if k, ok := p.contents[id]; ok {
		return k, nil
	}
	rows, err := p.query(ctx, "SELECT hash, body FROM content WHERE id = ?", id)
	if err != nil {
		return kept{}, err
	}
	var k kept
	if err := scanOne(rows, &k.hash, &k.body); err != nil {
		return kept{}, err
	}
	if k.hash == nil {
		return kept{}, kernel.Errorf(opRead, kernel.Corruption, "%s: the content %d is missing", p.path, id)
	}
	if len(k.body) > 0 && k.body[0] == '"' {
		if err := p.verify(k.hash, k.body); err != nil {
			return kept{}, err
		}
	}
	if p.contents == nil {
		p.contents = map[int64]kept{}
	}
	p.contents[id] = k
	return k, nil
}

// byHash reads content of any kind; a blob is what it is, text may have strings
// elsewhere.
func (p *page) byHash(ctx context.Context, h event.Hash) (body []byte, ok bool, err error) {
	rows, err := p.query(ctx, "SELECT typeof(body), body FROM content WHERE hash = ?", h[:])
	if err != nil {
		return nil, false, err
	}
	var kind string
	if err := scanOne(rows, &kind, &body); err != nil || kind == "" {
		return nil, false, err
	}
	if kind == "text" {
		body, err = p.check(ctx, kept{hash: h[:], body: body})
		return body, err == nil, err
	}
	if body == nil { // how the driver reads an empty blob
		body = []byte{}
	}
	return body, true, p.verify(h[:], body)
}

// scanOne scans at most one row and closes.
func scanOne(rows *sql.Rows, to ...any) error {
	defer rows.Close()
	if rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// A message's id is larger than its predecessor's, so the order of ids is that
// of the list, and a damaged prev cannot make the walk endless.
const selectChain = `
WITH RECURSIVE chain (id, prev) AS (
	SELECT id, prev FROM message WHERE id = ?
	UNION ALL
	SELECT m.id, m.prev FROM chain JOIN message AS m ON m.id = chain.prev AND m.id < chain.id
)
SELECT m.id, m.prev, m.node, m.body, c.hash, c.body
FROM chain JOIN message AS m ON m.id = chain.id
LEFT JOIN content AS c ON c.id = CASE WHEN substr(m.body, 1, 8) = 'content:' THEN CAST(substr(m.body, 9) AS INTEGER) END
ORDER BY m.id`

// list reads a list from its beginning to the message last, and checks every
// node. 0 is the empty list.
func (p *page) list(ctx context.Context, last int64) error {
	if last == 0 || p.messages[last] != nil {
		return nil
	}
	read, err := p.chain(ctx, last)
	if err != nil {
		return err
	}
	if p.messages == nil {
		p.messages = map[int64]*message{}
	}
	for _, r := range read {
		if p.messages[r.id] != nil {
			continue
		}
		body, err := p.whole(ctx, r.column, r.content)
		if err != nil {
			return err
		}
		var prev event.Hash
		before := p.messages[r.prev]
		if before != nil {
			prev = before.node
		}
		node := encode.Node(prev, event.HashOf(body))
		if string(node[:]) != string(r.node) || before == nil && r.prev != 0 {
			return kernel.Errorf(opRead, kernel.Corruption, "%s: message %d does not match its node", p.path, r.id)
		}
		p.messages[r.id] = &message{prev: r.prev, node: node, body: body}
	}
	if p.messages[last] == nil {
		return kernel.Errorf(opRead, kernel.Corruption, "%s: message %d is missing", p.path, last)
	}
	return nil
}

// chainRow is a message as it is stored.
type chainRow struct {
	id, prev     int64
	node, column []byte
	content      kept
}

func (p *page) chain(ctx context.Context, last int64) (read []chainRow, err error) {
	rows, err := p.query(ctx, selectChain, last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r chainRow
		if err := rows.Scan(&r.id, &r.prev, &r.node, &r.column, &r.content.hash, &r.content.body); err != nil {
			return nil, err
		}
		read = append(read, r)
	}
	return read, rows.Err()
}
