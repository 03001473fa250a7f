package vm_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"ashlar/vm"
)

// watch starts a watchdog and gives what it said.
func watch(ctx context.Context, dog *vm.Watchdog) (interrupted, stuck chan error) {
	interrupted, stuck = make(chan error, 1), make(chan error, 1)
	dog.Interrupt = func(cause error) { interrupted <- cause }
	dog.OnStuck = func(cause error) { stuck <- cause }
	dog.Start(ctx)
	return interrupted, stuck
}

func TestWatchdogInterruptsThenSaysStuck(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	dog := &vm.Watchdog{Grace: 20 * time.Millisecond}
	interrupted, stuck := watch(ctx, dog)
	for _, said := range []chan error{interrupted, stuck} {
		select {
		case cause := <-said:
			if !errors.Is(cause, context.DeadlineExceeded) {
				t.Errorf("cause %v", cause)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("nothing was said")
		}
	}
	dog.Stop()
}

func TestWatchdogIsSilentAfterStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dog := &vm.Watchdog{}
	interrupted, stuck := watch(ctx, dog)
	dog.Stop()
	dog.Stop()
	cancel()
	select {
	case <-interrupted:
		t.Error("interrupted after Stop")
	case <-stuck:
		t.Error("stuck after Stop")
	case <-time.After(20 * time.Millisecond):
	}
}

func TestWatchdogSeesTheHeap(t *testing.T) {
	dog := &vm.Watchdog{Heap: 32 << 20}
	interrupted, _ := watch(t.Context(), dog)
	defer dog.Stop()
	keep := make([]byte, 128<<20)
	select {
	case cause := <-interrupted:
		var heap *vm.HeapError
		if !errors.As(cause, &heap) || heap.Bound != 32<<20 || heap.Used < heap.Bound || !heap.Shared || !strings.HasPrefix(heap.Error(), "the process uses") {
			t.Errorf("cause %v", cause)
		}
	case <-time.After(5 * time.Second):
		t.Error("the heap went unseen")
	}
	runtime.KeepAlive(keep)
}

// Nobody stops here, and the grace of an interrupt would be a minute.
func TestWatchdogHasNoPatienceWithAProcessFarOverItsMemory(t *testing.T) {
	keep := make([]byte, 96<<20)
	for i := 0; i < len(keep); i += 4096 {
		keep[i] = 1
	}
	dog := &vm.Watchdog{Heap: 32 << 20, Alone: true, Grace: time.Minute}
	began := time.Now()
	interrupted, stuck := watch(t.Context(), dog)
	defer dog.Stop()
	for _, said := range []chan error{interrupted, stuck} {
		select {
		case cause := <-said:
			var heap *vm.HeapError
			if !errors.As(cause, &heap) {
				t.Errorf("cause %v", cause)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("nothing was said after %v", time.Since(began))
		}
	}
	runtime.KeepAlive(keep)
}

// What an embedding host held before is not the script's.
func TestWatchdogForgivesWhatTheHostHeldBefore(t *testing.T) {
	keep := make([]byte, 96<<20)
	dog := &vm.Watchdog{Heap: 32 << 20, Sample: time.Millisecond}
	interrupted, _ := watch(t.Context(), dog)
	defer dog.Stop()
	runtime.GC() // and now it is known to be alive
	select {
	case cause := <-interrupted:
		t.Errorf("interrupted: %v", cause)
	case <-time.After(50 * time.Millisecond):
	}
	runtime.KeepAlive(keep)
}
