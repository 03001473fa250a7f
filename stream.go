package ashlar

import (
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"ashlar/kernel/logjson"
	"ashlar/kernel/redact"
)

// Fact is one line of the event stream (cli.md §4). Text in it is redacted.
type Fact struct {
	Seq     int64
	At      time.Time
	Run     string
	Session string
	Beat    string
	Type    string
	Fields  map[string]any
}

// StreamVersion is the "v" of every line; renaming or removing a field raises it.
const StreamVersion = 1

// line is the fact as NDJSON. What of it has no JSON is named in "omitted".
func (f Fact) line() ([]byte, error) {
	m := map[string]any{"v": int64(StreamVersion), "seq": f.Seq, "at": f.At.UTC().Format(time.RFC3339Nano), "run": f.Run, "type": f.Type}
	if f.Session != "" {
		m["session"] = f.Session
	}
	if f.Beat != "" {
		m["beat"] = f.Beat
	}
	for k, v := range f.Fields {
		m[k] = v
	}
	b, err := logjson.Marshal(m)
	if err != nil {
		// A field without JSON does not take its line with it.
		omitted := []any{}
		for _, k := range slices.Sorted(maps.Keys(f.Fields)) {
			v := validValue(f.Fields[k])
			if _, err := logjson.Marshal(v); err == nil {
				m[k] = v
				continue
			}
			delete(m, k)
			omitted = append(omitted, valid(k))
		}
		if len(omitted) > 0 {
			m["omitted"] = omitted
		}
		b, err = logjson.Marshal(m)
	}
	return append(b, '\n'), err
}

// Sink gets the facts of a run in order. It must not wait: a slow sink never slows
// a run.
type Sink interface{ Fact(Fact) }

// emitter numbers and redacts facts and hands them to the sinks.
type emitter struct {
	run    string
	now    func() time.Time
	redact *redact.Redactor
	sinks  []Sink

	mu    sync.Mutex
	seq   int64
	tails map[string]*tail // by session, beat and kind: a secret may lie across two deltas
}

// tail holds back what could still become a secret.
type tail struct {
	w   *redact.Writer
	out []byte
}

func (t *tail) Write(p []byte) (int, error) { t.out = append(t.out, p...); return len(p), nil }

// take gives what may go out of a delta; last also gives what was held.
func (t *tail) take(text string, last bool) string {
	_, _ = io.WriteString(t.w, text) // a tail's own Write never fails
	if last {
		_ = t.w.Close()
	}
	s := string(t.out)
	t.out = t.out[:0]
	return s
}

// emit sends one fact.
func (e *emitter) emit(typ, session, beat string, fields map[string]any) {
	if len(e.sinks) == 0 {
		return // nobody listens, and nobody will: sinks are set before the run begins
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if typ == "assistant_message" || typ == "beat_finished" || typ == "usage" {
		for _, kind := range []string{"assistant_delta", "reasoning_delta"} {
			key := session + " " + beat + " " + kind
			if t := e.tails[key]; t != nil {
				delete(e.tails, key)
				if rest := t.take("", true); rest != "" {
					e.send(kind, session, beat, map[string]any{"text": rest, "part": "delta"})
				}
			}
		}
	}
	clean, _ := redacted(e.redact, fields).(map[string]any)
	e.send(typ, session, beat, clean)
}

// delta sends a piece of text of a reply.
func (e *emitter) delta(session, beat, kind, text string) {
	if len(e.sinks) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	typ := "assistant_delta"
	if kind == "thinking" {
		typ = "reasoning_delta"
	}
	if e.tails == nil {
		e.tails = map[string]*tail{}
	}
	key := session + " " + beat + " " + typ
	t := e.tails[key]
	if t == nil {
		t = &tail{}
		t.w = e.redact.NewWriter(t)
		e.tails[key] = t
	}
	if out := t.take(text, false); out != "" {
		e.send(typ, session, beat, map[string]any{"text": out, "part": "delta"})
	}
}

func (e *emitter) send(typ, session, beat string, fields map[string]any) {
	e.seq++
	f := Fact{Seq: e.seq, At: e.now(), Run: e.run, Session: session, Beat: beat, Type: typ, Fields: fields}
	for _, s := range e.sinks {
		s.Fact(f)
	}
}

// redacted replaces secrets in every text of a value.
func redacted(r *redact.Redactor, v any) any {
	switch x := v.(type) {
	case string:
		return r.String(x)
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = redacted(r, e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[r.String(k)] = redacted(r, e)
		}
		return out
	}
	return v
}
