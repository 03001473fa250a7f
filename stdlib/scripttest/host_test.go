package scripttest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/proc"
	"ashlar/kernel/proc/guard"
	"ashlar/kernel/tool"
	"ashlar/stdlib/crypto"
	"ashlar/stdlib/env"
	"ashlar/stdlib/fs"
	httpmod "ashlar/stdlib/http"
	"ashlar/stdlib/job"
	"ashlar/stdlib/json"
	"ashlar/stdlib/log"
	"ashlar/stdlib/path"
	"ashlar/stdlib/re"
	"ashlar/stdlib/sh"
	stringmod "ashlar/stdlib/string"
	"ashlar/stdlib/task"
	"ashlar/stdlib/text"
	timemod "ashlar/stdlib/time"
	"ashlar/stdlib/tmpl"
	"ashlar/stdlib/toml"
	toolmod "ashlar/stdlib/tool"
	"ashlar/stdlib/validate"
	"ashlar/stdlib/yaml"
	"ashlar/vm"
	"ashlar/vm/lua"
)

func TestMain(m *testing.M) {
	guard.Main()
	os.Exit(m.Run())
}

const canary = "sk-canary-0123456789"

type clock struct{}

func (clock) Now() time.Time { return time.Now() }
func (clock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type environ map[string]string

func (e environ) Get(name string) (string, bool) { v, ok := e[name]; return v, ok }
func (e environ) Set(name, value string)         { e[name] = value }

type noModules struct{}

func (noModules) Load(_ context.Context, name string) (vm.Chunk, error) {
	return vm.Chunk{}, vm.Errorf("not_found", "%s", name)
}

// world is what the scripts of one test share.
type world struct {
	t    *testing.T
	dir  string // the project
	home string // ASHLAR_HOME
	env  environ
	bus  *tool.Bus
	host *vm.Host

	mu   sync.Mutex
	logs []string
	kept map[string]string
}

// children is what a command starts from in these tests.
var parent = []string{
	"PATH=" + os.Getenv("PATH"), "HOME=/home/x", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "ANTHROPIC_API_KEY=" + canary, "OPENAI_API_KEY=" + canary,
	"GITHUB_TOKEN=" + canary, "CUSTOM_SETTING=custom", "LC_SECRET=" + canary,
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: filepath.Join(root, "project"), home: filepath.Join(root, "home", ".ashlar"), env: environ{"HOME": "/home/x", "A": "1"}, kept: map[string]string{}}
	for _, d := range []string{w.dir, w.home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.file(filepath.Join(w.home, "kernel.db"), "the log")
	starter := proc.New(proc.Options{Grace: 200 * time.Millisecond})
	t.Cleanup(func() {
		if err := starter.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	redact := func(s string) string { return strings.ReplaceAll(s, canary, "[redacted:KEY]") }
	w.bus = &tool.Bus{Registry: tool.NewRegistry(), Redact: redact, Now: time.Now, Warn: func(s string) { w.log("warn", s, nil) }}
	area := fs.Area{Dir: w.dir, Home: w.home}
	keep := func(_ context.Context, b []byte) string {
		w.mu.Lock()
		defer w.mu.Unlock()
		key := fmt.Sprintf("raw%d", len(w.kept))
		w.kept[key] = string(b)
		return key
	}
	w.host = &vm.Host{
		Script: "test", Dir: w.dir, Clock: clock{}, Rand: rand.Reader, Env: w.env, Files: area,
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Loader: noModules{}, Redact: redact, Log: w.log,
	}
	w.host.Modules = []*vm.Module{
		log.Module(), env.Module("agent-1"), json.Module(area), path.Module(), timemod.Module(), fs.Module(area), crypto.Module(),
		yaml.Module(), toml.Module(), stringmod.Module(), text.Module(), re.Module(), tmpl.Module(), validate.Module(),
		task.Module(w.host), job.Module(), toolmod.Module(w.bus, nil),
		httpmod.Module(httpmod.Client{HTTP: &http.Client{}, Trace: map[string]string{"x-trace-id": "trace-1", "x-run-id": ""}, Keep: keep}),
		sh.Module(sh.Shell{Starter: starter, Keep: keep, Environ: func(add map[string]string) []string {
			return proc.Environment{Parent: parent, Set: add}.List()
		}}),
	}
	return w
}

func (w *world) log(level, msg string, _ map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, level+": "+msg)
}

// file writes a file of the test's own, past std.fs.
func (w *world) file(path, content string) {
	w.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// link makes a symbolic link of the test's own.
func (w *world) link(target, path string) {
	w.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.dir, path)
	}
	if err := os.Symlink(target, path); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a script within ten seconds.
func (w *world) run(src string) (vm.Value, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	return w.runIn(ctx, src)
}

func (w *world) runIn(ctx context.Context, src string) (vm.Value, error) {
	w.t.Helper()
	e, err := lua.New(w.host, lua.Options{KindOf: func(err error) (string, string) { return string(kernel.KindOf(err)), kernel.Message(err) }})
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := e.Run(ctx, vm.Chunk{Name: "test.lua", Source: []byte(src)})
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if n := e.Close(closing); n > 0 {
		w.t.Errorf("%d tasks were abandoned", n)
	}
	return v, err
}

// passes runs a script whose asserts must hold.
func (w *world) passes(src string) {
	w.t.Helper()
	if _, err := w.run(src); err != nil {
		trace := ""
		if e := (*vm.Error)(nil); errors.As(err, &e) {
			trace = e.Traceback
		}
		w.t.Errorf("%v\n%s", err, trace)
	}
}

// fails runs a script that must raise a text that holds want.
func (w *world) fails(src, want string) {
	w.t.Helper()
	v, err := w.run(src)
	if err == nil || !strings.Contains(err.Error(), want) {
		w.t.Errorf("%s\ngave %v, raised %v; want %q", src, v, err, want)
	}
}
