package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ashlar"
)

func newLogRm(p *process, f *logFlags) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use: "rm ID...", Short: "Take sessions and runs out of the log, each whole",
		Long: `Take sessions and runs out of the log. Each goes whole, a run with its sessions, and
leaves a tombstone in the stream "audit": what it was, how long, where its chain ended.
What a process writes is busy; what was interrupted, and could be taken up again, goes
only with --force.`,
		Example: "  ashlar log rm SESSION\n  ashlar log rm --force RUN",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("log rm takes the ids of sessions or runs")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ws, err := p.open(c, ashlar.Options{Store: f.store})
			if err != nil {
				return err
			}
			defer ws.Close()
			r, err := ws.Remove(c.Context(), args, force)
			if perr := p.removed(f, r, false); err == nil {
				err = perr
			}
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "also what was interrupted")
	return c
}

func newLogPrune(p *process, f *logFlags) *cobra.Command {
	var age string
	var dry bool
	c := &cobra.Command{
		Use: "prune --older-than AGE", Short: "Take out what has ended long ago",
		Long: `Take out every session that has ended and whose last event is older than an age, and
every run that ended before and has no session left. Sessions that could be resumed stay.`,
		Example: "  ashlar log prune --older-than 90d --dry-run\n  ashlar log prune --older-than 12h",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := days(age)
			if err != nil {
				return err
			}
			ws, err := p.open(c, ashlar.Options{Store: f.store})
			if err != nil {
				return err
			}
			defer ws.Close()
			r, err := ws.Prune(c.Context(), d, dry)
			if perr := p.removed(f, r, dry); err == nil {
				err = perr
			}
			return err
		},
	}
	c.Flags().StringVar(&age, "older-than", "", "an `AGE` such as 90d, 2w or 12h")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would go, and leave it")
	return c
}

// days reads a duration that may be in days or weeks.
func days(s string) (time.Duration, error) {
	for unit, hours := range map[string]int64{"d": 24, "w": 7 * 24} {
		if n, ok := strings.CutSuffix(s, unit); ok {
			count, err := strconv.ParseInt(n, 10, 32)
			if err != nil || count < 0 {
				return 0, usagef("--older-than %q is no age: write 90d, 2w or 12h", s)
			}
			return time.Duration(count*hours) * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usagef("--older-than %q is no age: write 90d, 2w or 12h", s)
	}
	return d, nil
}

// removed prints what went.
func (p *process) removed(f *logFlags, r ashlar.Removal, dry bool) error {
	if f.json {
		return writeJSON(p.stdout, map[string]any{"sessions": texts(r.Sessions), "runs": texts(r.Runs), "freed": r.Freed, "dry_run": dry})
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	for _, id := range r.Sessions {
		fmt.Fprintf(p.stdout, "%s session %s\n", verb, id)
	}
	for _, id := range r.Runs {
		fmt.Fprintf(p.stdout, "%s run %s\n", verb, id)
	}
	_, err := fmt.Fprintf(p.stderr, "%s %d sessions and %d runs, freed %d rows that nobody else refers to\n", verb, len(r.Sessions), len(r.Runs), r.Freed)
	return err
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
