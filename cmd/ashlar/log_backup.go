package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ashlar/kernel"
)

func newLogBackup(p *process, f *logFlags) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Copy the whole log to a new file while runs go on",
		Long: `Copy the whole log, as it is at one moment, to a new file, which is a store of
its own: --store sqlite:FILE reads it. Runs go on writing meanwhile.`,
		Example: "  ashlar log backup ~/kernel-backup.db",
		Args:    oneArg("a file to make"),
		RunE: func(c *cobra.Command, args []string) error {
			ws, l, err := p.log(c, f)
			if err != nil {
				return err
			}
			defer ws.Close()
			ctx, stop := p.signals(c.Context())
			defer stop()
			err = l.Backup(ctx, args[0])
			if errors.Is(err, kernel.Validation) {
				return usagef("%s", kernel.Message(err))
			}
			if err != nil {
				return signalled(ctx, err)
			}
			if f.json {
				return writeJSON(p.stdout, map[string]any{"backup": args[0]})
			}
			_, err = fmt.Fprintf(p.stderr, "the log is in %s\n", args[0])
			return err
		},
	}
}
