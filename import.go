package ashlar

import (
	"bytes"
	"context"
	"io"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/verify"
)

// Imported says what an import added. Streams were written, There were in the log
// already, event by event the same. Report is that of the whole log behind it.
type Imported struct {
	Streams, There   []string
	Events, Contents int64
	Report           *verify.Report
}

// Import adds what Log.Contents and Log.Events gave of whole streams to the workspace's
// log: the lines of `ashlar log export --run`. All of it is held against its hashes
// before anything is written; then it goes in by one transaction, with its own times and
// hashes, and the rows of projections that follow from it. Kinds: corruption for what is
// not as it was exported, naming the event; refused for a stream that is in the log with
// other events, and for what holds a secret that is configured here.
func (w *Workspace) Import(ctx context.Context, r io.Reader) (in Imported, err error) {
	const op = "log.import"
	f, err := readExported(r)
	if err != nil {
		return in, err
	}
	for _, c := range f.contents {
		if !bytes.Equal(w.redact.Bytes(c), c) {
			return in, kernel.Errorf(op, kernel.Refused, "the content sha256:%s holds a secret that is configured here", event.HashOf(c))
		}
	}
	rows, err := verify.Rows(f.events)
	if err != nil {
		return in, err
	}
	s, err := w.Store(ctx)
	if err != nil {
		return in, err
	}
	err = s.Write(ctx, func(tx store.Tx) error {
		in = Imported{}
		fresh, err := f.fresh(tx, &in)
		if err != nil || len(fresh) == 0 {
			return err
		}
		for _, c := range f.contents {
			if _, err := tx.PutContent(c); err != nil {
				return err
			}
			in.Contents++
		}
		for _, e := range f.events {
			if !fresh[e.Stream] {
				continue
			}
			if err := tx.AppendAs(e); err != nil {
				return err
			}
			in.Events++
		}
		for _, row := range rows {
			if !fresh[row.Stream] {
				continue
			}
			if err := tx.PutRow(row.Table, row.Key, row.Value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Imported{}, err
	}
	in.Report, err = verify.Check(ctx, s, f.heads)
	return in, err
}

// fresh tells which streams are not in the log yet. One that is must be the same.
func (f *exported) fresh(tx store.Tx, in *Imported) (map[string]bool, error) {
	fresh := map[string]bool{}
	for _, h := range f.heads {
		is, err := tx.Head(h.Stream)
		switch {
		case err != nil:
			return nil, err
		case is.Seq == 0:
			fresh[h.Stream] = true
			in.Streams = append(in.Streams, h.Stream)
		case is == h:
			in.There = append(in.There, h.Stream)
		default:
			return nil, kernel.Errorf("log.import", kernel.Refused,
				"%s is in this log with other events: it ends at %d:%s, the file's at %d:%s", h.Stream, is.Seq, is.Hash, h.Seq, h.Hash)
		}
	}
	return fresh, nil
}
