package store

import (
	"context"
	"time"
)

// The bounds of a query. A caller may ask for less, never for more.
const (
	QueryRows        = 1000             // rows where none are asked for
	MaxQueryRows     = 10_000           // rows of one answer
	MaxQueryBytes    = 64 << 20         // of all values of an answer; what is beyond is cut off, as rows are
	MaxQueryValue    = 16 << 20         // bytes of one value, also of one that is only computed on the way
	MaxQueryMemory   = 512 << 20        // bytes by which the process may grow meanwhile, sampled (on Linux)
	MaxQueryColumns  = 32               // of one SELECT, also of an inner one
	MaxQuerySQL      = 64 << 10         // bytes of the statement
	QueryTimeout     = 5 * time.Second  // where none is asked for
	MaxQueryTimeout  = 60 * time.Second // of one query
	MaxQueryParams   = 256              // values bound to one statement
	MaxQuerySessions = 1000             // members of $sessions
)

// Querier is a store that answers SQL over the published view `events`. It is
// another interface than Store because a shared database may have none.
type Querier interface {
	// Ask answers one SELECT (or WITH … SELECT) over the view. It changes nothing,
	// reads nothing but the log, and ends within its time.
	//
	// Kinds: validation for what is not one such statement, for SQL that does not
	// compile, for parameters that do not fit it, and for two columns of one name;
	// timeout; limit for a value over MaxQueryValue, or for too much memory; unsupported for a result that has
	// no log JSON (a blob, a number that is not finite, text that is not UTF-8);
	// cancelled.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is a query. Params are bound to each `?` in order, or Named to :n @n $n,
// not both; each of them has to be used. $stream is Stream, and $sessions are
// Sessions: `IN $sessions` is the set, anywhere else $sessions is a JSON array.
type Question struct {
	SQL      string
	Params   []any
	Named    map[string]any
	Stream   string
	Sessions []string
	Limit    int           // rows; 0 is QueryRows
	Timeout  time.Duration // 0 is QueryTimeout
}

// Answer holds rows of nil, int64, float64 and string, in the order of Columns.
type Answer struct {
	Columns   []string
	Rows      [][]any
	Truncated bool // there are more rows than were asked for, or than fit
}
