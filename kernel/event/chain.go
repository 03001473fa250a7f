package event

import (
	"crypto/sha256"
	"encoding/hex"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// String gives the hash in lower-case hexadecimal, its form in log JSON.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// HashOf is the name of content.
func HashOf(b []byte) Hash { return sha256.Sum256(b) }

// ParseHash reads what String wrote; an error is of kind validation.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return h, kernel.Errorf("event", kernel.Validation, "%q is no SHA-256 in hexadecimal", s)
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return h, kernel.Errorf("event", kernel.Validation, "%q is no SHA-256 in hexadecimal", s)
	}
	return h, nil
}

// Origin is what the first event of a stream is chained to.
func Origin(stream string) Hash { return HashOf([]byte("ashlar-log-1\n" + stream)) }

// Link computes an event's hash from the hash of its predecessor (Origin for
// seq 1), the event's own fields as they were stored, and the hashes of its meta
// and data. Position is no part of it: a stream can be moved between databases.
func Link(prev Hash, e *Event, meta, data Hash) Hash {
	var scratch [512]byte
	b, err := logjson.Append(scratch[:0], []any{
		prev.String(), e.Stream, e.Seq, e.EpochMS, e.Kind, int64(e.SchemaVersion), meta.String(), data.String(),
	})
	if err != nil {
		// Only a name that is not UTF-8 has no log JSON; Validate and the stores
		// refuse it, so what is hashed here cannot equal any stored link.
		return Hash{}
	}
	return HashOf(b)
}
