package vm

import (
	"context"
	"errors"
	"sync/atomic"
)

// Dispatcher is the one way that a syscall is called. It checks arguments,
// releases the VM's lock where the call waits, names and redacts errors, and
// journals. There is one for each run.
type Dispatcher struct {
	host   *Host
	engine Engine
	calls  atomic.Int64
	// digest hashes arguments that are not kept (RecordResult).
	digest func([]Value) string
	// kindOf gives the error kind of a host error that is no *Error.
	kindOf func(error) (kind, message string)
}

// NewDispatcher returns the dispatcher of one run. digest and kindOf come from
// above, since vm knows neither log JSON nor the kernel's errors.
func NewDispatcher(h *Host, e Engine, digest func([]Value) string, kindOf func(error) (string, string)) *Dispatcher {
	return &Dispatcher{host: h, engine: e, digest: digest, kindOf: kindOf}
}

// Call runs one function of namespace ns for the task in ctx, which holds the
// lock; self is the object of a method. Errors are *Error, *Exit or *Fault.
func (d *Dispatcher) Call(ctx context.Context, ns string, fn *Function, self *Object, args []Value) ([]Value, error) {
	checked, err := checkArgs(fn.Params, args)
	if err != nil {
		return nil, d.name(ns, fn, err)
	}
	task := TaskOf(ctx)
	c := &Call{Args: checked, Self: self, Host: d.host, Engine: d.engine, Task: task, dispatch: d, ns: ns, fn: fn}
	if fn.Effect == Pure || fn.Record == RecordNone || d.host.Journal == nil {
		out, err := d.invoke(ctx, fn, c)
		if err != nil {
			return nil, d.name(ns, fn, err)
		}
		return out, nil
	}
	task.calls++
	entry := Entry{N: d.calls.Add(1), Task: task.ID, K: task.calls, Name: ns + "." + fn.Name, Mark: fn.Record == RecordMark}
	if fn.Record != RecordMark {
		if old, ok, err := d.host.Journal.Answer(entry.Task, entry.K, entry.Name); err != nil {
			return nil, &Fault{Err: err}
		} else if ok {
			if old.Err != nil {
				return nil, old.Err
			}
			return old.Result, nil
		}
	}
	switch fn.Record {
	case RecordFull:
		entry.Args = checked
	case RecordResult:
		entry.Hash = d.digest(checked)
	}
	out, err := d.invoke(ctx, fn, c)
	if err != nil {
		err = d.name(ns, fn, err)
		var e *Error
		if errors.As(err, &e) {
			entry.Err = e
		} else {
			// It ended the run: it has neither a result nor an error that a script saw.
			entry.Mark, entry.Args = true, nil
		}
	}
	if !entry.Mark {
		entry.Result = out
	}
	d.host.Journal.Record(entry)
	return out, err
}

func (d *Dispatcher) invoke(ctx context.Context, fn *Function, c *Call) ([]Value, error) {
	if !fn.Waits {
		return fn.Impl(ctx, c)
	}
	d.engine.Release(ctx)
	defer d.engine.Acquire(ctx)
	wait, done := interruptible(ctx)
	defer done()
	return fn.Impl(wait, c)
}

// name puts namespace and function on an error, gives it a kind, and redacts it.
func (d *Dispatcher) name(ns string, fn *Function, err error) error {
	var exit *Exit
	var fault *Fault
	if errors.As(err, &exit) || errors.As(err, &fault) {
		return err
	}
	var e *Error
	if errors.As(err, &e) {
		named := *e
		if named.Namespace == "" && named.Kind != "" {
			named.Namespace, named.Function = ns, fn.Name
		}
		named.Message = d.host.Redact(named.Message)
		return &named
	}
	kind, msg := d.kindOf(err)
	return &Error{Namespace: ns, Function: fn.Name, Kind: kind, Message: d.host.Redact(msg), Cause: err}
}
