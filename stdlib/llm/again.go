package llm

import (
	"context"

	"ashlar/kernel"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
)

// The steps of a call (vm.Step): what it did to its session, to the beat that it
// belongs to and to the run's budget. A replay sends nothing; it does these again, in
// their order and between the script's own callbacks.
const (
	stepEvent   = "event"   // kind, data: an event of the session
	stepCovers  = "covers"  // the call asked which beat it belongs to
	stepExtend  = "extend"  // beat, input, cost, last: more for the beat's reserve
	stepUnsent  = "unsent"  // beat
	stepSaw     = "saw"     // beat, tokens, cost
	stepReserve = "reserve" // amounts of the run's pool
	stepSettle  = "settle"  // tag, reserved, used
)

func (c Call) step(name string, values ...vm.Value) {
	if c.Step != nil {
		c.Step(name, values...)
	}
}

func amountsValue(a budget.Amounts) vm.Value {
	m := make(map[string]any, len(a))
	for tag, n := range a {
		m[tag] = n
	}
	return m
}

// learning makes a call that is answered from the record teach the redactor the key that
// the script brings, as the call itself did.
func learning(options int, learn func(name, value string)) func(context.Context, *vm.Call, vm.Entry) ([]vm.Value, error) {
	return func(ctx context.Context, c *vm.Call, old vm.Entry) ([]vm.Value, error) {
		askOf(c.Map(options), learn)
		return c.Repeat(ctx, old, func(context.Context, vm.Step) error { return nil })
	}
}

// again is send on a replay.
func (s *Sender) again(ctx context.Context, c *vm.Call, old vm.Entry, learn func(name, value string)) ([]vm.Value, error) {
	o := c.Map(1)
	askOf(o, learn)
	if _, err := headers(o, learn); err != nil {
		return nil, err
	}
	beat := o.Str("beat", "")
	obj, _ := o["session"].(*vm.Object)
	var log Log
	session := ""
	if obj != nil {
		if log, _ = obj.Data.(Log); log != nil {
			session = log.ID()
		}
	}
	return c.Repeat(ctx, old, func(ctx context.Context, step vm.Step) error {
		switch step.Name() {
		case stepEvent:
			if log == nil || len(step) < 3 {
				break
			}
			return commit(ctx, log, beat, step.Str(1), object(step[2]))
		case stepCovers:
			s.Beats.Covers(c.Task, session, beat)
			return nil
		case stepExtend:
			if len(step) < 5 {
				break
			}
			last, _ := step[4].(bool)
			_, _, err := s.Beats.Extend(ctx, step.Str(1), step.Int(2), step.Int(3), last)
			return err
		case stepUnsent:
			s.Beats.Unsent(step.Str(1))
			return nil
		case stepSaw:
			s.Beats.Saw(step.Str(1), step.Int(2), step.Int(3))
			return nil
		case stepReserve:
			if len(step) < 2 {
				break
			}
			amounts := budget.Amounts{}
			for tag, n := range object(step[1]) {
				amounts[tag] = integer(n)
			}
			_, _, err := s.Pool.Reserve(ctx, amounts)
			return err
		case stepSettle:
			return s.Pool.SettleUse(ctx, step.Str(1), step.Int(2), step.Int(3))
		}
		return kernel.Errorf("llm.send", kernel.Corruption, "the record holds a step %q of the call, which is none", step.Name())
	})
}
