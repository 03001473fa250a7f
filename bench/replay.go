package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
	"ashlar/kernel/verify"
)

// replays measures the replay of a run of 200 beats with a tool each, from its record.
func replays(p place) ([]figure, error) {
	m, err := startModel(func(n int) (string, string, string) {
		if n == toolTurns {
			return "done", "", ""
		}
		return "", "look", fmt.Sprintf(`{"n":%d}`, n)
	})
	if err != nil {
		return nil, err
	}
	dir, err := p.sub("replay")
	if err != nil {
		return nil, err
	}
	_, ws, err := block(dir, m.url, fmt.Sprintf(toolsBlock, `"seen " .. input.n .. " at " .. std.time.now()`))
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	m.close() // a replay asks nobody
	ledger, err := ws.Runs(context.Background())
	if err != nil {
		return nil, err
	}
	runs, err := ledger.List(context.Background(), "", 1)
	if err != nil || len(runs) != 1 {
		return nil, fmt.Errorf("%d runs: %w", len(runs), err)
	}
	began := time.Now()
	r, err := ws.Replay(context.Background(), runs[0].ID, ashlar.ReplayOptions{})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if !r.Equal {
		return nil, fmt.Errorf("the replay is another run: %+v", r)
	}
	return []figure{{what: "replay of a run of 200 beats", asked: 1000, measured: ms(took), unit: " ms"}}, nil
}

// verifies measures how many events `log verify` checks in a second.
func verifies(p place) ([]figure, error) {
	ctx := context.Background()
	dir, err := p.sub("verify")
	if err != nil {
		return nil, err
	}
	s, err := sqlite.Open(ctx, filepath.Join(dir, "kernel.db"), sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	const streams, each = 100, 500
	for i := range streams {
		err := s.Write(ctx, func(tx store.Tx) error {
			for n := range each {
				d := event.Draft{Kind: "note", Meta: map[string]any{"beat": "b"}, Data: map[string]any{"n": int64(n), "text": "a line of some tool, as long as lines are"}}
				if _, err := tx.Append(fmt.Sprint("s", i), d); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	began := time.Now()
	for i := range streams {
		if _, _, err := s.Events(ctx, fmt.Sprint("s", i), store.Query{Bodies: true}); err != nil {
			return nil, err
		}
	}
	plain := time.Since(began)
	began = time.Now()
	r, err := verify.Check(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	if !r.OK() || r.Events != streams*each {
		return nil, fmt.Errorf("verify says %+v", r)
	}
	return []figure{{what: "log verify, events a second", asked: 100_000, least: true, measured: streams * each / took.Seconds(),
		detail: fmt.Sprintf("%.2f times a plain read", float64(took)/float64(plain))}}, nil
}
