package vm

import (
	"context"
	"errors"
	"strconv"
)

// Step notes that the call did something which a replay must do again (see
// Function.Again). The values must not change afterwards.
func (c *Call) Step(name string, values ...Value) {
	if !c.stepping {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps = append(c.steps, append(Step{name}, values...))
}

func (c *Call) stepped() []Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// watchCallbacks makes each function among the arguments note that it is called.
func (c *Call) watchCallbacks() {
	c.eachCallback(func(place string, fn *Func) *Func {
		watched := NewFunc(fn.Name, func(ctx context.Context, byRef bool, args []Value) ([]Value, error) {
			c.Step(StepCall, append([]Value{place}, args...)...)
			return fn.call(ctx, byRef, args)
		})
		watched.Bound = fn.Bound
		return watched
	})
}

// eachCallback puts what change gives into the place of each function among the
// arguments; a place is the argument's number, from 0, or its key in the options.
func (c *Call) eachCallback(change func(place string, fn *Func) *Func) {
	for i, a := range c.Args {
		switch x := a.(type) {
		case *Func:
			c.Args[i] = change(strconv.Itoa(i), x)
		case map[string]any:
			for key, v := range x {
				if fn, ok := v.(*Func); ok {
					x[key] = change(key, fn)
				}
			}
		}
	}
}

// Callback calls a function of the script as a recorded step did.
func (c *Call) Callback(ctx context.Context, s Step) ([]Value, error) {
	var found *Func
	c.eachCallback(func(place string, fn *Func) *Func {
		if place == s.Str(1) {
			found = fn
		}
		return fn
	})
	if found == nil {
		return nil, &Fault{Err: Errorf("validation", "the record calls the function %q, which the call is not given", s.Str(1))}
	}
	return found.Call(ctx, s[2:]...)
}

// again gives what came of a recorded call: its callbacks are called as they were.
func (c *Call) again(ctx context.Context, old Entry) ([]Value, error) {
	if c.fn.Again != nil {
		return c.fn.Again(ctx, c, old)
	}
	return c.Repeat(ctx, old, func(context.Context, Step) error { return nil })
}

// Repeat goes through the steps of a recorded call: it calls the script's functions as
// they were called, hands any other step to do, and gives the recorded outcome.
func (c *Call) Repeat(ctx context.Context, old Entry, do func(ctx context.Context, s Step) error) ([]Value, error) {
	var raised error
	for _, s := range old.Steps {
		var err error
		if s.Name() == StepCall {
			_, err = c.Callback(ctx, s)
		} else {
			err = do(ctx, s)
		}
		var fault *Fault
		var exit *Exit
		if errors.As(err, &fault) || errors.As(err, &exit) {
			return nil, err
		}
		if err != nil {
			raised = err
		}
	}
	if old.Err == nil {
		return old.Result, nil
	}
	var own *Error
	if errors.As(raised, &own) && own.Message == old.Err.Message {
		return nil, raised // as the script raised it, with the value that it raised
	}
	return nil, old.Err
}
