package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// runFlags are the flags of run as they were given.
type runFlags struct {
	script, block            string
	agent                    bool
	project                  string
	prompt, promptFile       string
	context, contextFile     string
	config, result           string
	labels                   []string
	model, baseURL           string
	deadline                 time.Duration
	beats, tokens, toolCalls int64
	cost                     float64
	events, store            string
	noJournal                bool
	record, replay           string
	json, quiet              bool
}

func newRun(p *process) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run [-s FILE | -a] [PROMPT]",
		Short: "Run a block, attached, and print the value that it returns",
		Long: `Run a block and print the value that it returns. With -s or -a the one positional
argument is the prompt; - reads it from standard input.

Exit codes: 0 the block returned; 1 it raised or could not start; 2 a mistake on the
command line; 3 a bound of the run refused or fired; 75 the block deferred; 128+N
ended by signal N.`,
		Example: `  ashlar run -s block.lua "Use read_file on notes.txt. What is the secret word?"
  ashlar run -a --beats 8 --deadline 2m "Say hello"
  ashlar run -s block.lua --replay testdata/demo.jsonl --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("run takes one prompt, got %d arguments; quote it", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runVerb(c, p, f, args) },
	}
	fl := c.Flags()
	fl.StringVarP(&f.script, "script", "s", "", "run this `FILE`")
	fl.StringVarP(&f.block, "block", "b", "", "run a block by `NAME` (not in this build)")
	fl.BoolVarP(&f.agent, "agent", "a", false, "run the embedded agent")
	fl.StringVarP(&f.project, "project", "p", "", "the project's `DIR` (default ASHLAR_PROJECT, then .)")
	fl.StringVar(&f.prompt, "prompt", "", "the prompt's `TEXT`")
	fl.StringVar(&f.promptFile, "prompt-file", "", "a `FILE` that holds the prompt; - is standard input")
	fl.StringVarP(&f.context, "context", "c", "", "further `TEXT` for the block")
	fl.StringVar(&f.contextFile, "context-file", "", "a `FILE` that holds it; - is standard input")
	fl.StringVar(&f.config, "config", "", "a JSON `FILE` with prompt, context, result, labels: below the flags")
	fl.StringVar(&f.result, "result", "", "write the value to this `FILE`, when the block returns")
	fl.StringArrayVar(&f.labels, "label", nil, "a label `K=V` of every session; may be repeated")
	fl.StringVar(&f.model, "model", "", "`PROVIDER/MODEL`, or a model (default ASHLAR_MODEL, then what is found)")
	fl.StringVar(&f.baseURL, "base-url", "", "the `URL` of an OpenAI-compatible server (default ASHLAR_BASE_URL)")
	fl.DurationVar(&f.deadline, "deadline", 0, "end the run after this time, such as 90s or 10m")
	fl.Int64Var(&f.beats, "beats", 0, "at most `N` beats in the whole run")
	fl.Int64Var(&f.tokens, "tokens", 0, "at most `N` tokens")
	fl.Int64Var(&f.toolCalls, "tool-calls", 0, "at most `N` tool calls")
	fl.Float64Var(&f.cost, "cost", 0, "at most this many `USD`; needs the model's price in config.toml")
	fl.StringVar(&f.events, "events", "", "write the event stream to `-`, fd:N or a file")
	fl.StringVar(&f.store, "store", "", "sqlite:PATH or mem: (default ASHLAR_STORE, then $ASHLAR_HOME/kernel.db)")
	fl.BoolVar(&f.noJournal, "no-journal", false, "keep the script's own reads and writes out of the log")
	fl.StringVar(&f.record, "record", "", "write the model traffic to a new `FILE`")
	fl.StringVar(&f.replay, "replay", "", "answer model calls from a recorded `FILE`")
	fl.BoolVar(&f.json, "json", false, "print one JSON object, on every ending")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no notices")
	return c
}

// request is what run's flags, files and config come to.
type request struct {
	task   ashlar.Task
	result string
}

func runVerb(c *cobra.Command, p *process, f runFlags, args []string) (ended error) {
	if f.json && f.events == "-" {
		return usagef("--json and --events - both claim standard output: give the events a file or fd:N")
	}
	req, err := f.request(c, p, args)
	if err == nil {
		err = f.checkText()
	}
	if err != nil {
		return p.endedEarly(f, err)
	}
	o := ashlar.Options{Project: f.project, Store: f.store, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr}
	if f.json || f.events == "-" {
		o.Stdout = p.stderr
	}
	if f.quiet {
		o.Notice = func(string) {}
	}
	ws, err := p.open(c, o)
	if err != nil {
		return p.endedEarly(f, err)
	}
	defer func() {
		// What a run queued is committed by now; a store that cannot close says otherwise.
		if err := ws.Close(); err != nil && ended == nil {
			ended = err
		}
	}()
	run, err := ws.Prepare(req.task)
	if err != nil {
		return p.endedEarly(f, asUsage(err))
	}
	if err := f.checkFiles(req.result); err != nil {
		return p.endedEarly(f, err)
	}
	for _, file := range []struct{ flag, path string }{{"--result", req.result}, {"--events", f.events}, {"--record", f.record}} {
		if err := ws.Outside(file.path); file.path != "" && err != nil {
			return p.endedEarly(f, usagef("%s: %s", file.flag, kernel.Message(err)))
		}
		if file.path != "" && sameFile(file.path, f.script) {
			return p.endedEarly(f, usagef("%s: %s is the script itself", file.flag, file.path))
		}
	}
	return p.execute(c, ws, run, f, &req)
}

// asUsage makes a mistake in what was named one of the command line.
func asUsage(err error) error {
	switch kernel.KindOf(err) {
	case kernel.Validation, kernel.NotFound, kernel.Permission, kernel.Limit:
		return &usageError{err}
	}
	return err
}

// request joins the config file and the flags; a flag wins.
func (f runFlags) request(c *cobra.Command, p *process, args []string) (request, error) {
	var req request
	t := &req.task
	if f.block != "" {
		return req, usagef("-b/--block is not in this build: name a file with -s FILE")
	}
	if f.script != "" && f.agent {
		return req, usagef("-s and -a exclude each other")
	}
	if f.script == "" && !f.agent {
		if len(args) == 1 {
			return req, usagef("running a block by name is not in this build: name a file with -s/--script FILE (or -b/--block NAME later), or use -a")
		}
		return req, usagef("nothing to run: name a file with -s/--script FILE, a block with -b/--block NAME, or use -a")
	}
	t.Script, t.Agent = f.script, f.agent
	config, err := readConfig(f.config)
	if err != nil {
		return req, err
	}
	stdin := &stdinOnce{r: p.stdin}
	if t.Prompt, err = text(c, stdin, "prompt", f.prompt, f.promptFile, args, config.Prompt); err != nil {
		return req, err
	}
	if t.Context, err = text(c, stdin, "context", f.context, f.contextFile, nil, config.Context); err != nil {
		return req, err
	}
	if t.Labels, err = labels(f.labels, config.Labels); err != nil {
		return req, err
	}
	req.result = f.result
	if req.result == "" && config.Result != nil {
		req.result = *config.Result
	}
	for name, n := range map[string]int64{"beats": f.beats, "tokens": f.tokens, "tool-calls": f.toolCalls} {
		if c.Flags().Changed(name) && n < 1 {
			return req, usagef("--%s must be at least 1, got %d", name, n)
		}
	}
	if c.Flags().Changed("cost") && !(f.cost >= 1e-6 && f.cost <= 1e9) {
		return req, usagef("--cost must be an amount of USD, at least 0.000001, got %v", f.cost)
	}
	if c.Flags().Changed("deadline") && f.deadline <= 0 {
		return req, usagef("--deadline must be more than 0, got %s", f.deadline)
	}
	t.Bounds = ashlar.Bounds{Beats: f.beats, Tokens: f.tokens, ToolCalls: f.toolCalls, Deadline: f.deadline,
		Cost: int64(math.Floor(f.cost*1e6 + 1e-6))}
	t.Model, t.BaseURL = f.model, f.baseURL
	t.NoJournal, t.Record, t.Replay = f.noJournal, f.record, f.replay
	t.Exit = p.exit
	return req, nil
}

// text gives one of prompt and context, from its flag, its file, the positional
// argument or the config file, in this order.
func text(c *cobra.Command, stdin *stdinOnce, name, value, file string, args []string, config *string) (*string, error) {
	given := 0
	var out *string
	if c.Flags().Changed(name) {
		given++
		out = &value
	}
	if len(args) == 1 {
		given++
		s, err := args[0], error(nil)
		if s == "-" {
			s, err = stdin.read(name)
		} else {
			s, err = validText("the "+name, []byte(s))
		}
		if err != nil {
			return nil, err
		}
		out = &s
	}
	if c.Flags().Changed(name + "-file") {
		given++
		s, err := readText(stdin, "--"+name+"-file", file)
		if err != nil {
			return nil, err
		}
		out = &s
	}
	if given > 1 {
		return nil, usagef("the %s is given twice: use one of --%s, --%s-file and the argument", name, name, name)
	}
	if out == nil {
		out = config
	}
	return out, nil
}

func readText(stdin *stdinOnce, flag, path string) (string, error) {
	if path == "-" {
		return stdin.read(flag)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", usagef("%s: %s cannot be read: %v", flag, path, reason(err))
	}
	return validText(flag, b)
}

// stdinOnce refuses to read standard input for two things.
type stdinOnce struct {
	r     io.Reader
	taker string
}

func (s *stdinOnce) read(taker string) (string, error) {
	if s.taker != "" {
		return "", usagef("standard input is read for %s already, not for %s too", s.taker, taker)
	}
	s.taker = taker
	b, err := io.ReadAll(s.r)
	if err != nil {
		return "", usagef("%s: standard input: %v", taker, err)
	}
	return validText(taker, b)
}

// checkText refuses what the record, which is JSON, could not hold as it is.
func (f runFlags) checkText() error {
	for _, t := range []struct{ flag, value string }{
		{"--script", f.script}, {"--project", f.project}, {"--prompt", f.prompt}, {"--context", f.context},
		{"--model", f.model}, {"--base-url", f.baseURL}, {"--label", strings.Join(f.labels, "")},
	} {
		if _, err := validText(t.flag, []byte(t.value)); err != nil {
			return err
		}
	}
	return nil
}

func validText(what string, b []byte) (string, error) {
	if !utf8.Valid(b) {
		return "", usagef("%s is not UTF-8 text", what)
	}
	return string(b), nil
}

// labels reads K=V; a number or a boolean is one.
func labels(given []string, config map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for k, v := range config {
		out[k] = v
	}
	for _, kv := range given {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, usagef("--label %q: want K=V", kv)
		}
		out[k] = v
		if parsed, err := logjson.Unmarshal([]byte(v)); err == nil {
			switch parsed.(type) {
			case int64, float64, bool:
				out[k] = parsed
			}
		}
	}
	return out, nil
}

// runConfig is the file of --config: four keys, no more.
type runConfig struct {
	Prompt, Context, Result *string
	Labels                  map[string]any
}

func readConfig(path string) (runConfig, error) {
	var out runConfig
	if path == "" {
		return out, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return out, usagef("--config: %s cannot be read: %v", path, reason(err))
	}
	m, err := logjson.Object(b)
	if err != nil {
		return out, usagef("--config: %s is no JSON object: %s", path, kernel.Message(err))
	}
	for key, v := range m {
		s, isText := v.(string)
		switch key {
		case "prompt", "context", "result":
			if !isText {
				return out, usagef("--config: %s: %s must be text", path, key)
			}
			switch key {
			case "prompt":
				out.Prompt = &s
			case "context":
				out.Context = &s
			default:
				out.Result = &s
			}
		case "labels":
			labels, ok := v.(map[string]any)
			if !ok {
				return out, usagef("--config: %s: labels must be an object", path)
			}
			for k, e := range labels {
				switch e.(type) {
				case string, bool, int64, float64:
				default:
					return out, usagef("--config: %s: labels.%s must be text, a number or a boolean", path, k)
				}
			}
			out.Labels = labels
		default:
			return out, usagef("--config: %s: unknown key %q; it takes prompt, context, result, labels", path, key)
		}
	}
	return out, nil
}

// checkFiles finds what cannot be read or written before anything is run.
func (f runFlags) checkFiles(result string) error {
	if f.replay != "" {
		if _, err := os.Stat(f.replay); err != nil {
			return usagef("--replay: %s cannot be read: %v", f.replay, reason(err))
		}
	}
	if f.record != "" {
		if _, err := os.Stat(f.record); err == nil {
			return usagef("--record: %s exists: a recording is never overwritten", f.record)
		}
	}
	events := f.events
	if events == "-" || strings.HasPrefix(events, "fd:") {
		events = ""
	}
	for _, file := range []struct{ flag, path string }{{"--result", result}, {"--events", events}, {"--record", f.record}} {
		if file.path == "" {
			continue
		}
		if err := canWrite(file.flag, file.path); err != nil {
			return err
		}
	}
	return nil
}

// dirOf is the directory that a file would be made in; a link that leads nowhere yet
// is followed.
func dirOf(path string) string {
	if to, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return filepath.Dir(path)
}

// sameFile reports whether two names lead to one file that is there.
func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// reason is what the system said of a file, without the path that we name ourselves.
func reason(err error) error {
	if e := errors.Unwrap(err); e != nil {
		return e
	}
	return err
}

// endedEarly prints the one JSON object also where nothing ran.
func (p *process) endedEarly(f runFlags, err error) error {
	if f.json && f.events != "-" {
		r := ashlar.Result{Status: "failed", Err: err}
		if werr := writeJSON(p.stdout, r.Object()); werr != nil {
			fmt.Fprintf(p.stderr, "error: %v\n", werr)
		}
	}
	return err
}

func writeJSON(w io.Writer, v any) error {
	b, err := logjson.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
