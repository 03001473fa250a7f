package vm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/vm"
)

// answering is a replay with one answer.
type answering struct {
	kept
	old vm.Entry
	ok  bool
	err error
}

func (a *answering) Answer(vm.Entry) (vm.Entry, bool, error) { return a.old, a.ok, a.err }
func (*answering) Turn(int64) (int, bool)                    { return 0, false }
func (*answering) Idle(int64, []int, int)                    {}

// lockless is an engine whose lock nobody needs.
type lockless struct{ vm.Engine }

func (lockless) Release(context.Context) {}
func (lockless) Acquire(context.Context) {}

// What a call gave to a function of the script is recorded, and given again on a replay,
// where the call itself is not made.
func TestCallbacksAreCalledAgainAsTheyWere(t *testing.T) {
	t.Parallel()
	made := 0
	fn := &vm.Function{Name: "f", Params: []vm.Param{{Name: "opts", Type: vm.Options, Fields: []vm.Param{{Name: "on", Type: vm.Callable}}}}, Effect: vm.Write, Waits: true,
		Impl: func(ctx context.Context, c *vm.Call) ([]vm.Value, error) {
			made++
			for _, text := range []string{"a", "b"} {
				if _, err := c.Map(0).Func("on").Call(ctx, text, int64(made)); err != nil {
					return nil, err
				}
			}
			return []vm.Value{"done"}, nil
		}}
	same := func(s string) string { return s }
	kinds := func(err error) (string, string) { return "internal", err.Error() }
	call := func(j vm.Journal, on func(args []vm.Value) error) ([]vm.Value, error) {
		d := vm.NewDispatcher(&vm.Host{Journal: j, Redact: same}, lockless{}, nil, kinds)
		cb := vm.NewFunc("x.lua:1", func(_ context.Context, _ bool, args []vm.Value) ([]vm.Value, error) { return nil, on(args) })
		return d.Call(vm.WithTask(t.Context(), &vm.Task{}), "ns", fn, nil, []vm.Value{map[string]any{"on": cb}})
	}
	var heard, again []string
	k := &kept{}
	if _, err := call(k, func(args []vm.Value) error { heard = append(heard, fmt.Sprint(args)); return nil }); err != nil || len(k.last.Steps) != 2 {
		t.Fatalf("%v, %+v", err, k.last)
	}
	out, err := call(&answering{old: k.last, ok: true}, func(args []vm.Value) error { again = append(again, fmt.Sprint(args)); return nil })
	if err != nil || fmt.Sprint(out) != "[done]" || fmt.Sprint(again) != fmt.Sprint(heard) || made != 1 {
		t.Errorf("out %v, %v; heard %v, then %v; made %d times", out, err, heard, again, made)
	}
	// An error of the callback comes back as it was raised.
	raised := &vm.Error{Message: "own", Value: &vm.Ref{}}
	if _, err = call(k, func([]vm.Value) error { return raised }); !errors.Is(err, raised) && err.Error() != "own" {
		t.Fatal(err)
	}
	_, err = call(&answering{old: k.last, ok: true}, func([]vm.Value) error { return raised })
	var got *vm.Error
	if !errors.As(err, &got) || got.Value == nil {
		t.Errorf("got %+v", err)
	}
	// A replay that cannot answer ends the run, and no pcall holds it.
	_, err = call(&answering{err: errors.New("differs")}, nil)
	var fault *vm.Fault
	if !errors.As(err, &fault) || made != 2 {
		t.Errorf("got %v, made %d times", err, made)
	}
}
