package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"ashlar/kernel"
	"ashlar/kernel/store"
)

// guard says what a statement may do, as SQLite asks while it compiles one. It is of
// one connection; over is set when the time is up, so that what runs outside SQLite's
// own machine ends too.
type guard struct {
	over  atomic.Bool
	large atomic.Bool // it was ended for its memory
	db    uintptr     // SQLite's handle of the connection
	asked int
	why   string // the first refusal
}

// maxAsked bounds how often SQLite asks about one statement: one that is put together
// of itself again and again is refused while it is compiled.
const maxAsked = 100_000

// behindEvents are the tables that hold what the view shows in parts. They are read
// through it; what SQLite asks without a column may be the view, put into the statement.
const behindEvents = " content message "

// insideEvents are the names by which SQLite says that it is the view that reads: its
// own and those of the expressions in it. A statement that gives one of these names to
// an expression of its own reads the tables, which hold what the view shows.
const insideEvents = " events filled tail ref chain list "

// tablesAllowed are the view, its base table with the names of its streams, and two
// functions.
const tablesAllowed = " events event stream json_each json_tree "

// functionsAllowed are those of SQLite that touch nothing but their arguments, in time
// that is linear in them; those of query_func.go are ours.
const functionsAllowed = ` -> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce
	concat concat_ws cos cosh count cume_dist current_date current_time current_timestamp date datetime degrees
	dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json json_array
	json_array_length json_each json_error_position json_extract json_group_array json_group_object json_object
	json_quote json_tree json_type json_valid julianday lag last_value lead length like likelihood likely ln log
	log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote
	radians random rank replace round row_number rtrim sign sin sinh sqrt strftime string_agg substr substring sum
	tan tanh time timediff total trim trunc typeof unhex unicode unixepoch unlikely upper `

func listed(list, name string) bool {
	for _, w := range strings.Fields(list) {
		if w == name {
			return true
		}
	}
	return false
}

// authorize is the authorizer.
func (g *guard) authorize(action driver.AuthorizerActionCode, a, b, _, view string) driver.AuthorizerReturnCode {
	g.asked++
	switch {
	case g.over.Load():
		return g.deny("its time was up before it was compiled")
	case g.asked > maxAsked:
		return g.deny("it is too large: it compiles to more than a query may")
	}
	switch action {
	case driver.AuthSelect, driver.AuthRecursive:
		return driver.AuthorizerOK
	case driver.AuthFunction:
		if name := strings.ToLower(b); !listed(functionsAllowed, name) {
			return g.deny("there is no function %s in a query", clip(b))
		}
		return driver.AuthorizerOK
	case driver.AuthRead:
		name := strings.ToLower(a)
		switch {
		case listed(tablesAllowed, name), listed(behindEvents, name) && (b == "" || listed(insideEvents, view)):
			return driver.AuthorizerOK
		case b == "" && !reserved(name):
			return driver.AuthorizerOK // of a common table expression no column is read
		}
		return g.deny("it reads %s; what is published is the view events", clip(a))
	}
	return g.deny("a query only reads")
}

// reserved are the names of tables, and of the virtual ones that the driver brings.
func reserved(name string) bool {
	for _, prefix := range []string{"sqlite_", "pragma_", "dbstat", "fts5", "rtree", "geopoly", "bytecode", "tables_used"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "projection"
}

func (g *guard) deny(format string, args ...any) driver.AuthorizerReturnCode {
	if g.why == "" {
		g.why = fmt.Sprintf(format, args...)
	}
	return driver.AuthorizerDeny
}

// The limits of a connection, beside those that hold for every statement.
func limits() map[int]int {
	return map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH:              store.MaxQueryValue,
		sqlite3.SQLITE_LIMIT_SQL_LENGTH:          2 * store.MaxQuerySQL,
		sqlite3.SQLITE_LIMIT_COLUMN:              store.MaxQueryColumns,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          200,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     50,
		sqlite3.SQLITE_LIMIT_VDBE_OP:             250_000,
		sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        64,
		sqlite3.SQLITE_LIMIT_ATTACHED:            0,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 10_000,
		sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     store.MaxQueryParams,
		sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       1,
		sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
	}
}

// handleOf gives the connection's handle, for sqlite3_interrupt. The driver interrupts
// a statement by its context only until its first row, and has no call for the rest.
func handleOf(c any) (uintptr, bool) {
	v := reflect.ValueOf(c)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return 0, false
	}
	db := v.Elem().FieldByName("db")
	if db.Kind() != reflect.Uintptr {
		return 0, false
	}
	return uintptr(db.Uint()), db.Uint() != 0
}

// watch interrupts what runs on the connection when ctx ends, or when the process has
// grown by more than a query may use, until stop is called, which waits for it. Once is
// not enough: SQLite forgets an interrupt that comes before a statement has begun. SQLite's
// own bound on its memory would be the whole process's, the writer included, and some of
// its functions gather without looking at any.
func (g *guard) watch(ctx context.Context) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	began := resident()
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		ended := ctx.Done()
		for {
			select {
			case <-quit:
				return
			case <-ended:
				ended = nil // from now on the ticks
				g.over.Store(true)
			case <-tick.C:
				if !g.over.Load() && resident()-began > store.MaxQueryMemory {
					g.large.Store(true)
					g.over.Store(true)
				}
			}
			if g.over.Load() {
				sqlite3.Xsqlite3_interrupt(nil, g.db)
			}
		}
	}()
	return func() { close(quit); <-done }
}

// watchEvery is how often a query's memory is looked at, and an interrupt repeated.
const watchEvery = 5 * time.Millisecond

// asking is one connection that answers queries, with its guard.
type asking struct {
	db    *sql.DB
	guard guard
}

// newAsking opens a connection for queries.
func newAsking(dsn string) (*asking, error) {
	a := &asking{}
	d := &driver.Driver{}
	if err := a.guard.functions(d); err != nil {
		return nil, err
	}
	d.RegisterConnectionHook(func(c driver.ExecQuerierContext, _ string) error {
		r, ok := c.(driver.AuthorizerRegisterer)
		if !ok {
			return kernel.Errorf(opQuery, kernel.Unsupported, "the driver has no authorizer")
		}
		if a.guard.db, ok = handleOf(c); !ok {
			return kernel.Errorf(opQuery, kernel.Unsupported, "the driver's queries cannot be interrupted")
		}
		return r.RegisterAuthorizer(a.guard.authorize)
	})
	a.db = sql.OpenDB(connector{d, dsn})
	a.db.SetMaxOpenConns(1)
	return a, nil
}

// conn gives the connection with its limits set.
func (a *asking) conn(ctx context.Context) (*sql.Conn, error) {
	c, err := a.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	for id, n := range limits() {
		if _, err := driver.Limit(c, id, n); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}
