// Package sh is the namespace sh: bounded commands through kernel/proc. A command
// never sees more of the environment than its allow-list, never outlives the run,
// and its result says what ended it.
package sh

import (
	"cmp"
	"context"
	"path/filepath"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/proc"
	"ashlar/vm"
)

// Bounds of a command whose options name none.
const (
	DefaultTimeout = 30 * time.Second
	MaxOutputBytes = proc.DefaultOutputBytes
)

// Shell is what the namespace needs of its run.
type Shell struct {
	Starter *proc.Starter
	// Environ gives the environment that children start from (the allow-list is
	// applied to it), with what the script's options add.
	Environ func(add map[string]string) []string
	// Keep keeps raw output by its hash, when it had to be made valid text.
	Keep func(ctx context.Context, b []byte) string
	// Bounds of a command whose options name none; 0 is the default.
	Timeout   time.Duration
	MaxOutput int64 // bytes of each stream
}

// Module declares the namespace.
func Module(s Shell) *vm.Module {
	return &vm.Module{
		Name: "sh",
		Doc:  "Commands, each inside its bounds. A string runs through sh -c, a list is run as it is.",
		Funcs: []vm.Function{
			{
				Name: "exec",
				Doc: "Runs a command and waits. It returns {ok, code, stdout, stderr, killed, timed_out, truncated, ended_by} for every ending; " +
					"ok is false only where it could not be started or was cut by a bound, and error then says why. Output that came before the end is kept.",
				Params: []vm.Param{
					{Name: "command", Type: vm.String, Also: []vm.Type{vm.List}},
					{Name: "opts", Type: vm.Options, Optional: true, Fields: []vm.Param{
						{Name: "cwd", Type: vm.String, Optional: true, Doc: "default: the project's directory"},
						{Name: "timeout", Type: vm.Number, Optional: true, Doc: "seconds, with a fraction; default 30"},
						{Name: "label", Type: vm.String, Optional: true, Doc: "the name for sh.kill"},
						{Name: "env", Type: vm.Map, Optional: true, Doc: "variables to add; the only way that a credential reaches a command"},
						{Name: "stdin", Type: vm.Bytes, Optional: true},
						{Name: "max_output", Type: vm.Integer, Optional: true, Doc: "bytes of each stream; default 10 MiB"},
					}},
				},
				Results: []vm.Param{{Name: "result", Type: vm.Map}},
				Effect:  vm.Write, Capability: "sh.exec", Waits: true,
				Impl: s.exec,
			},
			{
				Name: "kill", Doc: "Ends every command of that label, SIGTERM first; true if there was one.",
				Params: []vm.Param{{Name: "label", Type: vm.String}}, Results: []vm.Param{{Name: "found", Type: vm.Boolean}},
				Effect: vm.Write, Capability: "sh.exec",
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					return []vm.Value{s.Starter.Kill(c.Str(0))}, nil
				},
			},
		},
	}
}

func (s Shell) exec(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	spec, err := s.spec(c)
	if err != nil {
		return nil, err
	}
	r, err := s.Starter.Run(ctx, spec)
	out := map[string]any{
		"ok": true, "code": int64(r.Code), "killed": r.Killed, "timed_out": r.TimedOut, "truncated": r.Truncated,
	}
	s.text(ctx, c.Host, out, "stdout", r.Stdout)
	s.text(ctx, c.Host, out, "stderr", r.Stderr)
	if r.Signal != "" {
		out["signal"] = r.Signal
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out["ok"], out["code"] = false, int64(-1)
		out["error"], out["kind"] = kernel.Message(err), string(kernel.KindOf(err))
		return []vm.Value{out}, nil
	}
	out["ended_by"] = string(r.EndedBy)
	switch r.EndedBy {
	case proc.ByTimeout:
		out["ok"], out["error"] = false, "timeout after "+spec.Timeout.String()
	case proc.ByDeadline:
		out["ok"], out["error"] = false, "the run's deadline passed"
	case proc.ByOutput:
		out["ok"], out["error"] = false, "the command wrote more than max_output"
	case proc.ByCancel:
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, vm.Errorf(string(kernel.Cancelled), "the run is ending")
	}
	return []vm.Value{out}, nil
}

func (s Shell) spec(c *vm.Call) (proc.Spec, error) {
	opts := c.Map(1)
	spec := proc.Spec{Dir: c.Host.Dir, Timeout: cmp.Or(s.Timeout, DefaultTimeout), Label: opts.Str("label", "")}
	switch cmd := c.Args[0].(type) {
	case string:
		spec.Argv = []string{"sh", "-c", cmd}
	case []any:
		for i, a := range cmd {
			arg, ok := a.(string)
			if !ok {
				return spec, vm.Errorf("validation", "command[%d]: got %s, want string", i+1, vm.TypeName(a))
			}
			spec.Argv = append(spec.Argv, arg)
		}
		if len(spec.Argv) == 0 {
			return spec, vm.Errorf("validation", "command is an empty list")
		}
	}
	if dir := opts.Str("cwd", ""); filepath.IsAbs(dir) {
		spec.Dir = dir
	} else {
		spec.Dir = filepath.Join(c.Host.Dir, dir)
	}
	if t, given := opts["timeout"]; given && t != nil {
		secs := opts.Float("timeout", 0)
		if secs <= 0 || secs > (365*24*time.Hour).Seconds() {
			return spec, vm.Errorf("validation", "opts.timeout must be more than 0 seconds, got %v", secs)
		}
		spec.Timeout = time.Duration(secs * float64(time.Second))
	}
	if n := opts.Int("max_output", cmp.Or(s.MaxOutput, MaxOutputBytes)); n < 1 || n > vm.MaxStringBytes {
		return spec, vm.Errorf("validation", "opts.max_output must be 1 to %d bytes, got %d", vm.MaxStringBytes, n)
	} else {
		spec.MaxStdout, spec.MaxStderr = n, n
	}
	spec.Stdin = []byte(opts.Str("stdin", ""))
	env, err := variables(opts["env"])
	if err != nil {
		return spec, err
	}
	spec.Env = s.Environ(env)
	return spec, nil
}

func variables(v vm.Value) (map[string]string, error) {
	m, _ := v.(map[string]any)
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make(map[string]string, len(m))
	for _, name := range names {
		value, ok := m[name].(string)
		if !ok {
			return nil, vm.Errorf("validation", "opts.env.%s: got %s, want string", name, vm.TypeName(m[name]))
		}
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.IndexByte(value, 0) >= 0 {
			return nil, vm.Errorf("validation", "opts.env: %q is no variable's name, or its value holds a NUL byte", name)
		}
		out[name] = value
	}
	return out, nil
}

// text puts a stream into the result as valid text; raw bytes that had to be
// replaced are kept by their hash, as they came, and so not where they hold a secret.
func (s Shell) text(ctx context.Context, h *vm.Host, out map[string]any, key string, b []byte) {
	if utf8.Valid(b) {
		out[key] = string(b)
		return
	}
	text := strings.ToValidUTF8(string(b), "\uFFFD")
	out[key] = text
	out["sanitised"] = true
	if s.Keep == nil || h.Redact(text) != text {
		return
	}
	if hash := s.Keep(context.WithoutCancel(ctx), b); hash != "" {
		out[key+"_raw"] = hash
	}
}
