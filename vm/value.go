package vm

import "context"

// Value is a neutral value, the only thing that crosses between a script and the
// host. It is one of
//
//	nil            JSON null; a script's missing value
//	bool
//	int64          an integer that fits, exact beyond 2^53 too
//	float64        any other number, finite
//	json.Number    an integer beyond int64, exact
//	string         valid UTF-8
//	[]any          a list, also when empty
//	map[string]any an object, also when empty
//	*Func          a script's function
//	*Object        a handle with methods
//	*Ref           a script value that only passes through the host, by reference
type Value = any

// Func is a script's function that the host can call: a tool's handler, a
// callback, a task's body. Calling it takes the VM's lock when the calling task
// does not hold it, and runs on the calling goroutine.
type Func struct {
	Name  string // where it was defined, for messages: "agent.lua:12"
	Bound any    // the engine's own function, so that identity survives a round trip
	call  func(ctx context.Context, byRef bool, args []Value) ([]Value, error)
}

// NewFunc is for engines: call runs the script's function; byRef asks for results
// as *Ref instead of converted values.
func NewFunc(name string, call func(ctx context.Context, byRef bool, args []Value) ([]Value, error)) *Func {
	return &Func{Name: name, call: call}
}

// Call runs the function with neutral arguments and converts what it returns.
// ctx must descend from the context that the dispatcher handed to the syscall:
// it carries the task, and a shorter deadline on it bounds the call. Within one
// syscall calls that overlap are safe: the first runs on the syscall's own thread,
// each further one on a thread of its own. What the script raises comes back as
// *Error; a call that its context cut short gives the context's cause.
func (f *Func) Call(ctx context.Context, args ...Value) ([]Value, error) {
	return f.call(ctx, false, args)
}

// CallRef is Call with the results left in the script's own form, for values that
// a script hands to itself through the host (a task's result).
func (f *Func) CallRef(ctx context.Context, args ...Value) ([]Value, error) {
	return f.call(ctx, true, args)
}

// Ref is a script value held by the host and given back unchanged, to the VM that
// it came from.
type Ref struct{ Value any }

// Object is a host value that scripts hold by handle: a session, a task, a
// cancel token. Its methods are those of its class.
type Object struct {
	Class *Class
	Data  any
	Bound any // the engine's own handle for it, so that identity survives a round trip
}

// Class is the type of an Object: its name for messages and its methods, which are
// declared like any syscall and find the object in Call.Self.
type Class struct {
	Name    string
	Space   string // the namespace in errors and journal: "knl"; "" is Name
	Doc     string
	Methods []Function
	Fields  func(*Object) map[string]Value // plain fields a script may read (handle.id); may be nil
}

// Namespace is where its methods stand in errors and journal.
func (c *Class) Namespace() string {
	if c.Space != "" {
		return c.Space
	}
	return c.Name
}

// TypeName is what messages call it, also those of rooms that know no script.
func (*Func) TypeName() string { return "function" }

// TypeName is the name of the handle's class.
func (o *Object) TypeName() string { return o.Class.Name }

// TypeName is what messages call it.
func (*Ref) TypeName() string { return "value" }
