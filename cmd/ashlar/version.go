package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel/event"
)

func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}

func versionLine() string {
	return fmt.Sprintf("ashlar %s (commit %.12s, %s, log schema %d)", ashlar.Version, commit(), runtime.Version(), event.SchemaVersion)
}

func newVersion(p *process) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Version, commit, Go version, log schema",
		Example: "  ashlar version --json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				_, err := fmt.Fprintln(p.stdout, versionLine())
				return err
			}
			return json.NewEncoder(p.stdout).Encode(map[string]any{
				"version": ashlar.Version, "commit": commit(), "go": runtime.Version(), "log_schema": event.SchemaVersion,
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// noArgs refuses arguments as a mistake of the command line.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("ashlar %s takes no arguments, got %q", c.Name(), args[0])
	}
	return nil
}
