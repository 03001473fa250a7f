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
	"ashlar/kernel/event"
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

// flushTime is how long what buffers may take at the end of the run.
func (e *ending) flushTime() time.Duration {
	if e.result.StoppedBy != "" {
		return StreamFlushCut
	}
	return StreamFlush
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

// finish records the ending, buries what is left and releases Execute. stuck means
// that the script still runs: the process has to end, and if the record or whoever
// waits for Execute takes too long, it ends without them.
func (e *ending) finish(value any, err error, stuck bool) {
	e.once.Do(func() {
		exit := func(code int) *time.Timer {
			if !stuck || e.task.Exit == nil {
				return nil
			}
			return time.AfterFunc(stuckTell, func() {
				e.flush()
				e.task.Exit(code)
			})
		}
		state, cut, signal := verdict(err)
		late := exit(Result{Status: string(state), StoppedBy: firstOf(e.handle.Bound(), cut), Err: err, signal: signal}.Code())
		if late != nil {
			late.Reset(stuckTime)
		}
		e.settle(value, err, stuck)
		if late != nil {
			late.Stop()
		}
		exit(e.result.Code())
		close(e.done)
	})
}

// flush gives the sinks that have a buffer their last moment.
func (e *ending) flush() {
	spans := make(chan struct{})
	go func() {
		defer close(spans)
		e.spans.close(StreamFlushCut)
	}()
	for _, s := range e.task.Sinks {
		if f, ok := s.(interface{ Close(time.Duration) bool }); ok {
			f.Close(StreamFlushCut)
		}
	}
	<-spans
}

// verdict turns how the block ended into a state and, where a bound, a cancel or a
// signal cut it, into the reason.
func verdict(err error) (state run.State, cut string, signal int) {
	var (
		exit     *vm.Exit
		sig      *Signal
		deadline *deadlineError
		heap     *vm.HeapError
	)
	switch {
	case err == nil:
		return run.Completed, "", 0
	case errors.As(err, &exit) && exit.Deferred != "":
		return run.Deferred, "", 0
	case errors.As(err, &exit) && exit.Code == 0:
		return run.Completed, "", 0
	case errors.As(err, &sig):
		return run.Cancelled, "signal", sig.Number
	case errors.As(err, &deadline):
		return run.Failed, "deadline", 0
	case errors.As(err, &heap):
		return run.Failed, "memory", 0
	case errors.Is(err, context.Canceled):
		return run.Cancelled, "cancel", 0
	}
	return run.Failed, "", 0
}

// settle writes the ending: the sessions that are open, the run's row and its
// event, and the last line of the stream.
func (e *ending) settle(value any, err error, stuck bool) {
	record, bury := recordTime, buryGrace
	if stuck {
		record, bury = stuckTime, stuckBury
	}
	ctx, cancel := context.WithTimeout(context.Background(), record)
	defer cancel()
	state, cut, signal := verdict(err)
	if cut == "deadline" || cut == "memory" {
		e.handle.Fired(cut)
	}
	if state == run.Completed {
		err = nil
	}
	burial, done := context.WithTimeout(ctx, bury)
	if berr := e.starter.Close(burial); berr != nil {
		e.ws.opts.Notice(e.ws.redact.String("child processes: " + berr.Error()))
	}
	done()
	e.stdout.flush()
	e.stderr.flush()
	e.closeSessions(ctx, err, cut)
	// A cut that is no bound still says what stopped the run.
	stopped := firstOf(e.handle.Bound(), cut)
	out := run.Outcome{State: state, StoppedBy: stopped}
	if err != nil {
		out.Error = errorObject(err)
	} else {
		out.Result = value
	}
	serr := e.handle.Settle(ctx, out)
	if errors.Is(serr, kernel.Validation) {
		// What cannot be recorded is no reason to leave the run without an end.
		again := run.Outcome{State: state, StoppedBy: stopped, Error: errorObject(firstError(err, serr))}
		if state == run.Completed {
			again.State = run.Failed
		}
		if aerr := e.handle.Settle(ctx, again); aerr != nil {
			e.ws.opts.Notice("the end of the run: " + aerr.Error())
		}
	}
	e.result = Result{
		Run: e.handle.ID(), Status: string(state), StoppedBy: stopped, Usage: e.total(), Err: err,
		Elapsed: e.ws.opts.Clock.Now().Sub(e.start), Abandoned: stuck, signal: signal, Heads: map[string]string{},
	}
	if e.player != nil {
		e.result.Unused = e.player.Left()
	}
	switch {
	case err == nil && serr == nil:
		e.result.Value = value
	case err == nil:
		e.result.Err, e.result.Status = serr, string(run.Failed)
	case serr != nil && !errors.Is(serr, kernel.Validation):
		// The run failed already; that its end is not in the log is said beside it.
		e.ws.opts.Notice("the end of the run is not recorded: " + e.ws.redact.String(serr.Error()))
	}
	e.heads(ctx)
	e.emit.emit("run_finished", "", "", e.finished())
}

// firstError gives the first of two that is one.
func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// closeSessions ends what the block left open: dropped after a normal ending, error
// after a cut or a failure.
func (e *ending) closeSessions(ctx context.Context, err error, cut string) {
	reason, detail := session.ReasonDropped, ""
	if err != nil {
		reason, detail = session.ReasonError, firstOf(cut, valid(e.ws.redact.String(err.Error())))
	}
	for _, b := range e.openBooks() {
		if cerr := b.CloseRun(ctx, reason, detail); cerr != nil {
			e.ws.opts.Notice("closing sessions: " + cerr.Error())
		}
	}
}

// heads gives the ends of the run's streams: what a cut tail would have to forge.
// Those of the run's own store came with the ending.
func (e *ending) heads(ctx context.Context) {
	ended := e.handle.Ended()
	e.result.Sessions = ended.Sessions
	put := func(h event.Head) { e.result.Heads[h.Stream] = fmt.Sprintf("%d:%s", h.Seq, h.Hash) }
	for _, h := range ended.Heads {
		put(h)
	}
	for _, stream := range ended.Sessions {
		if e.result.Heads[stream] != "" {
			continue
		}
		for _, s := range e.storesOf() {
			if h, err := s.Head(ctx, stream); err == nil && h.Seq > 0 {
				put(h)
				break
			}
		}
	}
}

// finished is the last line's fields.
func (e *ending) finished() map[string]any {
	heads := map[string]any{}
	for stream, h := range e.result.Heads {
		heads[stream] = h
	}
	f := map[string]any{
		"status": e.result.Status, "usage": e.result.Usage, "elapsed_s": e.result.Elapsed.Seconds(), "heads": heads,
	}
	if e.result.StoppedBy != "" {
		f["stopped_by"] = e.result.StoppedBy
	}
	if e.result.Err != nil {
		f["error"] = errorObject(e.result.Err)
	} else if text, err := e.result.Text(); err == nil && text != "" {
		f["result"] = map[string]any{"bytes": int64(len(text)), "sha256": sha256Hex(text)}
	}
	return f
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
