package ashlar

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/kernel/proc"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/kernel/store"
	"ashlar/stdlib/llm/record"
	"ashlar/vm"
	"ashlar/vm/lua"
)

// How long the parts of an ending may take.
const (
	closeGrace = 200 * time.Millisecond // for tasks that the block left running
	buryGrace  = 2 * time.Second        // for child processes
	recordTime = 10 * time.Second       // for the record of the ending

	// Of a script that does not stop, whose process is to be gone 1 s after its bound
	// fired. The guard buries what is left when the process has ended.
	stuckBury = 200 * time.Millisecond
	stuckTime = 600 * time.Millisecond // all of its ending, from vm.InterruptGrace on
	stuckTell = 100 * time.Millisecond // for what the host prints after it
)

// deadlineError is the cause of a run whose wall time is over.
type deadlineError struct{ after time.Duration }

func (e *deadlineError) Error() string {
	return fmt.Sprintf("the run's deadline of %s passed", e.after)
}

// Execute runs the task to its end and records how it ended. It returns when
// nothing of the run is alive any more (tasks, child processes, sessions), except
// where the result says Abandoned. Cancel ctx with a *Signal where a signal is the
// reason.
func (r *Run) Execute(ctx context.Context) Result {
	l, err := r.begin(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // cancelled before it was recorded
		}
		state, cut, signal := verdict(err)
		return Result{Status: string(state), StoppedBy: cut, Err: err, signal: signal}
	}
	e := &ending{live: l, start: r.ws.opts.Clock.Now(), done: make(chan struct{})}
	l.emit.emit("run_started", "", "", r.started())
	go func() {
		value, err := e.run(ctx)
		e.finish(value, err, false)
	}()
	<-e.done
	e.spans.close(e.flushTime())
	return e.result
}

// begin records the run as queued and owned, in one transaction.
func (r *Run) begin(ctx context.Context) (*live, error) {
	ledger, err := r.ws.Runs(ctx)
	if err != nil {
		return nil, err
	}
	h, err := ledger.Begin(ctx, run.Start{
		Block: valid(r.block), Digest: r.digest, Project: valid(r.ws.project), Labels: r.task.Labels, Bounds: r.task.Bounds.pool(),
		Deadline: r.task.Bounds.Deadline, Input: r.input(),
	})
	if err != nil {
		return nil, err
	}
	s, err := r.ws.Store(ctx)
	if err != nil {
		return nil, err
	}
	return r.live(h, s)
}

// live makes what the run's script is lent, over its handle and the store of its log.
func (r *Run) live(h *run.Handle, s store.Store) (*live, error) {
	who, err := r.identity(h.ID())
	if err != nil {
		return nil, err
	}
	r.ws.logLevelNotice()
	sinks, spans := r.task.Sinks, r.startSpans(h.ID(), who)
	if spans != nil {
		sinks = append(slices.Clone(sinks), spans)
	}
	return &live{
		Run: r, handle: h, who: who, spans: spans, store: s, env: newEnvironment(r.ws.environ), starter: proc.New(proc.Options{}),
		emit:  &emitter{run: h.ID(), now: r.ws.opts.Clock.Now, redact: r.ws.redact, sinks: sinks},
		books: map[string]*session.Book{}, usage: map[string]any{},
		stdout: &output{w: r.ws.redact.NewWriter(r.ws.opts.Stdout)}, stderr: &output{w: r.ws.redact.NewWriter(r.ws.opts.Stderr)},
	}, nil
}

func (r *Run) started() map[string]any {
	bounds := map[string]any{}
	for tag, n := range r.task.Bounds.pool() {
		bounds[tag] = n
	}
	if d := r.task.Bounds.Deadline; d > 0 {
		bounds["deadline_s"] = d.Seconds()
	}
	labels := map[string]any{}
	for k, v := range r.task.Labels {
		labels[k] = v
	}
	return map[string]any{"block": valid(r.block), "project": valid(r.ws.project), "profile": "dev", "budget": bounds, "sandbox": false,
		"context_files": []any{}, "labels": labels}
}

// ending carries a run to its one ending, whoever reaches it first: the script, or
// the watchdog over a script that does not stop.
type ending struct {
	*live
	start  time.Time
	once   sync.Once
	done   chan struct{}
	result Result

	player *record.Player // answers of a replay; nil on a live run
}

