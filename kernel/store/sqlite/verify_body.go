package sqlite

import (
	"ashlar/kernel"
)

// cache keeps bodies by id; when it is full it is emptied.
type cache struct {
	m    map[int64][]byte
	size int
}

func (c *cache) put(id int64, b []byte) {
	if c.size+len(b) > auditBytes || c.m == nil {
		c.m, c.size = map[int64][]byte{}, 0
	}
	c.m[id] = b
	c.size += len(b)
}

// whole gives what a column stands for.
func (v *audit) whole(column []byte) ([]byte, error) {
	if id, ok := contentID(column); ok {
		return v.part(id)
	}
	return v.fill(column)
}

// part gives a body of content, its strings put in. That it matches its hash was looked
// at before; here the chain's own hash is over it.
func (v *audit) part(id int64) ([]byte, error) {
	if b, ok := v.parts.m[id]; ok {
		return b, nil
	}
	b, err := v.one("SELECT body FROM content WHERE id = ?", id, "content")
	if err == nil {
		b, err = v.fill(b)
	}
	if err != nil {
		return nil, err
	}
	v.parts.put(id, b)
	return b, nil
}

// message gives the body of a message.
func (v *audit) message(id int64) ([]byte, error) {
	if b, ok := v.bodies.m[id]; ok {
		return b, nil
	}
	b, err := v.one("SELECT body FROM message WHERE id = ?", id, "message")
	if err == nil {
		b, err = v.whole(b)
	}
	if err != nil {
		return nil, err
	}
	v.bodies.put(id, b)
	return b, nil
}

func (v *audit) one(query string, id int64, what string) ([]byte, error) {
	rows, err := v.c.QueryContext(v.ctx, query, id)
	if err != nil {
		return nil, err
	}
	var b []byte
	if err := scanOne(rows, &b); err != nil {
		return nil, err
	}
	if b == nil {
		return nil, kernel.Errorf(opRead, kernel.Corruption, "the %s %d is missing", what, id)
	}
	return b, nil
}

// maxFilled bounds what damaged references can put together.
const maxFilled = 1 << 30

// fill puts the strings in that are kept elsewhere. A string holds no other one.
func (v *audit) fill(b []byte) ([]byte, error) {
	var out []byte
	for rest := b; ; {
		start, end, id, ok := nextString(rest)
		switch {
		case !ok || len(out) > maxFilled:
			return nil, kernel.Errorf(opRead, kernel.Corruption, "the place of a string is damaged")
		case start < 0 && out == nil:
			return b, nil
		case start < 0:
			return append(out, rest...), nil
		}
		s, ok := v.parts.m[id]
		if !ok {
			var err error
			if s, err = v.one("SELECT body FROM content WHERE id = ?", id, "string"); err != nil {
				return nil, err
			}
			if len(s) > 0 && s[0] == '"' {
				v.parts.put(id, s)
			}
		}
		out = append(append(out, rest[:start]...), s...)
		rest = rest[end:]
	}
}
