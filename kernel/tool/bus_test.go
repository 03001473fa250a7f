package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/tool"
)

func TestDecisionsComeBeforeTheIntentAndTheIntentBeforeTheRun(t *testing.T) {
	t.Parallel()
	var r *recorder
	b, r, _ := newBus(t, tool.Contract{}, func(_ context.Context, args map[string]any) (any, error) {
		r.note("run %v", args)
		args["a"] = "changed by the handler"
		return "fine", nil
	})
	b.Observer = observer{r}
	b.Interceptors = []tool.Interceptor{func(_ context.Context, c tool.Call) (map[string]any, string, error) {
		r.note("intercept %v", c.Args)
		return map[string]any{"a": int64(2)}, "", nil
	}, func(context.Context, tool.Call) (map[string]any, string, error) { return nil, "", nil }}
	b.Gates = []tool.Gate{func(_ context.Context, c tool.Call) (string, error) {
		r.note("gate %v", c.Args)
		c.Args["a"] = "changed by a gate"
		return "", nil
	}}
	res := dispatch(t, b, r, map[string]any{"a": int64(1)})
	want := strings.Join([]string{
		"intercept map[a:1]", "gate map[a:2]", "intent t map[a:2]", "called t", "run map[a:2]",
		"outcome t ok=true kind= args=map[a:2] ctx=<nil>", "ended t ok=true",
	}, "\n")
	if r.lines() != want || !res.OK || res.Model != "fine" {
		t.Errorf("got\n%s\nwant\n%s\nresult %+v", r.lines(), want, res)
	}
}

func TestARefusalRunsNothingAndIsRecordedWhole(t *testing.T) {
	t.Parallel()
	schema := map[string]any{"type": "object", "required": []any{"a"}}
	deny := func(reason string) []tool.Gate {
		return []tool.Gate{func(context.Context, tool.Call) (string, error) { return reason, nil }}
	}
	for name, c := range map[string]struct {
		setup func(b *tool.Bus, c *tool.Call)
		kind  string
		text  string
	}{
		"by the caller":  {func(_ *tool.Bus, c *tool.Call) { c.Refusal = "policy says no " + canary }, "denied", "policy says no [redacted:KEY]"},
		"by its kind":    {func(_ *tool.Bus, c *tool.Call) { c.Refusal, c.RefusalKind = "none", "not_found" }, "not_found", "none"},
		"unknown name":   {func(_ *tool.Bus, c *tool.Call) { c.Name = "other" }, "not_found", "tool 'other' not found"},
		"misfit":         {func(_ *tool.Bus, c *tool.Call) { c.Args = nil }, "validation", "missing property 'a'"},
		"by a gate":      {func(b *tool.Bus, _ *tool.Call) { b.Gates = deny("not now") }, "denied", "not now"},
		"by interceptor": {func(b *tool.Bus, _ *tool.Call) { b.Interceptors = interceptor(nil, "no") }, "denied", "no"},
		"what an interceptor made is checked too": {func(b *tool.Bus, _ *tool.Call) {
			b.Interceptors = interceptor(map[string]any{"b": true}, "")
		}, "validation", "missing property 'a'"},
		"arguments that cannot be said": {func(_ *tool.Bus, c *tool.Call) { c.Args = map[string]any{"a": "\xff"} }, "validation", "$.a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := false
			b, r, _ := newBus(t, tool.Contract{Input: schema}, func(context.Context, map[string]any) (any, error) {
				ran = true
				return nil, nil
			})
			b.Observer = observer{r}
			call := tool.Call{Name: "t", Args: map[string]any{"a": int64(1)}, Record: r}
			c.setup(b, &call)
			res, err := b.Dispatch(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := res.Model.(string)
			if res.OK || res.Kind != c.kind || !strings.Contains(text, c.text) || ran {
				t.Errorf("got %+v, ran %v", res, ran)
			}
			if want := "refused " + call.Name + " " + c.kind + "\ncalled " + call.Name + "\nended " + call.Name + " ok=false"; r.lines() != want {
				t.Errorf("recorded\n%s\nwant\n%s", r.lines(), want)
			}
		})
	}
}

func interceptor(args map[string]any, refusal string) []tool.Interceptor {
	return []tool.Interceptor{func(context.Context, tool.Call) (map[string]any, string, error) { return args, refusal, nil }}
}

func TestAQuotaThatDoesNotCoverACallRunsNothing(t *testing.T) {
	t.Parallel()
	b, r, _ := newBus(t, tool.Contract{}, func(context.Context, map[string]any) (any, error) {
		t.Error("the handler ran")
		return nil, nil
	})
	r.refuse = true
	b.Observer = observer{r}
	res := dispatch(t, b, r, nil)
	if res.OK || res.Kind != "budget" || res.Model != tool.BudgetText {
		t.Errorf("got %+v", res)
	}
	if want := "not run t\ncalled t\nended t ok=false"; r.lines() != want {
		t.Errorf("recorded\n%s", r.lines())
	}
}

