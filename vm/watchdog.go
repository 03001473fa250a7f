package vm

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
)

// HeapError is the cause of a run that was ended because the process held more
// live memory than its bound.
type HeapError struct{ Used, Bound int64 } // bytes

func (e *HeapError) Error() string {
	return fmt.Sprintf("the script uses %d MiB of memory (the limit is %d MiB)", e.Used>>20, e.Bound>>20)
}

// Watchdog ends a script that does not end by itself. It needs no VM lock, since an
// engine can look at its context only between two instructions and one builtin call
// can run for minutes: it watches the deadline, the cancel and the heap from a
// goroutine of its own, interrupts at once, and when the script still runs
// InterruptGrace later it says so, once; its owner then ends the process.
type Watchdog struct {
	// Interrupt is told the cause, to cancel the engine; OnStuck is told the same
	// cause when that was not enough. Each is called once at most, from the
	// watchdog's goroutine.
	Interrupt func(cause error)
	OnStuck   func(cause error)

	Heap   int64         // bytes; 0 stands for DefaultHeap
	Grace  time.Duration // 0 stands for InterruptGrace
	Sample time.Duration // 0 stands for HeapSamplePause

	stop func()
}

// Start begins to watch; ctx is the run's, with its deadline. Start and Stop are
// called by one owner.
func (w *Watchdog) Start(ctx context.Context) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() { w.watch(ctx, quit) })
	w.stop = sync.OnceFunc(func() {
		close(quit)
		done.Wait()
	})
}

// Stop ends the watch and waits for its goroutine: after it neither function is
// called. It must not be called from one of them.
func (w *Watchdog) Stop() {
	if w.stop != nil {
		w.stop()
	}
}

func (w *Watchdog) watch(ctx context.Context, quit <-chan struct{}) {
	cause := w.wait(ctx, quit)
	if cause == nil {
		return
	}
	w.Interrupt(cause)
	grace := time.NewTimer(orDefault(w.Grace, InterruptGrace))
	defer grace.Stop()
	select {
	case <-quit:
	case <-grace.C:
		w.OnStuck(cause)
	}
}

// wait gives the cause to end the script, nil when it ended by itself.
func (w *Watchdog) wait(ctx context.Context, quit <-chan struct{}) error {
	bound := orDefault(w.Heap, DefaultHeap)
	tick := time.NewTicker(orDefault(w.Sample, HeapSamplePause))
	defer tick.Stop()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}
	for {
		select {
		case <-quit:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		metrics.Read(sample)
		// What the last collection found alive is the truth, but old; what is allocated
		// is new, but holds garbage too: half as much again before it counts.
		live, allocated := int64(sample[0].Value.Uint64()), int64(sample[1].Value.Uint64())
		if live > bound || allocated > bound+bound/2 {
			return &HeapError{Used: max(live, allocated), Bound: bound}
		}
	}
}

func orDefault[T int64 | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
