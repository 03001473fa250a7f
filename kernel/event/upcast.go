package event

import (
	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

// Upcast brings a stored object {kind, meta, data, …} from its version to
// SchemaVersion, one step at a time; each step is a pure function. The object
// may be changed. A version that is newer than this program is unsupported.
func Upcast(version int, object map[string]any) (map[string]any, error) {
	if version > SchemaVersion {
		return nil, kernel.Errorf("event", kernel.Unsupported,
			"the event has schema version %d; this program reads up to %d", version, SchemaVersion)
	}
	if version < 1 {
		return nil, kernel.Errorf("event", kernel.Corruption, "the event has schema version %d", version)
	}
	if version == 1 {
		object = beatIntoMeta(object)
	}
	return object, nil
}

// beatIntoMeta is the step from 1 to 2: the beat was a field of the event
// itself, and is now a label like any other.
func beatIntoMeta(object map[string]any) map[string]any {
	beat, ok := object["beat"]
	if !ok {
		return object
	}
	meta, _ := object["meta"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
		object["meta"] = meta
	}
	if _, taken := meta["beat"]; !taken && beat != nil {
		meta["beat"] = beat
	}
	delete(object, "beat")
	return object
}

// Upcast gives the event in the current shape. A row of version 1 keeps the old
// object, without its kind, in the data column: {"beat", "meta", "data"}.
// Hash still is that of the stored bytes.
func (e Event) Upcast() (Event, error) {
	if e.SchemaVersion == SchemaVersion {
		return e, nil
	}
	object, err := logjson.Object(e.Data)
	if err != nil {
		return e, kernel.Errorf("event", kernel.Corruption, "%s:%d does not decode: %w", e.Stream, e.Seq, err)
	}
	if object, err = Upcast(e.SchemaVersion, object); err != nil {
		return e, err
	}
	for _, part := range []struct {
		key string
		to  *[]byte
	}{{"meta", &e.Meta}, {"data", &e.Data}} {
		m, _ := object[part.key].(map[string]any)
		if *part.to, err = logjson.Marshal(m); err != nil {
			return e, kernel.Errorf("event", kernel.Corruption, "%s:%d: %w", e.Stream, e.Seq, err)
		}
	}
	e.SchemaVersion = SchemaVersion
	return e, nil
}
