package logjson

import (
	"crypto/sha256"
	"sync/atomic"
)

// Packed is a value that was encoded once and is sent many times: a message of a
// growing conversation. It never changes; Append copies its bytes. It is safe for
// concurrent use.
type Packed struct {
	JSON Raw
	Hash [sha256.Size]byte // of JSON

	link atomic.Pointer[link]
}

// link is the last answer of Link.
type link struct{ prev, next [sha256.Size]byte }

// Pack encodes a value for good.
func Pack(v any) (*Packed, error) {
	b, err := Marshal(v)
	if err != nil {
		return nil, err
	}
	return &Packed{JSON: b, Hash: sha256.Sum256(b)}, nil
}

// Link gives of(prev, Hash), where of is the same function each time, and keeps the
// answer: a message mostly follows the same messages.
func (p *Packed) Link(prev [sha256.Size]byte, of func(prev, hash [sha256.Size]byte) [sha256.Size]byte) [sha256.Size]byte {
	if l := p.link.Load(); l != nil && l.prev == prev {
		return l.next
	}
	next := of(prev, p.Hash)
	p.link.Store(&link{prev, next})
	return next
}
