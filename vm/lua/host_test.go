package lua_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/vm"
	"ashlar/vm/lua"
)

// clock is real time.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type environ map[string]string

func (e environ) Get(name string) (string, bool) { v, ok := e[name]; return v, ok }
func (e environ) Set(name, value string)         { e[name] = value }

// folder is a host's files, all in one directory.
type folder string

func (f folder) at(path string) string { return filepath.Join(string(f), filepath.Base(path)) }

func (f folder) Open(path, mode string) (vm.File, error) {
	flags := map[byte]int{
		'r': os.O_RDONLY, 'w': os.O_WRONLY | os.O_CREATE | os.O_TRUNC, 'a': os.O_WRONLY | os.O_CREATE | os.O_APPEND,
	}[mode[0]]
	if strings.Contains(mode, "+") {
		flags = flags&^os.O_WRONLY | os.O_RDWR
	}
	return os.OpenFile(f.at(path), flags, 0o600)
}
func (f folder) Remove(path string) error     { return os.Remove(f.at(path)) }
func (f folder) Rename(from, to string) error { return os.Rename(f.at(from), f.at(to)) }
func (f folder) Temp() (string, error) {
	t, err := os.CreateTemp(string(f), "tmp")
	if err != nil {
		return "", err
	}
	return t.Name(), t.Close()
}

// sources is a loader over a map.
type sources map[string]string

func (s sources) Load(_ context.Context, name string) (vm.Chunk, error) {
	src, ok := s[name]
	if !ok {
		return vm.Chunk{}, vm.Errorf("not_found", "module %s is in no tier", name)
	}
	return vm.Chunk{Name: name + ".lua", Source: []byte(src)}, nil
}

// output is a buffer that tasks may share.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// testHost is a host with a sleep, a few modules of the test's own, and out.
func testHost(tb testing.TB, modules ...*vm.Module) (*vm.Host, *output) {
	out := &output{}
	return &vm.Host{
		Script: "test", Dir: tb.TempDir(), Clock: clock{}, Rand: rand.Reader, Env: environ{"HOME": "/home/x"},
		Files: folder(tb.TempDir()), Stdin: strings.NewReader("one\ntwo\n3.5 rest"), Stdout: out, Stderr: io.Discard,
		Loader:  sources{},
		Modules: append([]*vm.Module{testModule()}, modules...),
		Redact:  func(s string) string { return strings.ReplaceAll(s, "s3cret", "[redacted]") },
		Log:     func(string, string, map[string]any) {},
	}, out
}

// testModule is the host's side of the tests.
func testModule() *vm.Module {
	value := []vm.Param{{Name: "value", Type: vm.Any, Optional: true}}
	fn := []vm.Param{{Name: "fn", Type: vm.Callable}}
	callIt := func(ctx context.Context, c *vm.Call) ([]vm.Value, error) { return c.Func(0).Call(ctx, "arg") }
	return &vm.Module{Name: "host", Values: map[string]vm.Value{"null": nil}, Funcs: []vm.Function{
		{Name: "sleep", Waits: true, Effect: vm.Pure, Params: []vm.Param{{Name: "ms", Type: vm.Number}},
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
				return nil, c.Host.Clock.Sleep(ctx, time.Duration(c.Float(0, 0)*float64(time.Millisecond)))
			}},
		{Name: "echo", Effect: vm.Pure, Params: value,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return c.Args, nil }},
		{Name: "mixed", Effect: vm.Pure, Params: []vm.Param{{Name: "value", Type: vm.Any, Mixed: true}},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return c.Args, nil }},
		{Name: "text", Effect: vm.Pure, Params: []vm.Param{{Name: "text", Type: vm.String}}, Impl: noResult},
		{Name: "bytes", Effect: vm.Pure, Params: []vm.Param{{Name: "bytes", Type: vm.Bytes}}, Impl: noResult},
		{Name: "options", Effect: vm.Pure, Impl: noResult, Params: []vm.Param{{Name: "opts", Type: vm.Options, Fields: []vm.Param{
			{Name: "name", Type: vm.String, Optional: true}, {Name: "stdin", Type: vm.Bytes, Optional: true}}}}},
		{Name: "call", Effect: vm.Pure, Params: fn, Impl: callIt},
		{Name: "call_waiting", Waits: true, Effect: vm.Pure, Params: fn, Impl: callIt},
		{Name: "call_many", Waits: true, Effect: vm.Pure, Params: fn, Impl: callMany},
		{Name: "spawn", Effect: vm.Pure, Params: fn,
			Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
				t, err := c.Engine.Spawn(ctx, "", c.Func(0))
				return []vm.Value{&vm.Object{Class: taskClass(), Data: t}}, err
			}},
		{Name: "panics", Effect: vm.Pure, Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
			var list []int
			return []vm.Value{int64(list[len(list)])}, nil
		}},
		{Name: "busy", Effect: vm.Pure, Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
			return nil, vm.Errorf("busy", "somebody else holds it")
		}},
		{Name: "fault", Effect: vm.Pure, Impl: func(context.Context, *vm.Call) ([]vm.Value, error) {
			return nil, &vm.Fault{Err: errFault}
		}},
	}}
}

func noResult(context.Context, *vm.Call) ([]vm.Value, error) { return nil, nil }

// callMany calls a function from eight goroutines at once, as a tool bus does.
func callMany(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
	var wg sync.WaitGroup
	out := make([]any, 8)
	for i := range out {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if r, err := c.Func(0).Call(ctx, int64(i)); err == nil {
				out[i] = r[0]
			}
		}()
	}
	wg.Wait()
	return []vm.Value{out}, nil
}

var errFault = errors.New("the store failed")

func taskClass() *vm.Class {
	return &vm.Class{Name: "test.task", Methods: []vm.Function{{
		Name: "join", Waits: true, Effect: vm.Pure,
		Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
			t := c.Self.Data.(*vm.Task)
			select {
			case <-t.Done:
				return t.Result, t.Err
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}}}}
}

// run runs source to its end and closes the engine.
func run(ctx context.Context, tb testing.TB, host *vm.Host, src string) (vm.Value, error) {
	tb.Helper()
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	v, err := e.Run(ctx, vm.Chunk{Name: "test.lua", Source: []byte(src)})
	closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if n := e.Close(closing); n > 0 {
		tb.Fatalf("%d tasks were abandoned", n)
	}
	return v, err
}
