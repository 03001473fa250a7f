package tool_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/tool"
)

// recorder is a tool.Recorder that notes what it is told, in order.
type recorder struct {
	mu      sync.Mutex
	said    []string
	kept    map[string]string
	refuse  bool  // the quota covers nothing
	failing error // of every write
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Intent(_ context.Context, c tool.Call) error {
	if r.refuse {
		r.note("not run %s", c.Name)
		return kernel.Errorf("tool", kernel.Refused, "the budget does not cover it")
	}
	r.note("intent %s %v", c.Name, c.Args)
	return r.failing
}

func (r *recorder) Outcome(ctx context.Context, c tool.Call, res tool.Result) error {
	r.note("outcome %s ok=%v kind=%s args=%v ctx=%v", c.Name, res.OK, res.Kind, c.Args, ctx.Err())
	return r.failing
}

func (r *recorder) Refuse(_ context.Context, c tool.Call, res tool.Result) error {
	r.note("refused %s %s", c.Name, res.Kind)
	return r.failing
}

func (r *recorder) Keep(_ context.Context, b []byte) (string, error) {
	sum := sha256.Sum256(b)
	hash := "sha256:" + hex.EncodeToString(sum[:4])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil {
		r.kept = map[string]string{}
	}
	r.kept[hash] = string(b)
	return hash, r.failing
}

func (r *recorder) lines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}

// observer notes what it sees into a recorder's list.
type observer struct{ r *recorder }

func (o observer) ToolCalled(c tool.Call) { o.r.note("called %s", c.Name) }
func (o observer) ToolEnded(c tool.Call, r tool.Result) {
	o.r.note("ended %s ok=%v", c.Name, r.OK)
}

// warnings are what the host was told.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) add(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, s)
}

func (w *warnings) list() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.all...)
}

const canary = "sk-canary-0123456789"

// newBus is a bus with one tool, whose handler is given.
func newBus(t *testing.T, contract tool.Contract, handler tool.Handler) (*tool.Bus, *recorder, *warnings) {
	t.Helper()
	w := &warnings{}
	b := &tool.Bus{
		Registry: tool.NewRegistry(), Now: time.Now, Warn: w.add,
		Redact: func(s string) string { return strings.ReplaceAll(s, canary, "[redacted:KEY]") },
	}
	if contract.Name == "" {
		contract.Name = "t"
	}
	b.Registry.Register(tool.Tool{Contract: contract, Handler: handler})
	return b, &recorder{}, w
}

// gives is a handler that returns a value.
func gives(v any) tool.Handler {
	return func(context.Context, map[string]any) (any, error) { return v, nil }
}

func dispatch(t *testing.T, b *tool.Bus, r *recorder, args map[string]any) tool.Result {
	t.Helper()
	c := tool.Call{Name: "t", Args: args}
	if r != nil {
		c.Record = r
	}
	res, err := b.Dispatch(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return res
}