func TestAFaultOfTheHostIsNoResult(t *testing.T) {
	t.Parallel()
	fault := kernel.Errorf("store", kernel.Storage, "disk full")
	for name, setup := range map[string]func(*tool.Bus, *recorder){
		"a gate that must wait": func(b *tool.Bus, _ *recorder) {
			b.Gates = []tool.Gate{func(context.Context, tool.Call) (string, error) { return "", fault }}
		},
		"a gate that panics": func(b *tool.Bus, _ *recorder) {
			b.Gates = []tool.Gate{func(context.Context, tool.Call) (string, error) { panic("gate") }}
		},
		"an interceptor": func(b *tool.Bus, _ *recorder) {
			b.Interceptors = []tool.Interceptor{func(context.Context, tool.Call) (map[string]any, string, error) { return nil, "", fault }}
		},
		"an intent that cannot be recorded": func(_ *tool.Bus, r *recorder) { r.failing = fault },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r, _ := newBus(t, tool.Contract{}, func(context.Context, map[string]any) (any, error) {
				t.Error("the handler ran")
				return nil, nil
			})
			setup(b, r)
			if res, err := b.Dispatch(t.Context(), tool.Call{Name: "t", Record: r}); err == nil {
				t.Errorf("no error, %+v", res)
			}
		})
	}
}

func TestAHandlerThatFailsIsAFailedCall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contract tool.Contract
		handler  tool.Handler
		kind     string
		text     string
	}{
		"an error": {handler: func(context.Context, map[string]any) (any, error) {
			return nil, kernel.Errorf("x", kernel.NotFound, "no such file, key "+canary)
		}, kind: "failed", text: "tool 't' raised: no such file, key [redacted:KEY]"},
		"a panic": {handler: func(context.Context, map[string]any) (any, error) { panic("boom " + canary) },
			kind: "failed", text: "tool 't' raised: the handler panicked: boom [redacted:KEY]"},
		"its timeout, heeded": {contract: tool.Contract{Timeout: 10 * time.Millisecond},
			handler: func(ctx context.Context, _ map[string]any) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
			kind:    "timeout", text: "tool 't' raised: the tool took longer than 10ms"},
		"not a number":  {handler: gives(map[string]any{"a": []any{nan()}}), kind: "failed", text: "$.a[0]"},
		"a host's type": {handler: gives(struct{}{}), kind: "failed", text: "cannot be said as JSON"},
		"itself":        {handler: gives(ring()), kind: "failed", text: "nested deeper than 128"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r, w := newBus(t, c.contract, c.handler)
			res := dispatch(t, b, r, nil)
			text, _ := res.Model.(string)
			if res.OK || res.Kind != c.kind || !strings.Contains(text, c.text) || strings.Contains(text, "goroutine") {
				t.Errorf("got %+v", res)
			}
			if _, isText := res.Value.(string); !isText {
				t.Errorf("the value of a failure is %T", res.Value)
			}
			if !strings.Contains(r.lines(), "outcome t ok=false") {
				t.Errorf("recorded\n%s", r.lines())
			}
			for _, line := range w.list() {
				if strings.Contains(line, canary) {
					t.Error("a warning holds the canary")
				}
			}
		})
	}
}

func nan() float64 { z := 0.0; return z / z }

func ring() any {
	m := map[string]any{}
	m["self"] = m
	return m
}

func TestAHandlerThatHangsIsLeftBehind(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	b, r, w := newBus(t, tool.Contract{Timeout: 10 * time.Millisecond}, func(context.Context, map[string]any) (any, error) {
		<-release
		return "too late", nil
	})
	start := time.Now()
	res := dispatch(t, b, r, nil)
	if took := time.Since(start); took > tool.HandlerGrace+time.Second {
		t.Errorf("it took %s", took)
	}
	if res.OK || res.Kind != "timeout" || len(w.list()) != 1 {
		t.Errorf("got %+v, warnings %q", res, w.list())
	}
}

func TestWhatIsCutIsStillRecorded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	b, r, _ := newBus(t, tool.Contract{}, func(ctx context.Context, _ map[string]any) (any, error) {
		cancel(errors.New("stop"))
		<-ctx.Done()
		return nil, ctx.Err()
	})
	res, err := b.Dispatch(ctx, tool.Call{Name: "t", Record: r})
	if err != nil || res.Kind != "cancelled" {
		t.Errorf("got %+v, %v", res, err)
	}
	if !strings.HasSuffix(r.lines(), "outcome t ok=false kind=cancelled args=map[] ctx=<nil>") {
		t.Errorf("recorded\n%s", r.lines())
	}
}

func TestTheListIsSorted(t *testing.T) {
	t.Parallel()
	r := tool.NewRegistry()
	for _, name := range []string{"c", "a", "b", "a"} {
		r.Register(tool.Tool{Contract: tool.Contract{Name: name}})
	}
	var names []string
	for _, one := range r.List() {
		names = append(names, one.Contract.Name)
	}
	if got := strings.Join(names, ""); got != "abc" {
		t.Errorf("got %s", got)
	}
}
