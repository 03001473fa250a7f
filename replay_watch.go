package ashlar

import (
	"context"
	"fmt"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/run"
	"ashlar/vm"
)

// What follows decides whether a replay that does not go on has come to a difference, or
// to the end of its record.

// replayGrace is how long a transaction waits for its turn when the script has ended.
const replayGrace = 100 * time.Millisecond

// differs is told of a transaction that the record does not hold as the next one. It
// reports whether that is final: where nobody else can write what comes first.
func (a *replaying) differs(d *Difference) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.different != nil || a.ended {
		return true
	}
	// The script stands still where every task asks for the lock, waits to write, or for
	// a call that never returns.
	still := !a.held && len(a.waiting)+len(a.parked)+a.writing+1 >= a.tasks
	if a.multi && !a.over && !still {
		a.writing++
		return false
	}
	a.conclude(d)
	return true
}

// conclude decides about an event that does not come: past the end of a record that was
// cut short it is no difference. mu is held.
func (a *replaying) conclude(d *Difference) {
	if d.Recorded == "" && (a.rec.settled == nil || a.rec.cut != "") {
		a.finish()
		return
	}
	_ = a.say(d)
}

// wait waits until something was written, or the replay is stopped.
func (a *replaying) wait(ctx context.Context, moved <-chan struct{}) error {
	again := false
	select {
	case <-moved:
		again = true
	case <-a.halting:
	case <-ctx.Done():
		// What its script had begun when it ended was written then, and is now, as soon
		// as what came before it is.
		grace := time.NewTimer(replayGrace)
		defer grace.Stop()
		select {
		case <-moved:
			again = true
		case <-a.halting:
		case <-grace.C:
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !again {
		a.writing = max(0, a.writing-1) // which moved would have done
	}
	switch {
	case a.different != nil || a.ended:
		return &vm.Fault{Err: a.stopped()}
	case again:
		return nil
	}
	return kernel.Errorf("store.write", kernel.Cancelled, "%w", context.Cause(ctx))
}

// watch looks for a replay in which nothing moves any more, until ctx ends.
func (a *replaying) watch(ctx context.Context, stall time.Duration) {
	const looks = 20
	tick := time.NewTicker(stall / looks)
	defer tick.Stop()
	still := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.enough()
		if still++; a.look() {
			still = 0
		}
		if still >= looks {
			a.stuck()
			still = 0
		}
	}
}

// look reports whether something has moved since the last look, or Lua runs.
func (a *replaying) look() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.stalled
	a.stalled = a.moves
	return a.held || a.moves != was || a.over
}

// enough ends the replay of a run that was cut or killed when all of its record was
// asked for: its script may be one that never ends.
func (a *replaying) enough() {
	if a.rec.settled != nil && a.rec.cut == "" || a.gate.left() != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered >= a.outcomes {
		a.finish()
	}
}

// stuck concludes what nothing moves for.
func (a *replaying) stuck() {
	pending := a.gate.waits()
	a.mu.Lock()
	defer a.mu.Unlock()
	short := a.rec.settled == nil || a.rec.cut != ""
	switch {
	case pending != nil:
		a.conclude(pending)
	case len(a.waiting) > 0 && (!short || a.turn <= int64(len(a.rec.journal.Handovers))):
		d := &Difference{Kind: DiffersOrder, Stream: a.rec.row.Stream(), Why: "the task whose turn it was then does not come",
			Replayed: fmt.Sprintf("hand-over %d is asked for by the tasks %v", a.turn, a.waiting)}
		if i := a.turn - 1; i < int64(len(a.rec.journal.Handovers)) {
			d.Seq, d.Recorded = a.rec.journal.Turns[i], fmt.Sprintf("hand-over %d went to task %d", a.turn, a.rec.journal.Handovers[i])
		}
		_ = a.say(d)
	case short:
		a.finish()
	case len(a.parked) > 0:
		_ = a.say(a.callDiffers(a.parked[0], run.Syscall{}, "the call did not return in the recorded run, and the script waits for it"))
	default:
		_ = a.say(&Difference{Kind: DiffersOrder, Stream: a.rec.row.Stream(), Why: "the script waits, and nothing that it waits for is in the record"})
	}
}

// waits gives the transaction that waits for its turn, nil for none.
func (g *gate) waits() *Difference {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pending
}
