package ashlar

import (
	"context"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

// Query answers one SELECT over the view `events`: store.Querier.
func (l *Log) Query(ctx context.Context, q store.Question) (store.Answer, error) {
	s, ok := l.store.(store.Querier)
	if !ok {
		return store.Answer{}, kernel.Errorf("log", kernel.Unsupported, "this store answers no SQL")
	}
	return s.Ask(ctx, q)
}

// Backup writes a copy of the whole log, as it is at one moment, to a new file.
func (l *Log) Backup(ctx context.Context, path string) error {
	s, ok := l.store.(interface {
		Backup(ctx context.Context, path string) error
	})
	if !ok {
		return kernel.Errorf("log", kernel.Unsupported, "this store cannot be copied")
	}
	return s.Backup(ctx, path)
}

// followEvery is how often Tail looks for new events.
const followEvery = 100 * time.Millisecond

// Tail calls f with the last n events of a stream; where follow is set, then with
// each that anyone adds, until the stream has its ending (session_closed, of a run
// run_settled) or ctx ends, whose cause it returns. Kind not_found for a stream without
// events.
func (l *Log) Tail(ctx context.Context, stream string, n int, follow bool, f func(event.Event) error) error {
	head, err := l.store.Head(ctx, stream)
	if err != nil {
		return err
	}
	if head.Seq == 0 {
		return kernel.Errorf("log", kernel.NotFound, "no session %s in this log (ashlar log sessions lists them)", stream)
	}
	over, err := l.ended(ctx, stream)
	if err != nil {
		return err
	}
	from := max(1, head.Seq-int64(n)+1)
	for {
		events, more, err := l.store.Events(ctx, stream, store.Query{From: from, Bodies: true})
		if err != nil {
			return err
		}
		for _, e := range events {
			from = e.Seq + 1
			over = over || ends(e)
			if err := f(e); err != nil {
				return err
			}
		}
		switch {
		case more:
			continue
		case over || !follow:
			return nil
		}
		if err := pause(ctx, followEvery); err != nil {
			return err
		}
	}
}

func ends(e event.Event) bool { return e.Kind == event.SessionClosed || e.Kind == event.RunSettled }

// ended reports whether a stream has its ending already.
func (l *Log) ended(ctx context.Context, stream string) (bool, error) {
	last, _, err := l.store.Events(ctx, stream, store.Query{Kinds: []string{event.SessionClosed, event.RunSettled}, Last: 1})
	return len(last) > 0, err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
