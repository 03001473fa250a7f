package ashlar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/run"
)

// Replay makes a recorded run again and compares.
//
// Its block runs once more, over scratch stores in memory: every read and write of the
// script is answered from the run's journal, model calls included, and the lock goes to
// the tasks in the recorded order; nothing reaches the network, the file system or a
// process. What the script does to sessions is carried out, and each event that comes of
// it must be the recorded one, to the hash (replay_gate.go).
//
// `resume RUN` is to be the same engine: (1) Ledger.Take instead of Begin on a scratch
// store, over the log itself; (2) the gate answers a transaction that the record holds
// with the recorded events instead of writing it; (3) Answer gives ok = false instead of
// ErrNeverReturned, and the gate passes on, once everything recorded was asked for; (4)
// from there on Record and Handover write to the run's own journal; (5) a tool_call
// without a tool_result is settled as session.Resume settles it.

// ReplayOptions say how a run is replayed.
type ReplayOptions struct {
	// Changed replays although the block or a module is not what it was.
	Changed bool
	// LiveModel sends the model calls, and LiveTools carries out what the handlers of
	// tools do; the rest comes from the record.
	LiveModel, LiveTools bool

	stall  time.Duration    // 0 is replayStall
	mutate func(*recording) // of tests
}

// The kinds of a Difference.
const (
	DiffersEvent = "event" // an event is another one, or was not made
	DiffersCall  = "call"  // the script makes another call
	DiffersOrder = "order" // the tasks take their turns otherwise
	DiffersHole  = "hole"  // the record lacks an outcome: it cannot be replayed
)

// Difference is the first one between a run and its replay. It is the error that stops
// the replay.
type Difference struct {
	Kind      string
	Stream    string // of the recorded event at which it is, or belongs
	Seq       int64  // 0 where the record has none
	Task      int    // that made the call
	Call      int64  // of the task, from 1; 0 where it is no call
	Recorded  string // what the log holds; "" for nothing
	Replayed  string // what the replay made; "" for nothing
	Why       string
	Position  string // in the script: "x.lua:12"
	Traceback string

	once sync.Once
}

// At is told where in the script it came up; the first one counts.
func (d *Difference) At(position, traceback string) {
	d.once.Do(func() { d.Position, d.Traceback = position, traceback })
}

// Error names the event and both sides.
func (d *Difference) Error() string {
	text := fmt.Sprintf("replay: the first difference is at %s:%d", d.Stream, d.Seq)
	if d.Why != "" {
		text += ": " + d.Why
	}
	return text
}

// ReplayReport says what came of a replay.
type ReplayReport struct {
	Run     string
	Equal   bool     // no difference, and nothing that could not be compared
	Status  string   // how the recorded run ended: completed, failed, …; lost
	Cut     string   // what cut the recorded run; it is compared up to there
	Events  int      // that were compared
	Calls   int      // that were answered
	Holes   []string // why the record is not exact; empty where it is
	Changed []string // block and modules that are not what they were
	Abroad  []string // sessions in other stores, which were not compared
	Elapsed time.Duration

	Difference *Difference // nil where there is none
}

// Replay replays a run of the workspace's store. What the replay finds is in the report;
// its errors are those of what cannot be replayed: not_found, unsupported for a run
// without a journal, validation for one that still runs or whose block or modules have
// changed (which Changed allows).
func (w *Workspace) Replay(ctx context.Context, id string, o ReplayOptions) (*ReplayReport, error) {
	start := w.opts.Clock.Now()
	s, err := w.Store(ctx)
	if err != nil {
		return nil, err
	}
	ledger, err := w.Runs(ctx)
	if err != nil {
		return nil, err
	}
	rec, err := readRecording(ctx, s, ledger, id)
	if err != nil {
		return nil, err
	}
	if o.mutate != nil {
		o.mutate(rec)
		if rec.journal, err = run.JournalOf(rec.own); err != nil {
			return nil, err
		}
	}
	report := &ReplayReport{Run: id, Status: string(rec.row.State), Cut: rec.cut, Holes: rec.holes(), Abroad: rec.abroad}
	ws := rec.workspace(w, o)
	r, err := rec.prepare(ws)
	if err != nil {
		return nil, err
	}
	if report.Changed = rec.changed(ctx, r); len(report.Changed) > 0 && !o.Changed {
		return nil, kernel.Errorf("replay", kernel.Validation, "changed since run %s was made: %s; replay what was recorded of the old text with --changed, or bring it back", id, join(report.Changed))
	}
	if report.Difference = rec.blocked(); report.Difference != nil {
		return report, nil
	}
	again := newReplaying(rec, s, ws, o)
	defer func() {
		if cerr := again.close(); err == nil {
			err = cerr
		}
	}()
	if err := again.play(ctx, r); err != nil {
		return nil, err
	}
	report.Difference, report.Calls, report.Events = again.different, again.answered, again.gate.count()
	report.Equal = report.Difference == nil && len(report.Holes) == 0
	report.Elapsed = w.opts.Clock.Now().Sub(start)
	return report, nil
}

// prepare finds the run's block as it is now.
func (rec *recording) prepare(ws *Workspace) (*Run, error) {
	r, err := ws.Prepare(rec.task())
	if err != nil {
		return nil, err
	}
	r.given = rec.given()
	r.task.Bounds.Deadline = 0 // no time passes
	if name, ok := rec.input["name"].(string); ok && !r.task.Agent {
		r.chunk.Name = name
	}
	return r, nil
}

// play runs the block to its end, or to the first difference.
func (a *replaying) play(ctx context.Context, r *Run) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	a.stop = stop
	l, err := a.rec.live(ctx, r, a)
	if err != nil {
		return err
	}
	var watching sync.WaitGroup
	watched, done := context.WithCancel(ctx)
	stall := a.opts.stall
	if stall == 0 {
		stall = replayStall
	}
	watching.Go(func() { a.watch(watched, stall) })
	e := &ending{live: l, start: r.ws.opts.Clock.Now(), done: make(chan struct{})}
	value, err := e.run(ctx)
	done()
	watching.Wait()
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	e.finish(value, err, false)
	<-e.done
	if e.result.Abandoned {
		return kernel.Errorf("replay", kernel.Timeout, "the script did not stop when its replay was stopped")
	}
	return a.verdict(ctx)
}

// verdict looks for what the replay left out.
func (a *replaying) verdict(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.different != nil || a.ended {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if d := a.gate.left(); d != nil {
		d.Why = "the replay did not make this event"
		a.different = d
	}
	return nil
}

// refusing is the network of a replay.
type refusing struct{}

// RoundTrip implements http.RoundTripper.
func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("a replay sends nothing")
}
