package sqlite

import (
	"context"
	"database/sql"
	stddriver "database/sql/driver"
	"errors"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	driver "modernc.org/sqlite"

	"ashlar/kernel"
	"ashlar/kernel/store"
)

var _ store.Querier = (*Store)(nil)

// querying holds the connections that answer queries; they are opened when the first
// ones are needed.
type querying struct {
	dsn   string
	slots chan *asking // nil for one that is not open yet
	once  sync.Once
}

// queriers is the number of queries that run at a time.
const queriers = 2

// connector opens what a driver of ours opens, whose functions are of one connection.
type connector struct {
	d   *driver.Driver
	dsn string
}

func (c connector) Connect(context.Context) (stddriver.Conn, error) { return c.d.Open(c.dsn) }
func (c connector) Driver() stddriver.Driver                        { return c.d }

func (q *querying) init() {
	q.once.Do(func() {
		q.slots = make(chan *asking, queriers)
		for range queriers {
			q.slots <- nil
		}
	})
}

// take waits for a connection.
func (q *querying) take(ctx context.Context) (*asking, error) {
	q.init()
	select {
	case a := <-q.slots:
		if a != nil {
			return a, nil
		}
		a, err := newAsking(q.dsn)
		if err != nil {
			q.slots <- nil
		}
		return a, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close waits for the queries that run, which are bounded, and closes.
func (q *querying) close() error {
	q.init()
	var errs []error
	for range queriers {
		if a := <-q.slots; a != nil {
			errs = append(errs, a.db.Close())
		}
	}
	return errors.Join(errs...)
}

// Ask implements store.Querier. What holds a statement back:
//
//   - scan cuts the text as SQLite does, and refuses what is more than one statement or
//     begins with another word than SELECT or WITH;
//   - while SQLite compiles it, the authorizer allows reading the view and calling the
//     functions that are listed, and nothing else: no write, no ATTACH, no PRAGMA, no
//     other table, whatever the text says;
//   - the connection is of its own, opened read-only with query_only;
//   - limits of the connection bound each value, the columns and the program;
//   - the deadline interrupts SQLite, and the functions whose time is
//     not linear in their arguments are replaced by ones that look at it;
//   - what makes the process grow by more than MaxQueryMemory is interrupted too.
//
// What a statement sorts or keeps beyond its cache goes to temporary files without a
// name, for as long as it may run.
func (s *Store) Ask(ctx context.Context, q store.Question) (a store.Answer, err error) {
	if err := checkQuestion(&q); err != nil {
		return a, err
	}
	tokens, err := one(q.SQL)
	if err != nil {
		return a, err
	}
	b, err := bind(tokens, q)
	if err != nil {
		return a, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.Timeout, errTooLong)
	defer cancel()
	on, err := s.asks.take(ctx)
	if err != nil {
		return a, askError(ctx, s.path, nil, q, err)
	}
	defer func() { s.asks.slots <- on }()
	defer s.gate.read()()
	g := &on.guard
	g.asked, g.why = 0, ""
	g.over.Store(false)
	g.large.Store(false)
	// The driver is given no context to end by: it would give the connection up, and
	// what it does about one is done here.
	quiet := context.WithoutCancel(ctx)
	c, err := on.conn(quiet)
	if err == nil {
		stop := g.watch(ctx)
		a, err = ask(quiet, c, b, q.Limit)
		stop()
		c.Close() //nolint:errcheck // back to its pool of one
	}
	if err != nil {
		return store.Answer{}, askError(ctx, s.path, g, q, err)
	}
	return a, nil
}

// errTooLong is why a query's own time ended it.
var errTooLong = errors.New("the query's time is up")

func checkQuestion(q *store.Question) error {
	refuse := func(format string, args ...any) error {
		return kernel.Errorf(opQuery, kernel.Validation, format, args...)
	}
	if q.Limit == 0 {
		q.Limit = store.QueryRows
	}
	if q.Timeout == 0 {
		q.Timeout = store.QueryTimeout
	}
	switch {
	case q.Limit < 1 || q.Limit > store.MaxQueryRows:
		return refuse("limit is %d; it is 1 to %d rows", q.Limit, store.MaxQueryRows)
	case q.Timeout < time.Millisecond || q.Timeout > store.MaxQueryTimeout:
		return refuse("timeout_ms is %d; it is 1 to %d", q.Timeout.Milliseconds(), store.MaxQueryTimeout.Milliseconds())
	case len(q.SQL) > store.MaxQuerySQL:
		return refuse("the statement has %d bytes; at most %d", len(q.SQL), store.MaxQuerySQL)
	case len(q.Sessions) > store.MaxQuerySessions:
		return refuse("%d sessions; at most %d", len(q.Sessions), store.MaxQuerySessions)
	}
	return nil
}

// ask runs the statement.
func ask(ctx context.Context, c *sql.Conn, b bound, limit int) (a store.Answer, err error) {
	rows, err := c.QueryContext(ctx, b.text, b.args...)
	if err != nil {
		return a, err
	}
	defer rows.Close()
	if a.Columns, err = rows.Columns(); err != nil {
		return a, err
	}
	if err := distinct(a.Columns); err != nil {
		return a, err
	}
	size, to := 0, make([]any, len(a.Columns))
	for rows.Next() {
		if len(a.Rows) == limit || size > store.MaxQueryBytes {
			a.Truncated = true
			return a, nil
		}
		row := make([]any, len(a.Columns))
		for i := range row {
			to[i] = &row[i]
		}
		if err := rows.Scan(to...); err != nil {
			return a, err
		}
		for i, v := range row {
			n, err := value(a.Columns[i], v)
			if err != nil {
				return a, err
			}
			size += n
		}
		a.Rows = append(a.Rows, row)
	}
	return a, rows.Err()
}

// distinct refuses two columns of one name: a row is a table by name, and one of them
// would be lost.
func distinct(columns []string) error {
	seen := map[string]bool{}
	for _, name := range columns {
		if seen[name] {
			return kernel.Errorf(opQuery, kernel.Validation, "two columns are named %q; name one of them with AS", clip(name))
		}
		if !utf8.ValidString(name) {
			return kernel.Errorf(opQuery, kernel.Validation, "a column's name is not UTF-8; name it with AS")
		}
		seen[name] = true
	}
	return nil
}

// value checks one value and gives its size.
func value(column string, v any) (int, error) {
	switch x := v.(type) {
	case nil, int64:
		return 8, nil
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return 8, nil
		}
		return 0, kernel.Errorf(opQuery, kernel.Unsupported, "the column %q holds a number that is not finite", clip(column))
	case string:
		if utf8.ValidString(x) {
			return len(x), nil
		}
		return 0, kernel.Errorf(opQuery, kernel.Unsupported, "the column %q holds text that is not UTF-8; take hex() of it", clip(column))
	}
	return 0, kernel.Errorf(opQuery, kernel.Unsupported, "the column %q holds a blob; take hex() of it", clip(column))
}

// SQLite's result codes that say what is wrong with a query.
const (
	codeError   = 1
	codeNoMem   = 7
	codeTooBig  = 18
	codeAuth    = 23
	codeRange   = 25
	codeMissuse = 21
)

// askError says what went wrong in the words of who asked.
func askError(ctx context.Context, path string, g *guard, q store.Question, err error) error {
	var known *kernel.Error
	if errors.As(err, &known) {
		return err
	}
	if g != nil && g.large.Load() {
		return kernel.Errorf(opQuery, kernel.Limit, "the query took more than %d bytes of memory; narrow it", store.MaxQueryMemory)
	}
	if ctx.Err() != nil {
		if errors.Is(context.Cause(ctx), errTooLong) {
			return kernel.Errorf(opQuery, kernel.Timeout, "the query took more than %d ms; narrow it, or give it more with timeout_ms (at most %d)",
				q.Timeout.Milliseconds(), store.MaxQueryTimeout.Milliseconds())
		}
		return kernel.Errorf(opQuery, kernel.Cancelled, "%w", context.Cause(ctx))
	}
	if g != nil && g.why != "" {
		return kernel.Errorf(opQuery, kernel.Validation, "the query was refused: %s", g.why)
	}
	var e *driver.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case codeTooBig:
			return kernel.Errorf(opQuery, kernel.Limit, "a value of the query has more than %d bytes, which is the most", store.MaxQueryValue)
		case codeNoMem:
			return kernel.Errorf(opQuery, kernel.Limit, "the query is too large for what a query may use")
		case codeError, codeAuth, codeRange, codeMissuse:
			return kernel.Errorf(opQuery, kernel.Validation, "sql: %s", sqlMessage(e))
		}
	}
	if strings.Contains(err.Error(), "database is closed") {
		return kernel.Errorf(opQuery, kernel.Closed, "%s is closed", path)
	}
	return classify(opQuery, path, err)
}

// sqlMessage takes the driver's wrapping off.
func sqlMessage(e *driver.Error) string {
	text := strings.TrimPrefix(e.Error(), "SQL logic error: ")
	if i := strings.LastIndex(text, " ("); i > 0 && strings.HasSuffix(text, ")") {
		text = text[:i]
	}
	return text
}
