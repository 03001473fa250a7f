package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel/event"
)

func newLogTail(p *process, f *logFlags) *cobra.Command {
	var n int
	var follow bool
	c := &cobra.Command{
		Use: "tail SESSION", Short: "Print the end of a session, and with -f what is added to it",
		Long: `Print the last events of a session. With -f go on with each event that is added,
by whatever process, until the session is closed (a run's stream, run:ID: until the run
has ended) or a signal comes.`,
		Example: "  ashlar log tail SESSION -n 5\n  ashlar log tail -f SESSION --json",
		Args:    oneArg("a session's id"),
		RunE: func(c *cobra.Command, args []string) error {
			if n < 0 {
				return usagef("-n must not be negative, got %d", n)
			}
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			ctx, stop := p.signals(c.Context())
			defer stop()
			err = l.Tail(ctx, args[0], n, follow, func(e event.Event) error {
				if f.json {
					return exportEvent(p.stdout, e)
				}
				return showEvent(p.stdout, e)
			})
			return signalled(ctx, err)
		},
	}
	c.Flags().IntVarP(&n, "lines", "n", 20, "the last `N` events")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is added")
	return c
}

// signalled is the exit that a signal asked for, where one has come.
func signalled(ctx context.Context, err error) error {
	var s *ashlar.Signal
	if err != nil && errors.As(context.Cause(ctx), &s) {
		return &exitError{128 + s.Number}
	}
	return err
}
