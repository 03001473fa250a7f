package ashlar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/run"
	"ashlar/kernel/session"
	"ashlar/vm"
)

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

// flushTime is how long what buffers may take at the end of the run.
func (e *ending) flushTime() time.Duration {
	if e.result.StoppedBy != "" {
		return StreamFlushCut
	}
	return StreamFlush
}
