package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel/event"
)

func newLogImport(p *process, f *logFlags) *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Add a run that was exported from another log",
		Long: `Add what ashlar log export --run RUN printed to this log, with its own times and hashes.
The file is held against its hashes first: where an event was changed, left out or
moved, nothing is written, and the event is named. What is in this log already, and the
same, stays as it is. Then the whole log is verified.`,
		Example: "  ashlar log export --run RUN > run.jsonl\n  ashlar log import --store sqlite:other.db run.jsonl",
		Args:    oneArg("a file, as log export --run prints it"),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return usagef("%v", err)
			}
			defer file.Close()
			ws, err := p.open(c, ashlar.Options{Store: f.store})
			if err != nil {
				return err
			}
			defer ws.Close()
			ctx, stop := p.signals(c.Context())
			defer stop()
			in, err := ws.Import(ctx, file)
			if err != nil {
				return signalled(ctx, err)
			}
			if err := p.imported(f, in); err != nil {
				return err
			}
			if !in.Report.OK() {
				return &exitError{ashlar.ExitFailed}
			}
			return nil
		},
	}
}

func (p *process) imported(f *logFlags, in ashlar.Imported) error {
	if f.json {
		return writeJSON(p.stdout, map[string]any{
			"imported": texts(in.Streams), "there": texts(in.There), "events": in.Events, "contents": in.Contents, "ok": in.Report.OK(),
		})
	}
	for _, id := range in.Streams {
		fmt.Fprintf(p.stdout, "imported %s\n", oneLine(id))
	}
	for _, id := range in.There {
		fmt.Fprintf(p.stdout, "there already, the same: %s\n", oneLine(id))
	}
	if _, err := fmt.Fprintf(p.stderr, "imported %d events and %d pieces of content\n", in.Events, in.Contents); err != nil {
		return err
	}
	if in.Report.OK() {
		return nil
	}
	return printReport(p.stdout, in.Report, false)
}

// exportContent prints content that an event names, which log import checks and keeps.
func exportContent(w io.Writer, h event.Hash, body []byte) error {
	return writeJSON(w, map[string]any{"content": h.String(), "base64": base64.StdEncoding.EncodeToString(body)})
}
