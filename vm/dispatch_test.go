package vm_test

import (
	"context"
	"errors"
	"testing"

	"ashlar/vm"
)

// kept is a journal that keeps the last entry.
type kept struct{ last vm.Entry }

func (k *kept) Record(e vm.Entry) { k.last = e }
func (*kept) Handover(int64, int) {}

// A call that ended the run leaves a mark: neither a result nor an error came of it.
func TestACallThatEndedTheRunIsNoSuccess(t *testing.T) {
	t.Parallel()
	k := &kept{}
	d := vm.NewDispatcher(&vm.Host{Journal: k, Redact: func(s string) string { return s }}, nil, nil,
		func(err error) (string, string) { return "storage", err.Error() })
	ctx := vm.WithTask(t.Context(), &vm.Task{})
	for _, c := range []struct {
		err          error
		mark, failed bool
	}{
		{nil, false, false}, {errors.New("full"), false, true},
		{&vm.Exit{Code: 3}, true, false}, {&vm.Fault{Err: errors.New("gone")}, true, false},
	} {
		fn := &vm.Function{Name: "f", Params: []vm.Param{{Name: "a", Type: vm.String}}, Effect: vm.Write, Record: vm.RecordFull,
			Impl: func(context.Context, *vm.Call) ([]vm.Value, error) { return nil, c.err }}
		_, err := d.Call(ctx, "ns", fn, nil, []vm.Value{"x"})
		if (err == nil) != (c.err == nil) {
			t.Errorf("%v: %v", c.err, err)
		}
		if e := k.last; e.Mark != c.mark || (e.Err != nil) != c.failed || (e.Args == nil) != c.mark {
			t.Errorf("%v is recorded as %+v", c.err, e)
		}
	}
}
