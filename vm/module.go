package vm

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync"
)

// Effect says what a syscall does to the world; it decides what is journalled.
type Effect string

// The effects. The result of a Read or Write is journalled; a Pure function is
// run again on replay.
const (
	Pure  Effect = "pure"
	Read  Effect = "read"
	Write Effect = "write"
)

// Recording says how much of a Read or Write goes into the journal.
type Recording int

// RecordFull keeps arguments and result. RecordResult keeps the arguments' hash
// alone: for calls whose arguments the log already holds, or that repeat history.
// RecordNone keeps nothing, for calls that a replay carries out again: what they do is
// in the log itself, or they only run what is journalled by itself. RecordError is
// RecordNone for a call that does nothing where it fails: its error is kept. RecordMark
// keeps that there was a call that no replay can answer.
const (
	RecordFull Recording = iota
	RecordResult
	RecordNone
	RecordError
	RecordMark
)

// Type names what a parameter or result is.
type Type string

// The types of parameters and results. An options table (Type Options) has a
// closed set of keys; an unknown one is refused by name.
const (
	Any      Type = "any"
	String   Type = "string"
	Bytes    Type = "bytes" // a string that need not be UTF-8
	Number   Type = "number"
	Integer  Type = "integer"
	Boolean  Type = "boolean"
	List     Type = "list"
	Map      Type = "object"
	Table    Type = "table" // a list or an object
	Options  Type = "options"
	Callable Type = "function"
	Handle   Type = "handle" // an *Object of class Param.Class
	Opaque   Type = "opaque" // passes by reference, never converted; a handle passes as itself
)

// Param declares one parameter, one field of an options table, or one result.
type Param struct {
	Name     string
	Type     Type
	Also     []Type // further accepted types
	Doc      string
	Optional bool
	Rest     bool    // the last parameter: any number of such
	Mixed    bool    // a table with list and hash parts, or with holes, crosses as an object
	Fields   []Param // of Options; of a Map they only say what it holds
	Class    string  // of Handle
}

// Module is one namespace, declared once. From it come the bindings of every
// language, argument checking with one wording, `ashlar api` and the type file.
type Module struct {
	Name    string // "std.fs", "http", "knl"
	Doc     string
	Funcs   []Function
	Values  map[string]Value // constants; nil is the language's null (std.sql.null)
	Classes []*Class         // of the handles that its functions give, for the reference
	Close   func()           // called once by the engine's Close, after the tasks ended; may be nil
}

// Function declares one syscall.
type Function struct {
	Name       string
	Doc        string // one or two sentences for the script's author
	Params     []Param
	Results    []Param
	Effect     Effect
	Record     Recording
	Capability string // of contracts §15; "" when none
	Waits      bool   // it may wait: the VM's lock is released around Impl
	Impl       func(ctx context.Context, c *Call) ([]Value, error)
	// Again, for a call that the journal answers on a replay: it gives the results of old
	// their handles back, and does again what the call did to the run itself (Call.Repeat).
	// nil calls the script's functions as they were called, and gives the outcome.
	Again func(ctx context.Context, c *Call, old Entry) ([]Value, error)
}

// Call is one call of a syscall as its implementation sees it.
type Call struct {
	Args   []Value // one for each parameter, nil where absent; rest arguments follow
	Self   *Object // the object, for a method
	Host   *Host
	Engine Engine
	Task   *Task

	dispatch *Dispatcher // nil where an implementation is called by hand
	ns       string
	fn       *Function
	stepping bool  // steps are kept
	notes    int64 // that were made
	mu       sync.Mutex
	steps    []Step
}

// Str gives argument i as a string, "" when absent.
func (c *Call) Str(i int) string { s, _ := c.Args[i].(string); return s }

// Int gives argument i as an integer, def when absent.
func (c *Call) Int(i int, def int64) int64 { return asInt(c.Args[i], def) }

// Float gives argument i as a number, def when absent.
func (c *Call) Float(i int, def float64) float64 { return asFloat(c.Args[i], def) }

// Bool gives argument i as a boolean, def when absent.
func (c *Call) Bool(i int, def bool) bool {
	if b, ok := c.Args[i].(bool); ok {
		return b
	}
	return def
}

// Map gives argument i as an object; nil when absent. Reading a nil map is fine.
func (c *Call) Map(i int) Opts { m, _ := c.Args[i].(map[string]any); return m }

// Func gives argument i as a function, nil when absent.
func (c *Call) Func(i int) *Func { f, _ := c.Args[i].(*Func); return f }

// Opts is an options table whose keys and types the dispatcher has checked.
type Opts map[string]any

// Str gives a key as a string, def when absent.
func (o Opts) Str(key, def string) string {
	if s, ok := o[key].(string); ok {
		return s
	}
	return def
}

// Int gives a key as an integer, def when absent.
func (o Opts) Int(key string, def int64) int64 { return asInt(o[key], def) }

// Float gives a key as a number, def when absent.
func (o Opts) Float(key string, def float64) float64 { return asFloat(o[key], def) }

// Bool gives a key as a boolean, def when absent.
func (o Opts) Bool(key string, def bool) bool {
	if b, ok := o[key].(bool); ok {
		return b
	}
	return def
}

// Func gives a key as a function, nil when absent.
func (o Opts) Func(key string) *Func { f, _ := o[key].(*Func); return f }

func asInt(v Value, def int64) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number: // beyond int64: the nearest that fits
		if strings.HasPrefix(string(n), "-") {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return def
}

func asFloat(v Value, def float64) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		return n
	case json.Number:
		f, _ := n.Float64()
		return f
	}
	return def
}
