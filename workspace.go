package ashlar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/ident"
	"ashlar/kernel/redact"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/stdlib/fs"
)

// Version of this build; the linker sets it.
var Version = "0.1.0-dev"

// Options open a workspace. The zero value is a person's own: their environment,
// the current directory.
type Options struct {
	Project string   // the project's directory; "" is the current one
	Store   string   // sqlite:PATH or mem:; "" is ASHLAR_STORE, then $ASHLAR_HOME/kernel.db
	Environ []string // as os.Environ; nil is the process's
	Stdin   io.Reader
	Stdout  io.Writer // what scripts print
	Stderr  io.Writer // log lines of scripts
	// Notice is told what a user should know and nothing fails of; nil drops it.
	Notice func(string)

	// Statement is told of each statement that changed the store, by its number. It is
	// for tests that end the process there.
	Statement func(n int64)
	// Client sends model calls and http requests; nil is one of its own.
	Client *http.Client
	// Rand and Clock replace the machine's, for replay and tests.
	Rand  io.Reader
	Clock ident.Clock
}

// Workspace is a home, a project and an environment, opened. It is safe for
// concurrent use; Close it.
type Workspace struct {
	opts    Options
	home    string
	project string
	environ map[string]string
	redact  *redact.Redactor
	ids     *ident.Source
	url     string
	config  *config.Config

	mu     sync.Mutex
	stores map[string]store.Store // by URL
	ledger *run.Ledger

	toldAlone bool
}

// Open resolves home and project, reads the project's .env and learns its secrets.
// The log is opened by the first run or read that needs it. Kinds: validation for
// a project that is no directory or a home that is nowhere.
func Open(_ context.Context, o Options) (*Workspace, error) {
	o = o.withDefaults()
	w := &Workspace{opts: o, environ: fromList(o.Environ), redact: redact.New(), stores: map[string]store.Store{}}
	project := o.Project
	if project == "" {
		project = firstOf(w.environ["ASHLAR_PROJECT"], ".")
	}
	abs, err := filepath.Abs(project)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return nil, kernel.Errorf("open", kernel.Validation, "project %s: %v (name a directory with --project)", project, bare(err))
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return nil, kernel.Errorf("open", kernel.Validation, "project %s is no directory (name one with --project)", project)
	}
	if !utf8.ValidString(abs) {
		return nil, kernel.Errorf("open", kernel.Validation, "project %q: its path is not UTF-8 text, which the log needs it to be; give the directory another name", abs)
	}
	w.project = abs
	for _, n := range dotenv(abs, w.environ) {
		o.Notice(n)
	}
	for _, kv := range list(w.environ) {
		name, value, _ := strings.Cut(kv, "=")
		if redact.CredentialName(name) {
			w.redact.Add(name, value)
		}
	}
	if w.home, err = homeDir(w.environ); err != nil {
		return nil, err
	}
	if err := w.readConfig(); err != nil {
		return nil, err
	}
	w.ids = ident.New(o.Clock, o.Rand)
	if w.url, err = storeURL(firstOf(o.Store, w.environ["ASHLAR_STORE"]), w.home); err != nil {
		return nil, err
	}
	return w, nil
}

func (o Options) withDefaults() Options {
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Stdin == nil {
		o.Stdin = strings.NewReader("")
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Clock == nil {
		o.Clock = ident.System{}
	}
	return o
}

// storeURL reads the grammar of --store and makes its path absolute.
func storeURL(s, home string) (string, error) {
	const op = "store"
	if s == "" {
		return "sqlite:" + filepath.Join(home, "kernel.db"), nil
	}
	scheme, rest, ok := strings.Cut(s, ":")
	switch {
	case ok && scheme == "sqlite" && rest != "":
		abs, err := filepath.Abs(rest)
		if err != nil {
			return "", kernel.Errorf(op, kernel.Validation, "store %q: %w", s, err)
		}
		return "sqlite:" + abs, nil
	case ok && scheme == "mem":
		return s, nil
	}
	return "", kernel.Errorf(op, kernel.Validation, "store %q: want sqlite:PATH or mem:", s)
}

// area is the file system as a run may use it: without the home, and without the
// files of a log that lies elsewhere.
func (w *Workspace) area() fs.Area {
	a := fs.Area{Dir: w.project, Home: w.home}
	if path, ok := strings.CutPrefix(w.url, "sqlite:"); ok {
		a.Kept = storeFiles(path)
	}
	return a
}

// Outside refuses a path that leads into the home or to the log: no output of a run
// belongs there. Relative paths start at the current directory.
func (w *Workspace) Outside(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return kernel.Errorf("open", kernel.Validation, "%s: %w", path, err)
	}
	_, err = w.area().Resolve(abs)
	return err
}

// storeFiles names a database and what lies beside it.
func storeFiles(path string) []string {
	files := []string{path}
	for _, suffix := range []string{"-wal", "-shm", "-journal", ".wlock", ".owners"} {
		files = append(files, path+suffix)
	}
	return files
}

// Home is where the log and the user's own blocks live.
func (w *Workspace) Home() string { return w.home }

// Project is the project's directory, absolute, with links resolved.
func (w *Workspace) Project() string { return w.project }

// Getenv reads a variable of the workspace: the process's, then the project's .env.
func (w *Workspace) Getenv(name string) string { return w.environ[name] }

// Redact replaces known secrets in text that leaves the workspace by another way
// than a sink of its own.
func (w *Workspace) Redact(s string) string { return w.redact.String(s) }

// StoreURL is the store that runs and listings use.
func (w *Workspace) StoreURL() string { return w.url }

// Store opens the workspace's store, once.
func (w *Workspace) Store(ctx context.Context) (store.Store, error) { return w.open(ctx, w.url) }

// open opens a store by URL, once for each.
func (w *Workspace) open(ctx context.Context, url string) (store.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.stores[url]; ok {
		return s, nil
	}
	if url == w.url {
		// The home is the user's alone, whatever the umask says.
		if err := os.MkdirAll(w.home, 0o700); err != nil {
			return nil, kernel.Errorf("open", kernel.Storage, "ASHLAR_HOME %s: %w", w.home, err)
		}
	}
	o := sqlite.Options{Now: w.opts.Clock.Now, Rand: rand.Reader, Redact: w.redact.Bytes, Statement: w.opts.Statement}
	var s store.Store
	var err error
	scheme, rest, _ := strings.Cut(url, ":")
	if scheme == "mem" {
		s, err = sqlite.OpenMemory(ctx, rest, o)
	} else {
		s, err = sqlite.Open(ctx, rest, o)
	}
	if err != nil {
		return nil, err
	}
	w.alone(s)
	w.stores[url] = s
	return s, nil
}

// Runs is the run ledger of the workspace's store.
func (w *Workspace) Runs(ctx context.Context) (*run.Ledger, error) {
	s, err := w.Store(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ledger == nil {
		w.ledger = run.New(s, w.ids, os.Getpid())
	}
	return w.ledger, nil
}

// Close closes every store that was opened.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for url, s := range w.stores {
		if err := s.Close(); err != nil {
			errs = append(errs, fmt.Errorf("closing %s: %w", url, err))
		}
	}
	w.stores = map[string]store.Store{}
	return errors.Join(errs...)
}

// bare is what went wrong without the operation and the path, which a message of ours
// has said already.
func bare(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

func firstOf(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func (w *Workspace) pid() int { return os.Getpid() }
