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
type HeapError struct {
	Used, Bound int64 // bytes
	Shared      bool  // the process is not the script's own: Used is what came since the script began
}

func (e *HeapError) Error() string {
	if e.Shared {
		return fmt.Sprintf("the process uses %d MiB more memory than when the script began (the limit is %d MiB)", e.Used>>20, e.Bound>>20)
	}
	return fmt.Sprintf("the script uses %d MiB of memory (the limit is %d MiB)", e.Used>>20, e.Bound>>20)
}

// Watchdog ends a script that does not end by itself. It needs no VM lock, since an
// engine can look at its context only between two instructions and one builtin call
// can run for minutes: it watches the deadline, the cancel and the memory from a
// goroutine of its own, interrupts at once, and when the script still runs
// InterruptGrace later it says so, once; its owner then ends the process. A process
// of the script's own that holds an eighth more than its bound has no such grace,
// only HardGrace: what grows then grows by gigabytes a second.
type Watchdog struct {
	// Interrupt is told the cause, to cancel the engine; OnStuck is told the same
	// cause when that was not enough. Each is called once at most, from the
	// watchdog's goroutine.
	Interrupt func(cause error)
	OnStuck   func(cause error)

	Heap   int64         // bytes; 0 stands for DefaultHeap
	Alone  bool          // the process is the script's own: all that it holds counts, not only what came since Start
	Grace  time.Duration // 0 stands for InterruptGrace
	Sample time.Duration // 0 stands for HeapSamplePause

	stop func()
}

// Start begins to watch; ctx is the run's, with its deadline. Start and Stop are
// called by one owner.
func (w *Watchdog) Start(ctx context.Context) {
	quit := make(chan struct{})
	m := newMemory(orDefault(w.Heap, DefaultHeap), w.Alone)
	var done sync.WaitGroup
	done.Go(func() { w.watch(ctx, quit, m) })
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

func (w *Watchdog) watch(ctx context.Context, quit <-chan struct{}, m *memory) {
	defer m.resident.close()
	tick := time.NewTicker(orDefault(w.Sample, HeapSamplePause))
	defer tick.Stop()
	cause := w.wait(ctx, quit, m, tick.C)
	if cause == nil {
		return
	}
	w.Interrupt(cause)
	grace := time.NewTimer(orDefault(w.Grace, InterruptGrace))
	defer grace.Stop()
	var hard <-chan time.Time
	for {
		if hard == nil && m.hard() {
			hard = time.After(HardGrace)
		}
		select {
		case <-quit:
			return
		case <-tick.C:
			continue
		case <-hard:
		case <-grace.C:
		}
		w.OnStuck(cause)
		return
	}
}

// wait gives the cause to end the script, nil when it ended by itself.
func (w *Watchdog) wait(ctx context.Context, quit <-chan struct{}, m *memory, tick <-chan time.Time) error {
	for {
		select {
		case <-quit:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick:
		}
		if used := m.over(); used > 0 {
			return &HeapError{Used: used, Bound: m.bound, Shared: !w.Alone}
		}
	}
}

// memory tells when a process holds too much.
type memory struct {
	bound    int64
	base     int64     // what a process that is not the script's own held before
	resident *resident // reads nothing in such a process
	sample   []metrics.Sample
}

func newMemory(bound int64, alone bool) *memory {
	m := &memory{bound: bound, resident: &resident{},
		sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}}}
	if alone {
		m.resident = newResident()
		return m
	}
	// Garbage included: what was alive at the last collection is too old to tell what
	// the host holds, and what it holds must never be the script's.
	metrics.Read(m.sample)
	for _, s := range m.sample {
		m.base = max(m.base, int64(s.Value.Uint64()))
	}
	return m
}

// over gives what is held when that is more than the bound, else 0.
func (m *memory) over() int64 {
	if m.hard() {
		return m.resident.bytes()
	}
	metrics.Read(m.sample)
	// What the last collection found alive is the truth, but old; what is allocated
	// is new, but holds garbage too: half as much again before it counts.
	live, allocated := int64(m.sample[0].Value.Uint64())-m.base, int64(m.sample[1].Value.Uint64())-m.base
	if live > m.bound || allocated > m.bound+m.bound/2 {
		return max(live, allocated)
	}
	return 0
}

// hard reports that the process holds an eighth more than the bound, whatever the
// collector has yet to say about it.
func (m *memory) hard() bool { return m.resident.bytes() > m.bound+m.bound/8 }

func orDefault[T int64 | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
