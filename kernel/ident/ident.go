// Package ident makes the ids of sessions, scopes, beats, runs and synthetic
// calls from an injected clock and an injected source of randomness, so that a
// replay makes the same ones. It must never read the machine's clock or
// randomness by itself.
package ident

import (
	"encoding/binary"
	"encoding/hex"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
)

// Clock tells the time. Everything that ends up in the log takes its time here.
type Clock interface{ Now() time.Time }

// System is the machine's clock.
type System struct{}

// Now implements Clock.
func (System) Now() time.Time { return time.Now() }

// Source makes ids. It is safe for concurrent use.
type Source struct {
	mu    sync.Mutex
	clock Clock
	rand  io.Reader
	last  uint64 // the last time-ordered prefix, so that ids made in one millisecond stay ordered
}

// New returns a Source over clock and randomness.
func New(clock Clock, rand io.Reader) *Source { return &Source{clock: clock, rand: rand} }

// Random returns a UUIDv4: sessions and scopes.
func (s *Source) Random() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := uuid.NewRandomFromReader(s.rand)
	if err != nil {
		return "", err
	}
	return id.String(), nil
}

// Ordered returns a UUIDv7: beats and runs, whose ids sort by time of making.
func (s *Source) Ordered() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var id uuid.UUID
	if _, err := io.ReadFull(s.rand, id[6:]); err != nil {
		return "", err
	}
	// 48 bits of milliseconds, then 12 bits that count within one millisecond.
	tick := uint64(s.clock.Now().UnixMilli()) << 12
	if tick <= s.last {
		tick = s.last + 1
	}
	s.last = tick
	binary.BigEndian.PutUint32(id[0:], uint32(tick>>28))
	binary.BigEndian.PutUint16(id[4:], uint16(tick>>12))
	binary.BigEndian.PutUint16(id[6:], 0x7000|uint16(tick&0xfff))
	id[8] = id[8]&0x3f | 0x80
	return id.String(), nil
}

// Hex returns n random bytes in hexadecimal.
func (s *Source) Hex(n int) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := make([]byte, n)
	if _, err := io.ReadFull(s.rand, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}
