package ashlar

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/vm"
)

// replayStall is how long nothing may move, while no Lua runs, before the replay is
// held to have come to a stop: what its script waits for is not in the record.
const replayStall = 3 * time.Second

// errRecordEnds stops a replay that has done all that is recorded of a run that was cut
// or killed.
var errRecordEnds = errors.New("the record ends here")

// place is a call's place in a run.
type place struct {
	task int
	k    int64
}

// replaying is a run that is made again from its record. It implements vm.Replay,
// vm.Clock and vm.Timers.
type replaying struct {
	rec   *recording
	from  store.Reader // the log itself, for the bodies of what differs
	ws    *Workspace
	opts  ReplayOptions
	clock ident.Clock
	gate  *gate // over the run's own store
	stop  context.CancelCauseFunc

	calls map[place]run.Syscall
	last  map[int]int64 // of each task, its last recorded call
	multi bool          // more than the block itself ran
	// outcomes is how many calls have one in the record.
	outcomes int

	mu        sync.Mutex
	stores    map[string]store.Store
	scratch   []store.Store // to be closed
	held      bool          // somebody has the lock
	stalled   int64         // moves until the last look of the watch
	moves     int64         // what happened so far
	turn      int64         // the next hand-over, where the lock is free
	waiting   []int         // who asks for it
	tasks     int           // that there are, where the lock is free
	writing   int           // transactions that wait for their turn
	parked    []vm.Entry    // calls that never returned
	halting   chan struct{} // closed when the script is stopped: nothing is compared any more
	answered  int
	over      bool // the script has ended
	ended     bool // the record has
	different *Difference
}

func newReplaying(rec *recording, from store.Reader, w *Workspace, o ReplayOptions) *replaying {
	a := &replaying{rec: rec, from: from, ws: w, opts: o, clock: w.opts.Clock, calls: map[place]run.Syscall{}, last: map[int]int64{}, stores: map[string]store.Store{}, halting: make(chan struct{})}
	for _, c := range rec.journal.Syscalls {
		if c.K == 0 {
			continue
		}
		a.calls[place{c.Task, c.K}] = c
		a.last[c.Task] = max(a.last[c.Task], c.K)
		if !c.Mark {
			a.outcomes++
		}
		a.multi = a.multi || c.Task != 0
	}
	for _, task := range rec.journal.Handovers {
		a.multi = a.multi || task != 0
	}
	return a
}

// open gives the scratch store that stands for the one of that URL.
func (a *replaying) open(ctx context.Context, url string) (store.Store, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if url == a.ws.url {
		url = a.rec.url
	}
	if s, ok := a.stores[url]; ok {
		return s, nil
	}
	g := newGate(nil, a, url)
	s, err := sqlite.OpenMemory(ctx, "replay", sqlite.Options{Now: g.clock, Redact: a.ws.redact.Bytes})
	if err != nil {
		return nil, err
	}
	g.Store = s
	if url == a.rec.url {
		a.gate = g
	}
	a.stores[url] = g
	a.scratch = append(a.scratch, s)
	return g, nil
}

