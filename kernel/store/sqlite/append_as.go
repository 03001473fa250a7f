package sqlite

import (
	"bytes"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store/encode"
)

// AppendAs implements store.Tx. The event is taken apart and kept as one that is new.
func (v *view) AppendAs(e event.Event) error {
	t, err := v.alive()
	if err != nil {
		return err
	}
	d := event.Draft{Kind: e.Kind}
	if d.Meta, err = logjson.Object(e.Meta); err == nil {
		d.Data, err = logjson.Object(e.Data)
	}
	if err != nil {
		return kernel.Errorf(opWrite, kernel.Validation, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
	}
	enc, err := encode.Draft(d, nil)
	switch {
	case err != nil:
		return kernel.Errorf(opWrite, kernel.Validation, "%s:%d: %w", e.Stream, e.Seq, err)
	case e.SchemaVersion != event.SchemaVersion:
		return kernel.Errorf(opWrite, kernel.Validation, "%s:%d has schema version %d; only %d is written", e.Stream, e.Seq, e.SchemaVersion, event.SchemaVersion)
	case !bytes.Equal(enc.Meta.Bytes, e.Meta) || !bytes.Equal(enc.Data.Bytes, e.Data):
		return kernel.Errorf(opWrite, kernel.Validation, "%s:%d is no log JSON", e.Stream, e.Seq)
	}
	if t.redact != nil {
		clean, err := encode.Draft(d, t.redact)
		if err != nil || clean.Meta.Hash != enc.Meta.Hash || clean.Data.Hash != enc.Data.Hash {
			return kernel.Errorf(opWrite, kernel.Refused, "%s:%d holds a secret that is configured here, and without it its hash would not be right", e.Stream, e.Seq)
		}
	}
	_, err = t.place(e.Stream, enc, e.EpochMS, &e)
	return err
}
