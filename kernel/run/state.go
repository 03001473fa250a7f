package run

import "ashlar/kernel"

// State is where a run stands.
type State string

// The states. Lost is never stored: it is a Running run whose owner is gone.
// Partial, Blocked and Deferred are outcomes of workers.
const (
	Queued    State = "queued"
	Running   State = "running"
	Waiting   State = "waiting"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
	Blocked   State = "blocked"
	Partial   State = "partial"
	Deferred  State = "deferred"
	Lost      State = "lost"
)

// Terminal reports whether the state is an ending.
func (s State) Terminal() bool {
	switch s {
	case Completed, Failed, Cancelled, Blocked, Partial, Deferred:
		return true
	}
	return false
}

// move is what happens to a run.
type move string

const (
	own    move = "own"    // a process begins it
	wait   move = "wait"   // it stands still until somebody decides
	goOn   move = "go on"  // the process that waited goes on
	take   move = "take"   // another attempt takes it up
	settle move = "settle" // its owner ends it
	cancel move = "cancel" // it ends without having an owner
	bury   move = "bury"   // its owner is gone and nobody takes it up
)

// transition allows a move; to "" is any terminal state.
type transition struct {
	from State
	move move
	to   State
}

func transitions() []transition {
	return []transition{
		{Queued, own, Running},
		{Queued, cancel, ""},
		{Running, wait, Waiting},
		{Running, settle, ""},
		{Waiting, goOn, Running},
		{Waiting, take, Running},
		{Waiting, settle, ""},
		{Waiting, cancel, ""},
		{Lost, take, Running},
		{Lost, bury, ""},
	}
}

// next applies a move; kind closed names the state in which it is not possible.
func next(op, id string, from State, m move, to State) (State, error) {
	for _, t := range transitions() {
		if t.from != from || t.move != m {
			continue
		}
		if t.to != "" {
			return t.to, nil
		}
		if !to.Terminal() {
			return "", kernel.Errorf(op, kernel.Validation, "%q is no ending of a run", to)
		}
		return to, nil
	}
	return "", kernel.Errorf(op, kernel.Closed, "run %s is %s", id, from)
}
