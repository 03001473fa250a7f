package ashlar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
)

// exported is a file of whole streams that was held against its hashes.
type exported struct {
	events   []event.Event // as they come in the file
	heads    []event.Head  // of the streams, in the order in which they begin
	contents [][]byte
}

// contentName is how an event names content of the store.
var contentName = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// Contents calls f with the content that an event names by "sha256:" and a hash, once
// for each of the event. What only looks like such a name is passed over.
func (l *Log) Contents(ctx context.Context, e event.Event, f func(event.Hash, []byte) error) error {
	seen := map[event.Hash]bool{}
	for _, part := range [][]byte{e.Meta, e.Data} {
		for _, name := range contentName.FindAll(part, -1) {
			h, err := event.ParseHash(string(name[len("sha256:"):]))
			if err != nil || seen[h] {
				continue
			}
			seen[h] = true
			body, err := l.store.Content(ctx, h)
			if errors.Is(err, kernel.NotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if err := f(h, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// readExported reads and checks a whole file. Errors are of kind corruption and name the
// event, or the line.
func readExported(r io.Reader) (*exported, error) {
	f, ends := &exported{}, map[string]int{} // stream to its place in heads
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, kernel.Errorf("log.import", kernel.Storage, "%w", err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if err := f.line(n, line, ends); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			break
		}
	}
	if len(f.events) == 0 {
		return nil, edited("there is no event in it; `ashlar log export --run RUN` makes one")
	}
	return f, nil
}

func edited(format string, args ...any) error {
	return kernel.Errorf("log.import", kernel.Corruption, "the file is not what was exported: "+format, args...)
}

func (f *exported) line(n int, line []byte, ends map[string]int) error {
	m, err := logjson.Object(line)
	if err != nil {
		return edited("line %d: %w", n, err)
	}
	if name, ok := m["content"].(string); ok {
		text, _ := m["base64"].(string)
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil || event.HashOf(body).String() != name {
			return edited("line %d: the content is not what the hash %s is of", n, name)
		}
		f.contents = append(f.contents, body)
		return nil
	}
	e, err := eventOf(m)
	if err != nil {
		return edited("line %d: %s", n, kernel.Message(err))
	}
	at, known := ends[e.Stream]
	if !known {
		at = len(f.heads)
		ends[e.Stream] = at
		f.heads = append(f.heads, event.Head{Stream: e.Stream, Hash: event.Origin(e.Stream)})
	}
	end := &f.heads[at]
	if e.Seq != end.Seq+1 {
		return edited("%s:%d (line %d) comes after %d events of its stream", e.Stream, e.Seq, n, end.Seq)
	}
	if event.Link(end.Hash, &e, event.HashOf(e.Meta), event.HashOf(e.Data)) != e.Hash {
		return edited("%s:%d (line %d): its hash is not the one of what it says and of the event before", e.Stream, e.Seq, n)
	}
	end.Seq, end.Hash = e.Seq, e.Hash
	f.events = append(f.events, e)
	return nil
}

// eventOf reads one event as `ashlar log export --run` prints it.
func eventOf(m map[string]any) (e event.Event, err error) {
	bad := func(what string) (event.Event, error) {
		return e, kernel.Errorf("log.import", kernel.Corruption, "it is no event of a run's export: %s", what)
	}
	var ok bool
	if e.Stream, ok = m["stream"].(string); !ok || e.Stream == "" {
		return bad("it names no stream")
	}
	if e.Kind, ok = m["kind"].(string); !ok {
		return bad("it has no kind")
	}
	if e.Seq, ok = m["seq"].(int64); !ok {
		return bad("it has no seq")
	}
	if e.EpochMS, ok = m["epoch_ms"].(int64); !ok {
		return bad("it has no epoch_ms")
	}
	version, ok := m["_schema_version"].(int64)
	if !ok || version != event.SchemaVersion {
		return bad(fmt.Sprintf("its _schema_version is not %d, the one that can be checked", event.SchemaVersion))
	}
	e.SchemaVersion = int(version)
	hash, _ := m["hash"].(string)
	if e.Hash, err = event.ParseHash(hash); err != nil {
		return bad("it has no hash")
	}
	for _, part := range []struct {
		key string
		to  *[]byte
	}{{"meta", &e.Meta}, {"data", &e.Data}} {
		object, ok := m[part.key].(map[string]any)
		if !ok {
			return bad("its " + part.key + " is no object")
		}
		if *part.to, err = logjson.Marshal(object); err != nil {
			return e, err
		}
	}
	return e, nil
}
