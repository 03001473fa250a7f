package ashlar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
	"ashlar/kernel/run"
	"ashlar/vm"
)

// Result is how a run ended. Err is nil when the block returned.
type Result struct {
	Run       string // the run's id; "" when it was never recorded
	Status    string // completed, failed, cancelled, deferred
	Value     any    // what the block returned; nil when nothing
	StoppedBy string // the first bound of the run that refused or fired, or "cancel" or "signal"; "" for none
	Usage     map[string]any
	Sessions  []string
	Heads     map[string]string // last hash of each session and of the run, in hexadecimal
	Elapsed   time.Duration
	Err       error
	Unused    int  // recorded answers that a replay did not ask for
	Abandoned bool // the VM could not be stopped and was left behind
	signal    int
}

// Signal is the cause to cancel a run's context with when the process got a signal.
type Signal struct{ Number int }

func (s *Signal) Error() string { return fmt.Sprintf("signal %d", s.Number) }

// Exit codes of a run (cli.md §2).
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitBound    = 3
	ExitDeferred = 75
	exitSignal   = 128
)

// Code is the exit code that the result stands for.
func (r Result) Code() int {
	switch {
	case r.signal != 0:
		return exitSignal + r.signal
	case r.Status == string(run.Deferred):
		return ExitDeferred
	case r.Status == string(run.Cancelled):
		return ExitFailed // a host's cancel is no bound of the run
	case r.StoppedBy != "":
		return ExitBound
	case r.Err != nil:
		return ExitFailed
	}
	return ExitOK
}

// Text is what goes out as the answer: a string as it is, a table as JSON, nothing
// for nil.
func (r Result) Text() (string, error) { return textOf(r.Value) }

func textOf(v any) (string, error) {
	switch x := v.(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	}
	b, err := logjson.Marshal(v)
	return string(b), err
}

// Object is the form of --json.
func (r Result) Object() map[string]any {
	sessions := []any{}
	for _, s := range r.Sessions {
		sessions = append(sessions, s)
	}
	usage := r.Usage
	if usage == nil {
		usage = map[string]any{}
	}
	m := map[string]any{
		"run": r.Run, "status": r.Status, "result": r.Value, "stopped_by": nil, "usage": usage,
		"sessions": sessions, "elapsed_s": r.Elapsed.Seconds(), "error": nil,
	}
	if r.StoppedBy != "" {
		m["stopped_by"] = r.StoppedBy
	}
	if r.Err != nil {
		m["error"] = errorObject(r.Err)
	}
	return m
}

// errorObject is an error as records and streams carry it: it always has a JSON.
func errorObject(err error) map[string]any {
	var e *vm.Error
	if errors.As(err, &e) {
		m := map[string]any{"kind": valid(firstOf(e.Kind, "script")), "message": valid(e.Error())}
		if e.Position != "" {
			m["position"] = valid(e.Position)
		}
		if e.Traceback != "" {
			m["traceback"] = valid(e.Traceback)
		}
		return m
	}
	return map[string]any{"kind": kindName(err), "message": valid(err.Error())}
}

// Explain gives an error as a person reads it. A script's own error comes with its
// traceback; what a syscall raised, and what a script raised without a position
// (error(text, 0): it is meant for whoever reads it), says what to do by itself and
// has the script's line alone. full gives the traceback always.
func Explain(err error, full bool) string {
	text := err.Error()
	var e *vm.Error
	if !errors.As(err, &e) || e.Traceback == "" {
		return text
	}
	said := e.Kind != "" || e.Value == nil && e.Position == ""
	if full || !said {
		return text + "\n" + e.Traceback
	}
	if e.Kind != "" {
		if at := scriptLine(e.Traceback); at != "" {
			text += "\n  at " + at
		}
	}
	return text
}

// scriptLine is the innermost line of a traceback that is none of ours.
func scriptLine(trace string) string {
	for line := range strings.Lines(trace) {
		at, _, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if ok && strings.Contains(at, ":") && !strings.HasPrefix(at, "embedded.") {
			return at
		}
	}
	return ""
}

// kindName is the kind of an ending's error: a cut is named by what cut it.
func kindName(err error) string {
	var (
		deadline *deadlineError
		heap     *vm.HeapError
		sig      *Signal
		exit     *vm.Exit
	)
	switch {
	case errors.As(err, &deadline):
		return string(kernel.Timeout)
	case errors.As(err, &heap):
		return string(kernel.Limit)
	case errors.As(err, &sig), errors.Is(err, context.Canceled):
		return string(kernel.Cancelled)
	case errors.As(err, &exit):
		return "exit"
	}
	return string(kernel.KindOf(err))
}
