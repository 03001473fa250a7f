package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/session"
	"ashlar/kernel/store/sqlite"
)

const (
	writers     = 64
	appendsTime = time.Second
)

// appends compares many sessions that append at once with one: one fsync pays for
// all that waited.
func appends(p place) ([]figure, error) {
	dir, err := p.sub("store")
	if err != nil {
		return nil, err
	}
	one, _, err := appendAt(filepath.Join(dir, "one.db"), 1)
	if err != nil {
		return nil, err
	}
	many, commits, err := appendAt(filepath.Join(dir, "many.db"), writers)
	if err != nil {
		return nil, err
	}
	return []figure{
		{what: "events per commit, 64 sessions appending", asked: 16, least: true, measured: float64(many) / float64(commits)},
		{what: "their rate against one session's", asked: 5, least: true, measured: float64(many) / float64(one),
			detail: fmt.Sprintf("%d/s against %d/s", many, one)},
	}, nil
}

// appendAt counts what n sessions append in appendsTime, and the commits of that.
func appendAt(path string, n int) (events, commits int64, err error) {
	return appendFor(path, n, appendsTime)
}

func appendFor(path string, n int, d time.Duration) (events, commits int64, err error) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer s.Close()
	book := session.NewBook(session.Options{Store: s, IDs: ident.New(ident.System{}, rand.Reader)})
	sessions := make([]*session.Session, n)
	for i := range sessions {
		if sessions[i], err = book.Open(ctx, session.Opening{}); err != nil {
			return 0, 0, err
		}
	}
	before := s.Commits()
	var count atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, one := range sessions {
		wg.Go(func() {
			for time.Now().Before(end) {
				if _, err := one.Append(ctx, event.Draft{Kind: "note", Data: map[string]any{"text": "a few words of a note"}}); err != nil {
					failed.Store(&err)
					return
				}
				count.Add(1)
			}
		})
	}
	wg.Wait()
	if e := failed.Load(); e != nil {
		return 0, 0, *e
	}
	return count.Load(), s.Commits() - before, nil
}
