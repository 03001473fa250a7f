package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ashlar"
	"ashlar/kernel"
)

// usageError is a mistake on the command line: exit 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// exitError carries a verb's exit code; nothing more is printed.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// Main runs the command line and gives its exit code.
func Main(args []string, p *process) int {
	root := newRoot(p)
	root.SetArgs(runForm(args))
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetIn(p.stdin)
	err := root.ExecuteContext(context.Background())
	var exit *exitError
	var usage *usageError
	switch {
	case err == nil:
		return ashlar.ExitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		fmt.Fprintf(p.stderr, "error: %s\n", usage)
		return ashlar.ExitUsage
	}
	printError(p.stderr, err)
	return ashlar.ExitFailed
}

// printError prints an error on a line.
func printError(w io.Writer, err error) {
	fmt.Fprintf(w, "error: %s\n", err)
}

// runForm turns `ashlar -s FILE …` and its like into `ashlar run -s FILE …`.
func runForm(args []string) []string {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args
	}
	switch args[0] {
	case "-h", "--help", "--version", "-v":
		return args
	}
	return append([]string{"run"}, args...)
}

func newRoot(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:   "ashlar",
		Short: "Run agents that are scripts",
		Long: `Ashlar runs agents that are scripts: a Lua block drives models and tools, and the
kernel keeps the record, the budget and the processes that it starts.`,
		Example:       "  ashlar run -s block.lua \"What is in notes.txt?\"\n  ashlar log sessions",
		Version:       versionLine(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownVerb(args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SuggestionsMinimumDistance = 2
	root.AddCommand(newRun(p), newReplay(p), newLog(p), newAPI(p), newDoctor(p), newVersion(p))
	return root
}

// verbs are the words that a slip is held against.
func verbs() []string {
	return []string{"run", "replay", "log", "api", "doctor", "version", "completion", "help"}
}

func unknownVerb(name string) error {
	if near := nearest(name, verbs()); near != "" {
		return usagef("unknown verb %q; did you mean %q? (ashlar --help lists them)", name, near)
	}
	return usagef("unknown verb %q (ashlar --help lists them)", name)
}

// flagError names the nearest flag to an unknown one.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	if i := strings.Index(text, "unknown flag: --"); i >= 0 {
		name := text[i+len("unknown flag: --"):]
		var all []string
		c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
		if near := nearest(name, all); near != "" {
			return usagef("unknown flag --%s; did you mean --%s? (ashlar %s --help lists them)", name, near, c.Name())
		}
		return usagef("unknown flag --%s (ashlar %s --help lists them)", name, c.Name())
	}
	var bad *pflag.InvalidValueError
	if errors.As(err, &bad) {
		want := map[string]string{
			"duration": "a duration such as 90s or 10m", "int": "a whole number", "int64": "a whole number", "bool": "true or false",
		}[bad.GetFlag().Value.Type()]
		switch {
		case errors.Is(err, strconv.ErrRange):
			return usagef("--%s %q: the number is too large", bad.GetFlag().Name, bad.GetValue())
		case want != "":
			return usagef("--%s %q: want %s", bad.GetFlag().Name, bad.GetValue(), want)
		}
	}
	var none *pflag.ValueRequiredError
	if errors.As(err, &none) {
		return usagef("--%s needs a value (ashlar %s --help)", none.GetFlag().Name, c.Name())
	}
	return &usageError{err}
}

// open opens the workspace that a verb works in.
func (p *process) open(c *cobra.Command, o ashlar.Options) (*ashlar.Workspace, error) {
	o.Environ = p.environ
	if o.Notice == nil {
		o.Notice = func(s string) { fmt.Fprintf(p.stderr, "notice: %s\n", s) }
	}
	ws, err := ashlar.Open(c.Context(), o)
	if errors.Is(err, kernel.Validation) {
		return nil, &usageError{err}
	}
	return ws, err
}
