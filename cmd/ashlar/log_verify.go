package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"ashlar/kernel/event"
	"ashlar/kernel/verify"
)

func newLogVerify(p *process, f *logFlags) *cobra.Command {
	var given []string
	var repair bool
	c := &cobra.Command{
		Use: "verify", Short: "Hold the whole log against its hashes, and its projections against the log",
		Long: `Recompute every chain, every content hash, every list of messages and every
projection (balances, runs, sessions, what is open) from the events, and compare. The
first fault is named with its stream, its seq and what is wrong; exit 1 when there is
one. Nothing is changed, unless --repair is given: it rebuilds the rows of projections
that are wrong, and says which. --head checks an end that was kept elsewhere, as
run_finished and log sessions print it: without one, a stream whose end was cut off
cannot be told from a shorter one.`,
		Example: "  ashlar log verify\n  ashlar log verify --head SESSION:41:9f2c…",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			heads, err := headsOf(given)
			if err != nil {
				return err
			}
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			ctx, stop := p.signals(c.Context())
			defer stop()
			r, err := l.Verify(ctx, heads, repair)
			if err != nil {
				return signalled(ctx, err)
			}
			if err := printReport(p.stdout, r, f.json); err != nil {
				return err
			}
			if !r.OK() {
				return &exitError{1}
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&given, "head", nil, "an end `STREAM:SEQ:HASH` that must be in the log; may be repeated")
	c.Flags().BoolVar(&repair, "repair", false, "rebuild the rows of projections that are wrong")
	return c
}

// headsOf reads STREAM:SEQ:HASH; a stream's own name may hold colons.
func headsOf(given []string) ([]event.Head, error) {
	var heads []event.Head
	for _, s := range given {
		bad := func(what string) ([]event.Head, error) {
			return nil, usagef("--head %q: %s; want STREAM:SEQ:HASH", s, what)
		}
		parts := strings.Split(s, ":")
		if len(parts) < 3 {
			return bad("a part is missing")
		}
		n := len(parts)
		seq, err := strconv.ParseInt(parts[n-2], 10, 64)
		if err != nil || seq < 1 {
			return bad("SEQ is no positive number")
		}
		hash, err := event.ParseHash(parts[n-1])
		if err != nil {
			return bad("HASH is no SHA-256 in hexadecimal")
		}
		name := strings.Join(parts[:n-2], ":")
		if name == "" {
			return bad("STREAM is empty")
		}
		heads = append(heads, event.Head{Stream: name, Seq: seq, Hash: hash})
	}
	return heads, nil
}

func printReport(w io.Writer, r *verify.Report, asJSON bool) error {
	if asJSON {
		faults, fixed := []any{}, []any{}
		for _, f := range r.Faults {
			m := map[string]any{"what": f.What}
			for key, v := range map[string]string{"stream": f.Stream, "projection": string(f.Table), "row": f.Key} {
				if v != "" {
					m[key] = v
				}
			}
			if f.Seq > 0 {
				m["seq"] = f.Seq
			}
			faults = append(faults, m)
		}
		for _, f := range r.Fixed {
			m := map[string]any{"projection": string(f.Table), "row": f.Key, "removed": f.Value == nil}
			fixed = append(fixed, m)
		}
		return writeJSON(w, map[string]any{
			"ok": r.OK(), "faults": faults, "more": int64(r.More), "repaired": fixed, "events": r.Events, "streams": r.Streams,
			"contents": r.Contents, "messages": r.Messages, "rows": r.Rows,
		})
	}
	var b strings.Builder
	for _, f := range r.Fixed {
		what := "rebuilt"
		if f.Value == nil {
			what = "removed"
		}
		fmt.Fprintf(&b, "repaired: projection %s, row %s: %s\n", f.Table, oneLine(f.Key), what)
	}
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault: %s\n", oneLine(f.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	state := "everything is as it was written"
	if !r.OK() {
		state = fmt.Sprintf("%d faults", len(r.Faults)+r.More)
		if len(r.Faults)+r.More == 1 {
			state = "1 fault"
		}
	}
	fmt.Fprintf(&b, "%d events in %d streams, %d pieces of content, %d messages, %d rows of projections: %s\n",
		r.Events, r.Streams, r.Contents, r.Messages, r.Rows, state)
	_, err := io.WriteString(w, b.String())
	return err
}
