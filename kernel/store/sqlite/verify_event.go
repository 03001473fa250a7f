package sqlite

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"hash"
	"strings"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store/encode"
)

// auditRow is an event as it is stored.
type auditRow struct {
	event.Event
	stream int64
	hash   []byte
}

// events holds every event against its place in its chain.
func (v *audit) events() error {
	batch := make([]auditRow, 0, auditBatch)
	return v.scan("SELECT position, stream, seq, epoch_ms, kind, schema_version, meta, data, hash FROM event WHERE position > ?1 ORDER BY position LIMIT ?2",
		func(rows *sql.Rows) (int64, error) {
			var r auditRow
			err := rows.Scan(&r.Position, &r.stream, &r.Seq, &r.EpochMS, &r.Kind, &r.SchemaVersion, &r.Meta, &r.Data, &r.hash)
			batch = append(batch, r)
			return r.Position, err
		},
		func() error {
			for i := range batch {
				if err := v.event(&batch[i]); err != nil {
					return err
				}
			}
			batch = batch[:0]
			return nil
		})
}

func (v *audit) event(r *auditRow) error {
	v.got.Events++
	c := v.chains[r.stream]
	if c == nil {
		v.fault("", r.Seq, "the event at position %d belongs to stream %d, which has no name", r.Position, r.stream)
		return nil
	}
	r.Stream = c.name
	copy(r.Hash[:], r.hash)
	if r.Seq != c.seq+1 {
		v.fault(c.name, r.Seq, "seq %d comes after seq %d: events between them are missing, or were moved", r.Seq, c.seq)
		c.hash = event.Hash{} // what it is chained to is not there
	}
	prev, gap := c.hash, r.Seq != c.seq+1
	c.seq, c.hash = r.Seq, r.Hash
	meta, err := v.whole(r.Meta)
	var data []byte
	var sum event.Hash
	if err == nil {
		data, sum, err = v.body(r)
	}
	if err != nil {
		if err := v.only(err); err != nil {
			return err
		}
		v.fault(c.name, r.Seq, "the %s cannot be put together: %s", r.Kind, kernel.Message(err))
		return nil
	}
	if !gap && event.Link(prev, &r.Event, event.HashOf(meta), sum) != r.Hash {
		v.fault(c.name, r.Seq, "the %s does not match its hash: it was changed, or what it follows was", r.Kind)
	}
	if !follows(r.Kind) {
		data = []byte("{}")
		if r.SchemaVersion < event.SchemaVersion {
			r.SchemaVersion = event.SchemaVersion
		}
	}
	r.Meta, r.Data = meta, data
	e, err := r.Upcast()
	if err != nil {
		v.fault(c.name, r.Seq, "%s", kernel.Message(err))
		return nil
	}
	return v.Event(e)
}

// follows reports whether a projection follows from events of the kind.
func follows(kind string) bool {
	return strings.HasPrefix(kind, "session_") || event.Ledger(kind) || strings.HasPrefix(kind, "run_")
}

// body gives the data of an event, and its hash; of a request only the hash.
func (v *audit) body(r *auditRow) ([]byte, event.Hash, error) {
	if len(r.Data) == 0 || r.Data[0] != requestPrefix[0] {
		data, err := v.whole(r.Data)
		return data, event.HashOf(data), err
	}
	ref, ok := parseReference(string(r.Data))
	if !ok {
		return nil, event.Hash{}, kernel.Errorf(opRead, kernel.Corruption, "the data column is no reference")
	}
	envelope, err := v.whole([]byte(ref.envelope))
	if err != nil {
		return nil, event.Hash{}, err
	}
	frame, err := v.part(ref.frame)
	if err != nil {
		return nil, event.Hash{}, err
	}
	at, in := bytes.IndexByte(envelope, encode.RequestHere), bytes.IndexByte(frame, encode.MessagesHere)
	if at < 0 || in < 0 {
		return nil, event.Hash{}, kernel.Errorf(opRead, kernel.Corruption, "a request's frame has lost its place holder")
	}
	head := append(append(bytes.Clone(envelope[:at]), frame[:in]...), '[')
	h, err := v.listed(head, ref.last)
	if err != nil {
		return nil, event.Hash{}, err
	}
	h.Write([]byte{']'})
	h.Write(frame[in+1:])
	h.Write(envelope[at+1:])
	var sum event.Hash
	h.Sum(sum[:0])
	return nil, sum, nil
}

// sums are the states of hashes over the beginnings of requests: a request mostly is the
// one before with messages behind it, and only those are hashed.
type sums map[sumKey]hash.Cloner

type sumKey struct {
	head event.Hash // of what stands before the messages
	last int64      // the last message that is in
}

// maxSums bounds the states; when there are more they are forgotten.
const maxSums = 1 << 15

// listed gives the hash of a head and the messages of a list.
func (v *audit) listed(head []byte, last int64) (hash.Hash, error) {
	key := sumKey{head: event.HashOf(head)}
	var todo []int64
	var h hash.Hash
	for id := last; ; id = v.list[id].prev {
		key.last = id
		if state, ok := v.sums[key]; ok {
			var err error
			if h, err = state.Clone(); err != nil {
				return nil, kernel.Errorf(opRead, kernel.Internal, "%w", err)
			}
			break
		}
		if id == 0 {
			h = sha256.New()
			h.Write(head)
			break
		}
		if _, ok := v.list[id]; !ok {
			return nil, kernel.Errorf(opRead, kernel.Corruption, "the message %d of the request is missing", id)
		}
		todo = append(todo, id)
	}
	for i := len(todo) - 1; i >= 0; i-- {
		body, err := v.message(todo[i])
		if err != nil {
			return nil, err
		}
		if v.list[todo[i]].prev != 0 {
			h.Write([]byte{','})
		}
		h.Write(body)
	}
	if len(todo) > 0 {
		if len(v.sums) >= maxSums || v.sums == nil {
			v.sums = sums{}
		}
		key.last = last
		if c, ok := h.(hash.Cloner); ok {
			state, err := c.Clone()
			if err != nil {
				return nil, kernel.Errorf(opRead, kernel.Internal, "%w", err)
			}
			v.sums[key] = state
		}
	}
	return h, nil
}
