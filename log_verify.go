package ashlar

import (
	"context"

	"ashlar/kernel/event"
	"ashlar/kernel/store/sqlite"
	"ashlar/kernel/verify"
)

// Verify reads the whole log and compares every chain, every piece of content and every
// projection with what they follow from; heads are ends of streams that were kept
// elsewhere. With repair the rows of projections that are wrong are rebuilt: the one
// thing by which a Log writes. A damaged log is a report, and no error.
func (l *Log) Verify(ctx context.Context, heads []event.Head, repair bool) (*verify.Report, error) {
	if !repair {
		return verify.Check(ctx, l.store, heads)
	}
	s, err := sqlite.Open(ctx, l.path, l.o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return verify.Repair(ctx, s, heads)
}
