package storetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

func appendedAs(t *testing.T, sub Subject) {
	ctx := context.Background()
	from := sub.Open(t, Options{Now: clock()})
	secret := "a-configured-secret"
	to := sub.Open(t, Options{Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(secret), []byte("[gone]")) }})
	message := map[string]any{"role": "user", "content": strings.Repeat("a message ", 60)}
	drafts := []event.Draft{
		{Kind: event.SessionOpened, Data: map[string]any{"owner": "me"}}, // a kind that is the kernel's alone
		{Kind: "note", Meta: map[string]any{"k": "v"}, Data: map[string]any{"text": strings.Repeat("a note ", 60), "x": 0.1}},
		{Kind: event.LLMRequest, Data: map[string]any{"request": map[string]any{"messages": []any{message, message}, "model": "m"}}},
		{Kind: "note", Data: map[string]any{"text": "holds " + secret}},
	}
	write(t, from, func(tx store.Tx) error {
		for _, d := range drafts {
			if _, err := tx.Append("s", d); err != nil {
				return err
			}
		}
		return nil
	})
	events, _, err := from.Events(ctx, "s", store.Query{Bodies: true})
	if err != nil || len(events) != len(drafts) {
		t.Fatal(len(events), err)
	}
	as := func(e event.Event) error {
		return to.Write(ctx, func(tx store.Tx) error { return tx.AppendAs(e) })
	}
	changed := func(e event.Event, how func(*event.Event)) event.Event { how(&e); return e }
	for name, e := range map[string]event.Event{
		"an event before its time": events[1],
		"another time":             changed(events[0], func(e *event.Event) { e.EpochMS++ }),
		"another kind":             changed(events[0], func(e *event.Event) { e.Kind = "note" }),
		"another stream":           changed(events[0], func(e *event.Event) { e.Stream = "t" }),
		"other data":               changed(events[0], func(e *event.Event) { e.Data = []byte(`{"owner":"you"}`) }),
		"no log JSON":              changed(events[0], func(e *event.Event) { e.Data = []byte(`{"owner": "me"}`) }),
		"no JSON":                  changed(events[0], func(e *event.Event) { e.Meta = []byte(`{`) }),
		"another version":          changed(events[0], func(e *event.Event) { e.SchemaVersion = 1 }),
	} {
		if err := as(e); !errors.Is(err, kernel.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if heads, err := to.Streams(ctx, "", store.MaxPage); err != nil || len(heads) != 0 {
		t.Errorf("what was refused left %v, %v", heads, err)
	}
	for _, e := range events[:3] {
		if err := as(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := as(events[3]); !errors.Is(err, kernel.Refused) {
		t.Errorf("a secret: %v", err)
	}
	got, _, err := to.Events(ctx, "s", store.Query{Bodies: true})
	if err != nil || len(got) != 3 {
		t.Fatal(len(got), err)
	}
	for i, e := range got {
		want := events[i]
		if e.Hash != want.Hash || e.EpochMS != want.EpochMS || e.Kind != want.Kind || !bytes.Equal(e.Data, want.Data) || !bytes.Equal(e.Meta, want.Meta) {
			t.Errorf("event %d is %+v, not %+v", i, e, want)
		}
	}
}
