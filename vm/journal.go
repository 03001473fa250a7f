package vm

// Journal keeps the results of a script's reads and writes, and the order in
// which tasks ran, so that a run can be replayed and resumed. It is safe for
// concurrent use; recording does not wait for each commit.
type Journal interface {
	// Record keeps one finished syscall.
	Record(Entry)

	// Handover keeps that task got the lock as the run's n-th hand-over.
	Handover(n int64, task int)

	// Answer gives the recorded outcome of a task's k-th recorded syscall, when
	// the run is replayed: then the implementation is not called. ok is false on
	// a live run, and past the end of the record.
	Answer(task int, k int64, name string) (e Entry, ok bool, err error)
}

// Entry is one journalled syscall.
type Entry struct {
	N      int64  // order of the calls' beginnings within the run, from 1
	Task   int    // the task that called, 0 the block itself
	K      int64  // order within the task, from 1
	Name   string // "std.fs.read"
	Args   []Value
	Hash   string // of the arguments, where Args are not kept
	Result []Value
	Err    *Error
	Mark   bool // neither arguments nor result were kept
}
