package run

import (
	"context"
	"sync"
	"sync/atomic"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/encode"
)

// MaxJournalBytes is the largest syscall that the journal keeps; of a larger one
// there is only the hash, and the run cannot be replayed exactly.
const MaxJournalBytes = 8 << 20

// maxPending is how many syscalls may wait for a commit. A script that makes them
// faster than they can be written waits for the disk here: otherwise what piles up
// takes memory, and time at the run's end, where none is left.
const maxPending = 4 * store.LaterLimit

// maxBatch is how many hand-overs one event holds.
const maxBatch = 4096

// Syscall is one finished call of a script. Args and Result hold neutral values.
type Syscall struct {
	N        int64 // order of the calls' beginnings within the run, from 1; 0 of a fact
	K        int64 // order within the task, from 1; 0 of what is no call of it
	Task     int
	Name     string
	Args     []any
	ArgsHash string // where Args are not kept
	Steps    []any  // lists: what the call did on its way
	Result   []any
	Error    map[string]any
	Mark     bool  // neither arguments nor result are kept
	Again    bool  // a replay carries it out again, unless it failed here
	Notes    int64 // that such a call had made when it failed

	Seq int64 // of the event that holds it; set by the reader
}

// Fact keeps what was so during the whole run, of which the script made no call: the
// digest of a module that it loaded, a price. A replay goes by it.
func (h *Handle) Fact(name string, about []any, is []any) {
	h.Record(Syscall{Name: name, Args: about, Result: is})
}

// journal is the writing half. It does not wait before maxPending: what it has rides
// with the next commit, and what rides together is one event.
type journal struct {
	store  store.Store
	stream string
	taken  atomic.Int64 // syscalls that Record was given
	past   atomic.Int64 // the newest of them that has left the store's queue, whatever came of it

	mu    sync.Mutex
	batch *handovers // not full, and not yet committed
	calls *calls     // likewise
}

// calls are syscalls that ride with one commit, encoded: they become one event.
type calls struct {
	list  []*encode.Encoded
	bytes int
	last  int64 // the newest of them, as journal.taken counts
}

// Bounds of what one event holds of calls.
const (
	maxCalls     = 256
	maxCallBytes = 64 << 10
)

// handovers are consecutive hand-overs: first is the number of the first one.
type handovers struct {
	first int64
	tasks []any
}

// Record keeps a finished syscall. One that has no log JSON, or is larger than
// MaxJournalBytes, leaves a mark.
func (h *Handle) Record(c Syscall) {
	j := &h.journal
	d, err := j.store.Prepare(event.Draft{Kind: event.Syscall, Data: c.data()})
	if enc, ok := d.Prepared.(*encode.Encoded); err != nil || ok && len(enc.Data.Bytes) > MaxJournalBytes {
		c.Args, c.Steps, c.Result, c.Error, c.Mark = nil, nil, nil, nil, true
		if err == nil && c.ArgsHash == "" {
			c.ArgsHash = enc.Data.Hash.String()
		}
		d, _ = j.store.Prepare(event.Draft{Kind: event.Syscall, Data: c.data()})
	}
	n := j.taken.Add(1)
	if enc, ok := d.Prepared.(*encode.Encoded); ok {
		j.gather(enc, n)
	} else { // the store says at the next commit why not even a mark can be kept
		j.store.Later(func(tx store.Tx) error {
			_, err := tx.Append(j.stream, d)
			return err
		})
	}
	if n-j.past.Load() >= maxPending {
		// Behind everything that is queued. A failure is that of the next write.
		_ = j.store.Write(context.Background(), func(store.Tx) error { return nil })
		j.passed(n) // also where the store never came to the calls before
	}
}

// gather puts a call to those that wait for the next commit.
func (j *journal) gather(enc *encode.Encoded, n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if c := j.calls; c != nil && len(c.list) < maxCalls && c.bytes < maxCallBytes {
		c.list, c.bytes, c.last = append(c.list, enc), c.bytes+len(enc.Data.Bytes), max(c.last, n)
		return
	}
	c := &calls{list: []*encode.Encoded{enc}, bytes: len(enc.Data.Bytes), last: n}
	j.calls = c
	j.store.Later(func(tx store.Tx) error {
		j.mu.Lock()
		if j.calls == c {
			j.calls = nil // from here on nobody adds to c
		}
		j.mu.Unlock()
		j.passed(c.last)
		_, err := tx.Append(j.stream, event.Draft{Kind: event.Syscall, Prepared: c.encoded()})
		return err
	})
}

// encoded gives one call as it is, and several as {"calls":[…]}.
func (c *calls) encoded() *encode.Encoded {
	if len(c.list) == 1 {
		return c.list[0]
	}
	b := make([]byte, 0, c.bytes+len(c.list)+16)
	b = append(b, `{"calls":[`...)
	for i, enc := range c.list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, enc.Data.Bytes...)
	}
	out := *c.list[0]
	out.Data = encode.Of(append(b, `]}`...))
	out.Data.Long = encode.Cut(out.Data.Bytes)
	return &out
}

// passed notes that the n-th syscall and those before it wait no more. The store
// takes them in order, so the newest one speaks for all; a failed commit may leave
// some that never ran.
func (j *journal) passed(n int64) {
	for old := j.past.Load(); n > old && !j.past.CompareAndSwap(old, n); old = j.past.Load() {
	}
}

func (c Syscall) data() map[string]any {
	m := map[string]any{"n": c.N, "k": c.K, "task": int64(c.Task), "name": c.Name}
	switch {
	case c.ArgsHash != "":
		m["args_hash"] = c.ArgsHash
	case c.Again:
		m["again"] = true
	case !c.Mark:
		m["args"] = list(c.Args)
	}
	if c.Notes > 0 {
		m["notes"] = c.Notes
	}
	if len(c.Steps) > 0 {
		m["steps"] = c.Steps
	}
	switch {
	case c.Mark:
		m["mark"] = true
	case c.Error != nil:
		m["error"] = c.Error
	default:
		m["result"] = list(c.Result)
	}
	return m
}

func list(v []any) []any {
	if v == nil {
		return []any{}
	}
	return v
}

// Handover keeps that a task got the lock as the run's n-th hand-over. A number
// that is not recorded went to task 0, the block itself, so a run without other
// tasks records none; what follows one another until the next commit is one
// event.
func (h *Handle) Handover(n int64, task int) {
	j := &h.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	if b := j.batch; b != nil && n == b.first+int64(len(b.tasks)) && len(b.tasks) < maxBatch {
		b.tasks = append(b.tasks, int64(task))
		return
	}
	if task == 0 {
		return
	}
	b := &handovers{first: n, tasks: []any{int64(task)}}
	j.batch = b
	j.store.Later(func(tx store.Tx) error {
		j.mu.Lock()
		if j.batch == b {
			j.batch = nil // from here on nobody adds to b
		}
		j.mu.Unlock()
		_, err := tx.Append(j.stream, event.Draft{Kind: event.Handover, Data: map[string]any{"n": b.first, "tasks": b.tasks}})
		return err
	})
}
