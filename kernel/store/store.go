package store

import (
	"context"

	"ashlar/kernel/event"
)

// Store is the log's storage. One Store is one database, opened by one process;
// several processes may share the database. The suite in storetest is the
// definition of its behaviour.
type Store interface {
	Reader

	// Prepare encodes, redacts and hashes a draft on the caller's goroutine, so
	// that the write transaction need not; Append takes either form. The draft's
	// values must not be changed afterwards. Errors are those of Append.
	Prepare(d event.Draft) (event.Draft, error)

	// Write runs fn in one write transaction and returns when what it wrote is
	// durable. Transactions of concurrent callers are gathered into one commit,
	// in the order of arrival; when fn fails, what it wrote is undone and nobody
	// else's. fn must not wait and must not call the Store. It may run twice, where
	// another that shares its commit fails: what it leaves outside of the transaction
	// is that of its last run. A ctx that ends before fn has begun gives Cancelled; after
	// that the write is carried through.
	Write(ctx context.Context, fn func(Tx) error) error

	// Later queues fn to ride with the next commit, before any Write that is
	// called after it. It does not wait, and causes no commit of its own until
	// LaterLimit of them are queued, or Flush or Close is called. A failure is
	// returned by the next Flush and by Close.
	Later(fn func(Tx) error)

	// Flush commits what Later queued and waits for it.
	Flush(ctx context.Context) error

	// Collect frees the content and the messages that no event refers to any more,
	// and says how many rows that were. It looks at the whole log first, while others
	// write, and holds them up only for what came meanwhile.
	Collect(ctx context.Context) (freed int64, err error)

	// Owner names this opening of the database, for leases and for runs. It is
	// alive as long as this Store is open and its process runs.
	Owner() string

	// Alive reports whether the process that opened the database as owner still
	// has it open.
	Alive(owner string) bool

	// URL is the store in the grammar of --store: "sqlite:/path", "mem:name".
	URL() string

	// Close commits what is queued, releases the owner's lock and closes.
	Close() error
}

// LaterLimit is the number of queued Later calls that force a commit.
const LaterLimit = 1024

// MaxPage is the largest number of rows that one read returns.
const MaxPage = 1000

// MaxPageBytes cuts a page of events earlier when their bodies are large; a page
// holds at least one event. It does not bound Query.Last.
const MaxPageBytes = 64 << 20

// Reader is the reading half: it never waits for a writer.
type Reader interface {
	// Head gives the end of a stream; Seq is 0 for a stream that has no events.
	Head(ctx context.Context, stream string) (event.Head, error)

	// Events reads a page of one stream in order of seq, upcast; more reports
	// whether the page was cut.
	Events(ctx context.Context, stream string, q Query) (events []event.Event, more bool, err error)

	// Streams lists heads in the order in which the streams began, strictly after
	// the stream named; "" is before the first. NotFound for a name without events.
	Streams(ctx context.Context, after string, limit int) ([]event.Head, error)

	// Row reads one row of a projection.
	Row(ctx context.Context, table Table, key string) (value []byte, ok bool, err error)

	// Rows lists rows of a projection by key, strictly after a key.
	Rows(ctx context.Context, table Table, after string, limit int) ([]Row, error)

	// Content reads bytes that were kept by hash; NotFound when there are none.
	Content(ctx context.Context, h event.Hash) ([]byte, error)
}

// Query selects a page of one stream.
type Query struct {
	From   int64    // first seq wanted; 0 and 1 mean the beginning
	Limit  int      // at most this many, never more than MaxPage; 0 means MaxPage
	Kinds  []string // only these kinds; empty means all
	Last   int      // when > 0: the last so many events, however many, instead of From and Limit
	Bodies bool     // with the bodies of llm_request; without, their Data is {}

	// Mine says that nobody but this Store writes the stream, as the lease of a session
	// promises: what the Store remembers of it then needs no look at the database.
	Mine bool
}

// Tx is one write transaction. It sees its own writes.
type Tx interface {
	// Append adds an event to a stream: the next seq, the store's time, the
	// chained hash. Meta and data pass the redactor first.
	Append(stream string, d event.Draft) (event.Event, error)

	// AppendAs adds an event that has its place, time and hash already, as it was read
	// out of another log. Kinds: validation where it is not what follows the stream's
	// end, refused where it holds what the redactor takes out: it could not be kept as
	// it was hashed.
	AppendAs(e event.Event) error

	// Head gives the end of a stream within the transaction.
	Head(stream string) (event.Head, error)

	// Last gives the newest event of a kind in a stream. It walks back from the
	// stream's end: what is asked often belongs into a projection.
	Last(stream, kind string) (e event.Event, ok bool, err error)

	// Row, PutRow and DeleteRow work on projections: tables that can be rebuilt
	// from the log and change in the same transaction as their events.
	Row(table Table, key string) (value []byte, ok bool, err error)
	PutRow(table Table, key string, value []byte) error
	DeleteRow(table Table, key string) error

	// Rows lists rows of a projection by key, strictly after a key.
	Rows(table Table, after string, limit int) ([]Row, error)

	// PutContent keeps bytes by their hash, once.
	PutContent(body []byte) (event.Hash, error)

	// Remove takes a stream out of the log, whole, and gives the end that it had.
	// What it shared with others stays until Store.Collect. Only who appends a
	// tombstone in the same transaction may call it.
	Remove(stream string) (event.Head, error)

	// NowMS is the transaction's time, the one its events carry.
	NowMS() int64
}

// Row is one row of a projection; Value is log JSON.
type Row struct {
	Key   string
	Value []byte
}

// Table names a projection. The set is closed.
type Table string

// The projections.
const (
	Balances Table = "balance" // key stream + "/" + tag: what is left of a grant
	Runs     Table = "run"     // key run id: the ledger's row
	Leases   Table = "lease"   // key session id: who may write it
	Sessions Table = "session" // key session id: owner, scope, parent, run, whether it has ended
	Children Table = "child"   // key parent + "/" + child: there while the child is open
	Open     Table = "open"    // key run id + "/" + session id: there while the session is open
	Joined   Table = "joined"  // key run id + "/" + session id: the seq of its run_session
)

// Tables lists every projection.
func Tables() []Table {
	return []Table{Balances, Runs, Leases, Sessions, Children, Open, Joined}
}
