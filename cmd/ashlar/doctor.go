package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel/proc"
	"ashlar/kernel/store"
	"ashlar/stdlib/llm"
)

// check is one line of doctor.
type check struct {
	name, state, detail string // state: ok, off, bad
}

func newDoctor(p *process) *cobra.Command {
	var asJSON bool
	var storeURL, project string
	c := &cobra.Command{
		Use: "doctor", Short: "What works here: providers and keys, processes, the log",
		Long: `Say what works on this machine, and what config.toml sets, each value with the file
and line that it stands in. Keys are named, never shown. A command that a script
starts without the sandbox can write to $ASHLAR_HOME: only std.fs, io and the
built-in tools are kept out of it.`,
		Example: "  ashlar doctor",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ws, err := p.open(c, ashlar.Options{Store: storeURL, Project: project})
			if err != nil {
				return err
			}
			defer ws.Close()
			checks := p.checks(c.Context(), ws)
			bad := false
			var list []any
			for _, k := range checks {
				bad = bad || k.state == "bad"
				if asJSON {
					list = append(list, map[string]any{"name": k.name, "state": k.state, "detail": k.detail})
					continue
				}
				fmt.Fprintf(p.stdout, "%-4s %-22s %s\n", k.state, k.name, k.detail)
			}
			if asJSON {
				if err := writeJSON(p.stdout, list); err != nil {
					return err
				}
			}
			if bad {
				return &exitError{ashlar.ExitFailed}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVarP(&project, "project", "p", "", "the project's `DIR` (default ASHLAR_PROJECT, then .)")
	c.Flags().StringVar(&storeURL, "store", "", "the store to look at (default ASHLAR_STORE, then $ASHLAR_HOME/kernel.db)")
	return c
}

func (p *process) checks(ctx context.Context, ws *ashlar.Workspace) []check {
	out := []check{
		{"version", "ok", versionLine()},
		{"platform", "ok", runtime.GOOS + "/" + runtime.GOARCH},
		{"project", "ok", ws.Project()},
		{"home", "ok", ws.Home()},
		storeCheck(ctx, ws),
		processCheck(ctx, ws),
		{"sandbox", "off", "not in this build: a command that a script starts can write to ASHLAR_HOME"},
	}
	for _, pr := range ws.Providers() {
		out = append(out, providerCheck(ws, pr))
	}
	for _, name := range []string{"sh", "git"} {
		out = append(out, commandCheck(name))
	}
	for _, name := range []string{"ASHLAR_HOME", "ASHLAR_STORE", "ASHLAR_PROJECT", "ASHLAR_MODEL", "ASHLAR_BASE_URL", "ASHLAR_API_KEY",
		"ASHLAR_LOG", "ASHLAR_TRACE_ID", "ASHLAR_RUN_ID", "ASHLAR_AGENT_ID", "ASHLAR_AGENT_NAME", "ASHLAR_UNSEAL", "NO_COLOR"} {
		out = append(out, p.variable(ws, name))
	}
	for _, s := range ws.Settings() {
		out = append(out, check{s.Key, "ok", s.Value + " (" + s.Source + ")"})
	}
	return out
}

func storeCheck(ctx context.Context, ws *ashlar.Workspace) check {
	path, ok := strings.CutPrefix(ws.StoreURL(), "sqlite:")
	if !ok {
		return check{"log", "ok", ws.StoreURL()}
	}
	st, err := os.Stat(path)
	if err != nil {
		return check{"log", "ok", path + " (the first run makes it)"}
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return check{"log", "bad", fmt.Sprintf("%s is readable by others (%#o): chmod 600 it", path, mode)}
	}
	s, err := ws.Store(ctx)
	if err != nil {
		return check{"log", "bad", err.Error()}
	}
	heads, err := s.Streams(ctx, "", store.MaxPage)
	if err != nil {
		return check{"log", "bad", err.Error()}
	}
	how := ""
	if ashlar.Alone(s) {
		how = "; one process at a time: the file system has no shared memory"
	}
	return check{"log", "ok", fmt.Sprintf("%s, %d KiB, %d streams%s", path, st.Size()>>10, len(heads), how)}
}

// processCheck runs a trivial command through the guard, as scripts do.
func processCheck(ctx context.Context, ws *ashlar.Workspace) check {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s := proc.New(proc.Options{})
	defer s.Close(ctx)
	_, err := s.Run(ctx, proc.Spec{Argv: []string{"sh", "-c", ":"}, Dir: ws.Project(), Env: []string{"PATH=" + ws.Getenv("PATH")}})
	if err != nil {
		return check{"processes", "bad", err.Error()}
	}
	return check{"processes", "ok", "guarded: nothing outlives a run"}
}

func providerCheck(ws *ashlar.Workspace, pr llm.Provider) check {
	name := "provider " + pr.Name
	switch {
	case pr.KeyEnv == "":
		return check{name, "off", "a local server at " + pr.BaseURL + "; no key"}
	case ws.Getenv(pr.KeyEnv) != "":
		return check{name, "ok", pr.KeyEnv + " is set"}
	}
	return check{name, "off", pr.KeyEnv + " is not set"}
}

func commandCheck(name string) check {
	path, err := exec.LookPath(name)
	if err != nil {
		return check{"command " + name, "off", "not found"}
	}
	return check{"command " + name, "ok", filepath.Clean(path)}
}

// variable says where a variable of ours comes from; a credential's value is not shown.
func (p *process) variable(ws *ashlar.Workspace, name string) check {
	value := p.getenv(name)
	if value == "" {
		return check{name, "off", "not set"}
	}
	if shown := ws.Redact(value); shown != value {
		value = "set"
	}
	return check{name, "ok", value + " (environment)"}
}