// run opens the engine, watches it and gives what the block returned.
func (e *ending) run(ctx context.Context) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = kernel.Errorf("run", kernel.Internal, "the host panicked: %v", p)
		}
	}()
	if d := e.task.Bounds.Deadline; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, &deadlineError{d})
		defer cancel()
	}
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	seam, err := e.seam(e.ws.opts.Client)
	if err != nil {
		return nil, err
	}
	engine, err := lua.New(e.host(ctx, seam, seam.Player), lua.Options{Digest: e.ws.digest, KindOf: kindOf})
	if err != nil {
		return nil, err
	}
	alone := e.task.Exit != nil
	if alone {
		tune(e.task.Bounds.Heap)
	}
	dog := &vm.Watchdog{
		Heap:      e.task.Bounds.Heap,
		Alone:     alone,
		Interrupt: interrupt,
		OnStuck:   func(cause error) { e.finish(nil, cause, true) },
	}
	e.player = seam.Player
	dog.Start(ctx)
	value, err = engine.Run(ctx, e.chunk)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		// A syscall that the cut reached first raised it: the cut is what ended the run.
		err = cause
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	if engine.Close(closing) > 0 {
		// A task that nothing stops: the same ending as a stuck block.
		if err == nil {
			err = kernel.Errorf("run", kernel.Timeout, "a task did not stop when the run ended")
		}
		e.finish(nil, err, true)
	}
	dog.Stop()
	if seam.Record != nil {
		if rerr := seam.Record.Close(); rerr != nil && err == nil {
			err = rerr
		}
	}
	if err == nil {
		err = returnable(value, "$")
	}
	if err == nil {
		// What has no JSON is the block's error, before anything is recorded of it.
		if _, jerr := logjson.Marshal(value); jerr != nil {
			err = kernel.Errorf("run", kernel.Validation, "the block returned what has no JSON: %s", kernel.Message(jerr))
		}
	}
	return value, err
}

// kindOf gives vm the kernel's kinds.
func kindOf(err error) (kind, message string) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return string(kernel.Cancelled), err.Error()
	}
	return string(kernel.KindOf(err)), kernel.Message(err)
}

// returnable refuses what has no JSON: a function or a handle.
func returnable(v any, path string) error {
	switch x := v.(type) {
	case *vm.Func, *vm.Object, *vm.Ref:
		return kernel.Errorf("run", kernel.Validation, "the block returned a %s at %s; it returns text, a number, a boolean, a table of those, or nothing", vm.TypeName(v), path)
	case []any:
		for i, e := range x {
			if err := returnable(e, fmt.Sprintf("%s[%d]", path, i+1)); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range x {
			if err := returnable(e, path+"."+k); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstGC is what a process of the script's own may allocate before its first
// collection: most runs end before it. It is in percent of the runtime's 4 MiB.
const firstGC = 600

// tune makes the collector stay away from short runs, and keep long ones below their
// bound: it works the harder, the nearer the process comes to it. A host that set
// either by itself keeps what it set.
func tune(heap int64) {
	if heap == 0 {
		heap = vm.DefaultHeap
	}
	if debug.SetMemoryLimit(-1) > heap {
		debug.SetMemoryLimit(heap)
	}
	usual := debug.SetGCPercent(firstGC)
	if usual != 100 {
		debug.SetGCPercent(usual)
		return
	}
	// The first collection frees the mark, and with it things are as usual.
	mark := new([64]byte)
	runtime.AddCleanup(mark, func(percent int) { debug.SetGCPercent(percent) }, usual)
}

// sqliteURL reads the path of a script's own store; relative ones start at the
// project's directory. Under ASHLAR_HOME there is only the run's own.
func (l *live) sqliteURL(path string) (string, error) {
	if path == "" {
		return "", vm.Errorf(string(kernel.Validation), "store.sqlite is an empty path")
	}
	if "sqlite:"+path == l.ws.url {
		return l.ws.url, nil
	}
	abs := ""
	for _, file := range storeFiles(path) {
		resolved, err := l.ws.area().Resolve(file)
		if err != nil {
			return "", err
		}
		abs = firstOf(abs, resolved)
	}
	return "sqlite:" + abs, nil
}

// AddSink adds a sink before the run is executed.
func (r *Run) AddSink(s Sink) { r.task.Sinks = append(r.task.Sinks, s) }
