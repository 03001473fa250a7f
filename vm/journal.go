package vm

import "errors"

// Journal keeps the results of a script's reads and writes, and the order in
// which tasks ran, so that a run can be replayed and resumed. It is safe for
// concurrent use; recording does not wait for each commit.
type Journal interface {
	// Record keeps one finished syscall.
	Record(Entry)

	// Handover keeps that task got the lock as the run's n-th hand-over.
	Handover(n int64, task int)
}

// Replay is a Journal that knows how a run went, and makes a script go the same way:
// no read and no write of the script is carried out, and the lock goes to the tasks in
// the order in which they had it.
type Replay interface {
	Journal

	// Answer gives what came of a call: now is the call as it is made again, without an
	// outcome. ok false lets the call be carried out; with ErrNeverReturned it waits
	// until the run is stopped. Any other error ends the run.
	Answer(now Entry) (old Entry, ok bool, err error)

	// Turn gives the task that had the lock as the n-th hand-over. ok is false where
	// nobody knows: then who waits longest has it.
	Turn(n int64) (task int, ok bool)

	// Idle is told that nobody has the lock: the next one's turn is that of a task which
	// does not ask for it. waiting are those who do, oldest first; live is how many
	// tasks there are at most.
	Idle(n int64, waiting []int, live int)
}

// ErrNeverReturned is what Replay.Answer gives for a call that was still under way when
// the record ended.
var ErrNeverReturned = errors.New("the call did not return while its run was recorded")

// Entry is one journalled syscall.
type Entry struct {
	N      int64  // order of the calls' beginnings within the run, from 1
	Task   int    // the task that called, 0 the block itself
	K      int64  // order within the task, from 1; 0 for what is no call of it
	Name   string // "std.fs.read"
	Args   []Value
	Hash   string // of the arguments, where Args are not kept
	Steps  []Step // what the call did on its way, in order
	Result []Value
	Err    *Error
	Mark   bool  // neither arguments nor result were kept
	Again  bool  // of a call that is carried out again on a replay: only what interrupted it, or what it noted, is kept
	Notes  int64 // of such a call that failed: how many notes it had made
	Tool   bool  // the call is made inside a tool's handler
}

// Step is something that a syscall did before it returned, and that a replay must do
// again: it called a function of the script, say. It is a name and neutral values.
type Step []Value

// StepCall is the name of a step that called a function of the script: its place among
// the arguments and what it was given follow.
const StepCall = "call"

// Name is the first value.
func (s Step) Name() string { return s.Str(0) }

// Str gives value i as a string.
func (s Step) Str(i int) string {
	if i >= len(s) {
		return ""
	}
	text, _ := s[i].(string)
	return text
}

// Int gives value i as an integer.
func (s Step) Int(i int) int64 {
	if i >= len(s) {
		return 0
	}
	return asInt(s[i], 0)
}