func (a *replaying) close() (err error) {
	for _, s := range a.scratch {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Record implements vm.Journal: a replay records nothing.
func (a *replaying) Record(vm.Entry) {}

// Handover implements vm.Journal.
func (a *replaying) Handover(int64, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moves++
	a.held, a.waiting = true, nil
}

// Turn implements vm.Replay. What was not recorded went to the block itself.
func (a *replaying) Turn(n int64) (task int, ok bool) {
	if list := a.rec.journal.Handovers; n <= int64(len(list)) {
		return list[n-1], true
	}
	return 0, a.rec.settled != nil && a.rec.cut == ""
}

// Idle implements vm.Replay.
func (a *replaying) Idle(n int64, waiting []int, live int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moves++
	a.held, a.turn, a.waiting, a.tasks = false, n, waiting, live
}

// moved notes that something was written.
func (a *replaying) moved() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.moves++
	a.writing = 0 // who waited tries again
}

// Answer implements vm.Replay.
func (a *replaying) Answer(now vm.Entry) (vm.Entry, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.different != nil || a.ended {
		return vm.Entry{}, false, a.stopped()
	}
	a.moves++
	old, ok := a.calls[place{now.Task, now.K}]
	switch {
	case !ok && now.Again:
		return vm.Entry{}, false, nil
	case !ok:
		return a.unanswered(now)
	case old.Name != now.Name, old.Again != now.Again:
		return vm.Entry{}, false, a.say(a.callDiffers(now, old, "the script makes another call"))
	case now.Again:
		a.answered++
		return entryOf(old), true, nil
	case a.live(now):
		a.answered++
		return vm.Entry{}, false, nil
	}
	if old.Mark {
		d := a.callDiffers(now, old, "the record has no outcome of this call: it is larger than the journal keeps, or no text")
		d.Kind = DiffersHole
		return vm.Entry{}, false, a.say(d)
	}
	if !a.sameArgs(now, old) {
		return vm.Entry{}, false, a.say(a.callDiffers(now, old, "its arguments are others"))
	}
	a.answered++
	return entryOf(old), true, nil
}

// live reports whether a call is to be carried out although its outcome is known.
func (a *replaying) live(now vm.Entry) bool {
	return a.opts.LiveTools && now.Tool || a.opts.LiveModel && strings.HasPrefix(now.Name, "llm.")
}

// unanswered decides about a call that the record does not hold. mu is held.
func (a *replaying) unanswered(now vm.Entry) (vm.Entry, bool, error) {
	if now.K < a.last[now.Task] {
		return vm.Entry{}, false, a.say(a.callDiffers(now, run.Syscall{}, "the record lacks this call, and holds later ones of its task"))
	}
	whole := a.rec.settled != nil && a.rec.cut == ""
	if now.Task == 0 && whole {
		return vm.Entry{}, false, a.say(a.callDiffers(now, run.Syscall{}, "the recorded run had ended before this call"))
	}
	if !a.multi && !whole {
		a.finish()
		return vm.Entry{}, false, errRecordEnds
	}
	a.parked = append(a.parked, now)
	return vm.Entry{}, false, vm.ErrNeverReturned
}

// sameArgs compares the arguments of a call with those of the recorded one.
func (a *replaying) sameArgs(now vm.Entry, old run.Syscall) bool {
	if now.Hash != "" || old.ArgsHash != "" {
		return now.Hash == old.ArgsHash
	}
	return bytes.Equal(a.args(now), a.ws.comparable(old.Args))
}

// args are the arguments of a call as they are compared.
func (a *replaying) args(e vm.Entry) []byte { return a.ws.comparable(keptList(e.Args)) }

// entryOf gives a recorded call as the script had it.
func entryOf(c run.Syscall) vm.Entry {
	e := vm.Entry{N: c.N, Task: c.Task, K: c.K, Name: c.Name, Again: c.Again, Notes: c.Notes}
	if c.Result != nil {
		e.Result = revivedList(c.Result)
	}
	for _, s := range c.Steps {
		if list, ok := s.([]any); ok {
			e.Steps = append(e.Steps, revivedList(list))
		}
	}
	if c.Error != nil {
		text := func(key string) string { s, _ := c.Error[key].(string); return s }
		e.Err = &vm.Error{Namespace: text("namespace"), Function: text("function"), Kind: text("kind"), Message: text("message")}
	}
	return e
}

func (a *replaying) callDiffers(now vm.Entry, old run.Syscall, why string) *Difference {
	d := &Difference{Kind: DiffersCall, Stream: a.rec.row.Stream(), Seq: old.Seq, Why: why, Task: now.Task, Call: now.K,
		Replayed: now.Name + " " + string(a.args(now))}
	if now.Hash != "" {
		d.Replayed = now.Name + " with arguments of hash " + now.Hash
	}
	if now.Again {
		d.Replayed = now.Name
	}
	switch {
	case old.Name == "":
	case old.ArgsHash != "":
		d.Recorded = old.Name + " with arguments of hash " + old.ArgsHash
	case old.Again || old.Mark:
		d.Recorded = old.Name
	default:
		d.Recorded = old.Name + " " + string(a.ws.comparable(old.Args))
	}
	if old.Name == "" {
		d.Seq = a.seqBefore(now)
	}
	return d
}

// seqBefore is the event of the newest recorded call of a task before one that is
// missing.
func (a *replaying) seqBefore(now vm.Entry) (seq int64) {
	for k := now.K - 1; k > 0 && seq == 0; k-- {
		seq = a.calls[place{now.Task, k}].Seq
	}
	return seq
}

// text shows a recorded event; the body of a request is read for it.
func (a *replaying) text(e event.Event) string {
	if e.Kind == event.LLMRequest && string(e.Data) == "{}" {
		page, _, err := a.from.Events(context.Background(), e.Stream, store.Query{From: e.Seq, Limit: 1, Bodies: true})
		if err == nil && len(page) == 1 {
			e.Data = page[0].Data
		}
	}
	return eventText(e)
}

// say keeps the first difference and stops the script. mu is held.
func (a *replaying) say(d *Difference) error {
	if a.different == nil && !a.ended {
		a.different = d
		a.halt(d)
	}
	return a.stopped()
}

// finish notes that all of the record was replayed, of a run that came to no end of its
// own. mu is held.
func (a *replaying) finish() {
	if a.different == nil && !a.ended {
		a.ended = true
		a.halt(errRecordEnds)
	}
}

// halt stops the script, and lets go of what waits.
func (a *replaying) halt(cause error) {
	a.stop(cause)
	close(a.halting)
}

// halted reports whether the script was stopped.
func (a *replaying) halted() bool {
	select {
	case <-a.halting:
		return true
	default:
		return false
	}
}

func (a *replaying) stopped() error {
	if a.different != nil {
		return a.different
	}
	return errRecordEnds
}

// fault is what ends a script that the replay has stopped.
func (a *replaying) fault() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &vm.Fault{Err: a.stopped()}
}
