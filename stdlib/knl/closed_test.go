package knl

import (
	"context"
	"testing"
	"time"
)

// What is kept of a session goes with it, and a call that waits for its turn goes on.
func TestASessionThatEndsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	waits := newTurns()
	waits.session = "a"
	k := &Kernel{
		marks: map[string]mark{"a": {}, "b": {}},
		turns: map[string]*turns{"1": waits, "2": {session: "b"}},
	}
	k.begun("1", &pending{session: "a"})
	k.begun("2", &pending{session: "b"})
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	go func() { done <- waits.wait(ctx, 3) }()
	k.closed("a")
	if err := <-done; err != nil {
		t.Error(err)
	}
	waits.pass(3)
	if len(k.marks) != 1 || len(k.turns) != 1 || len(k.beats) != 1 || k.running("2") == nil {
		t.Errorf("%v %v %v", k.marks, k.turns, k.beats)
	}
	k.over("2")
	if len(k.turns) != 0 || len(k.beats) != 0 {
		t.Errorf("%v %v", k.turns, k.beats)
	}
}
