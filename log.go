package ashlar

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

// Log reads the log from outside a run. It adds nothing to it: the store is opened for
// reading, so that no writer waits for it and the file stays as it is, unless it is of an
// older version and has to be brought up to date first.
type Log struct {
	store store.Store
	path  string
	o     sqlite.Options // to open it for writing, which Repair alone does
}

// SessionInfo is one session as a listing shows it.
type SessionInfo struct {
	ID       string
	Owner    string
	Parent   string
	Run      string
	Project  string
	Block    string
	Labels   map[string]any
	OpenedMS int64
	Closed   string // the reason it was closed for; "" while it is open
	Events   int64
	Head     string // hash of the last event, in hexadecimal
}

// Log opens the workspace's log for reading. Kinds: not_found where there is none,
// validation for a store that lives with a process.
func (w *Workspace) Log(ctx context.Context) (*Log, error) {
	const op = "log"
	path, ok := strings.CutPrefix(w.url, "sqlite:")
	if !ok {
		return nil, kernel.Errorf(op, kernel.Validation, "store %s lives with its process and cannot be read from outside; name sqlite:PATH with --store", w.url)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, kernel.Errorf(op, kernel.NotFound, "there is no log at %s; a run makes it", path)
	}
	l := &Log{path: path, o: sqlite.Options{Now: w.opts.Clock.Now, Rand: rand.Reader, Redact: w.redact.Bytes}}
	w.mu.Lock()
	defer w.mu.Unlock()
	reading := "read " + w.url // beside the store that is written, and closed with it
	for _, url := range []string{w.url, reading} {
		if s, ok := w.stores[url]; ok {
			l.store = s
			return l, nil
		}
	}
	s, err := sqlite.OpenReader(ctx, path, l.o)
	if err != nil {
		return nil, err
	}
	w.alone(s)
	w.stores[reading], l.store = s, s
	return l, nil
}

// Sessions lists sessions in the order in which they were opened, the newest last,
// strictly after an id. Only those that match stay: labels all equal, project "" any.
// next is where to go on; "" at the end. Kind not_found for an id that is none.
func (l *Log) Sessions(ctx context.Context, after string, limit int, labels map[string]any, project string) (list []SessionInfo, next string, err error) {
	for {
		heads, err := l.store.Streams(ctx, after, store.MaxPage)
		if errors.Is(err, kernel.NotFound) {
			return nil, "", kernel.Errorf("log", kernel.NotFound, "no session %s in this log", after)
		}
		if err != nil {
			return nil, "", err
		}
		for _, h := range heads {
			after = h.Stream
			if strings.HasPrefix(h.Stream, "run:") || h.Stream == event.Audit {
				continue
			}
			info, err := l.session(ctx, h)
			if err != nil {
				return nil, "", err
			}
			if !matches(info, labels, project) {
				continue
			}
			list = append(list, info)
			if len(list) == limit {
				return list, after, nil
			}
		}
		if len(heads) < store.MaxPage {
			return list, "", nil
		}
	}
}

func matches(i SessionInfo, labels map[string]any, project string) bool {
	if project != "" && i.Project != project {
		return false
	}
	for k, v := range labels {
		if i.Labels[k] != v {
			return false
		}
	}
	return true
}

func (l *Log) session(ctx context.Context, h event.Head) (SessionInfo, error) {
	info := SessionInfo{ID: h.Stream, Events: h.Seq, Head: hex.EncodeToString(h.Hash[:])}
	first, _, err := l.store.Events(ctx, h.Stream, store.Query{Limit: 1})
	if err != nil || len(first) == 0 {
		return info, err
	}
	data, err := logjson.Object(first[0].Data)
	if err != nil {
		return info, err
	}
	info.OpenedMS = first[0].EpochMS
	info.Owner, _ = data["owner"].(string)
	info.Parent, _ = data["parent"].(string)
	if info.Labels, err = logjson.Object(first[0].Meta); err != nil {
		return info, err
	}
	value, ok, err := l.store.Row(ctx, store.Sessions, h.Stream)
	if err != nil || !ok {
		return info, err
	}
	row, err := logjson.Object(value)
	if err != nil {
		return info, err
	}
	info.Run, _ = row["run"].(string)
	if info.Run != "" {
		r, err := run.New(l.store, nil, 0).Look(ctx, info.Run)
		if err == nil {
			info.Project, info.Block = r.Project, r.Block
		}
	}
	if ended, _ := row["ended"].(bool); !ended {
		return info, nil
	}
	// It is the last event, but for what other handles had left to say.
	closed, _, err := l.store.Events(ctx, h.Stream, store.Query{Kinds: []string{event.SessionClosed}, Last: 1})
	if err != nil || len(closed) == 0 {
		return info, err
	}
	if data, err = logjson.Object(closed[0].Data); err == nil {
		info.Closed, _ = data["reason"].(string)
	}
	return info, err
}

// Events calls f with every event of a stream in order; without bodies the data of
// llm_request is {}. Kind not_found for a stream that has none.
func (l *Log) Events(ctx context.Context, stream string, bodies bool, f func(event.Event) error) error {
	found := false
	for from, more := int64(1), true; more; {
		var events []event.Event
		var err error
		events, more, err = l.store.Events(ctx, stream, store.Query{From: from, Bodies: bodies})
		if err != nil {
			return err
		}
		for _, e := range events {
			found = true
			from = e.Seq + 1
			if err := f(e); err != nil {
				return err
			}
		}
	}
	if !found {
		return kernel.Errorf("log", kernel.NotFound, "no session %s in this log (ashlar log sessions lists them)", stream)
	}
	return nil
}

// Run reads a run of the ledger.
func (l *Log) Run(ctx context.Context, id string) (run.Row, error) {
	return run.New(l.store, nil, 0).Get(ctx, id)
}
