package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"ashlar"
)

// replayText is how much of a side of a difference is printed: a screen.
const replayText = 1200

func newReplay(p *process) *cobra.Command {
	var o ashlar.ReplayOptions
	var storeURL string
	var asJSON bool
	c := &cobra.Command{
		Use: "replay RUN", Short: "Run a recorded run again and compare",
		Long: `Run the block of a recorded run again, without network, files or commands: every read
and write of its script, model calls included, is answered from the log, in the recorded
order of its tasks. Every event that the run writes must be the recorded one, to the hash.
The first difference is shown with both sides, and where in the script it came up.

Exit 0: equal. 1: different, or not exactly replayable, and it is said why. 2: usage.
A block or module that changed since is named, and nothing is run; --changed runs it.
What differs from run to run by itself: the address in tostring of a table or function.`,
		Example: "  ashlar replay RUN\n  ashlar replay RUN --live-model --json",
		Args:    oneArg("a run's id"),
		RunE: func(c *cobra.Command, args []string) error {
			ws, err := p.open(c, ashlar.Options{Store: storeURL})
			if err != nil {
				return err
			}
			defer ws.Close()
			if _, err := ws.Log(c.Context()); err != nil {
				return err
			}
			ctx, stop := p.signals(c.Context())
			defer stop()
			r, err := ws.Replay(ctx, args[0], o)
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(p.stdout, replayObject(r))
			} else {
				err = printReplay(p.stdout, r)
			}
			if err == nil && !r.Equal {
				err = &exitError{ashlar.ExitFailed}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&o.Changed, "changed", false, "replay although the block or a module has changed")
	c.Flags().BoolVar(&o.LiveModel, "live-model", false, "send the model calls; the rest comes from the record")
	c.Flags().BoolVar(&o.LiveTools, "live-tools", false, "carry out what the handlers of tools do; the rest comes from the record")
	c.Flags().StringVar(&storeURL, "store", "", "sqlite:PATH (default ASHLAR_STORE, then $ASHLAR_HOME/kernel.db)")
	return c
}

func printReplay(w io.Writer, r *ashlar.ReplayReport) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	verdict := "equal"
	switch d := r.Difference; {
	case d != nil && d.Kind == ashlar.DiffersHole, d == nil && !r.Equal:
		verdict = "not exactly replayable"
	case d != nil:
		verdict = "different"
	}
	line("%s: run %s, %d events and %d calls compared in %.2fs", verdict, r.Run, r.Events, r.Calls, r.Elapsed.Seconds())
	if r.Cut != "" {
		line("the run was cut (%s): it is compared up to there", r.Cut)
	} else if r.Status == "lost" {
		line("the run was killed: it is compared up to the end of its record")
	}
	for _, h := range r.Holes {
		line("hole: %s", oneLine(h))
	}
	if len(r.Changed) > 0 {
		line("changed since: %s", oneLine(strings.Join(r.Changed, ", ")))
	}
	if n := len(r.Abroad); n > 0 {
		line("not compared: %d sessions in other stores", n)
	}
	if d := r.Difference; d != nil {
		line("%s", oneLine(strings.TrimPrefix(d.Error(), "replay: ")))
		if d.Call > 0 {
			line("  call %d of task %d", d.Call, d.Task)
		}
		line("  recorded: %s", side(d.Recorded))
		line("  replayed: %s", side(d.Replayed))
		if d.Position != "" {
			line("  in the script at %s", oneLine(d.Position))
		}
		for t := range strings.Lines(d.Traceback) {
			line("    %s", oneLine(strings.TrimSpace(t)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// side is one side of a difference, cut to a screen.
func side(text string) string {
	if text == "" {
		return "nothing"
	}
	text = oneLine(text)
	if r := []rune(text); len(r) > replayText {
		return fmt.Sprintf("%s… [%d more]", string(r[:replayText]), len(r)-replayText)
	}
	return text
}

func replayObject(r *ashlar.ReplayReport) map[string]any {
	texts := func(list []string) []any {
		out := make([]any, len(list))
		for i, s := range list {
			out[i] = s
		}
		return out
	}
	m := map[string]any{
		"run": r.Run, "equal": r.Equal, "status": r.Status, "cut": r.Cut, "events": int64(r.Events), "calls": int64(r.Calls),
		"holes": texts(r.Holes), "changed": texts(r.Changed), "not_compared": texts(r.Abroad), "elapsed_s": r.Elapsed.Seconds(), "difference": nil,
	}
	if d := r.Difference; d != nil {
		m["difference"] = map[string]any{
			"kind": d.Kind, "stream": d.Stream, "seq": d.Seq, "task": int64(d.Task), "call": d.Call, "why": d.Why,
			"recorded": d.Recorded, "replayed": d.Replayed, "position": d.Position, "traceback": d.Traceback,
		}
	}
	return m
}
