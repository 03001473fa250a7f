package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/store"
)

func paging(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	const n = store.MaxPage + 5
	write(t, s, func(tx store.Tx) error {
		for range n {
			if _, err := tx.Append("a", event.Draft{Kind: "k"}); err != nil {
				return err
			}
		}
		return nil
	})
	page, more, err := s.Events(context.Background(), "a", store.Query{})
	if err != nil || len(page) != store.MaxPage || !more {
		t.Errorf("first page: %d, %v, %v", len(page), more, err)
	}
	page, more, err = s.Events(context.Background(), "a", store.Query{From: store.MaxPage + 1, Limit: 5})
	if err != nil || len(page) != 5 || more || page[0].Seq != store.MaxPage+1 {
		t.Errorf("last page: %d, %v, %v", len(page), more, err)
	}
	page, more, err = s.Events(context.Background(), "a", store.Query{From: n + 1})
	if err != nil || len(page) != 0 || more {
		t.Errorf("beyond: %d, %v, %v", len(page), more, err)
	}
	page, more, err = s.Events(context.Background(), "a", store.Query{Last: n})
	if err != nil || len(page) != n || more {
		t.Errorf("a long tail: %d, %v, %v", len(page), more, err)
	}
	verifyChain(t, s, "a")
}

func lastAndKinds(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	for i := range 6 {
		appendOne(t, s, "a", fmt.Sprint("k", i%3), nil)
		appendOne(t, s, "b", "k0", nil)
	}
	for _, c := range []struct {
		q    store.Query
		want string
		more bool
	}{
		{store.Query{Last: 2}, "5k1 6k2", false},
		{store.Query{Last: 9}, "1k0 2k1 3k2 4k0 5k1 6k2", false},
		{store.Query{Kinds: []string{"k0", "k2"}}, "1k0 3k2 4k0 6k2", false},
		{store.Query{Kinds: []string{"k0", "k2"}, From: 2, Limit: 2}, "3k2 4k0", true},
		{store.Query{Kinds: []string{"k1"}, Last: 1}, "5k1", false},
		{store.Query{Kinds: []string{"none"}}, "", false},
		{store.Query{From: 3, Limit: 1}, "3k2", true},
	} {
		events, more, err := s.Events(context.Background(), "a", c.q)
		var got []string
		for _, e := range events {
			got = append(got, fmt.Sprint(e.Seq, e.Kind))
		}
		if err != nil || strings.Join(got, " ") != c.want || more != c.more {
			t.Errorf("%+v gave %v, more %v, %v", c.q, got, more, err)
		}
	}
}

// conversation is a request of n messages, some short and some long.
func conversation(n int, tools string) map[string]any {
	messages := make([]any, n)
	for i := range messages {
		messages[i] = map[string]any{"role": "user", "content": text(i%4*150, fmt.Sprint("message ", i))}
	}
	return map[string]any{
		"request": map[string]any{"messages": messages, "model": "m", "system": "control \x01\x02 é 😀", "tools": tools},
		"window":  map[string]any{"before": int64(n)},
	}
}

func requestBodies(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	ctx := context.Background()
	var want []string
	for _, n := range []int{0, 1, 3, 7, 7, 4, 9} {
		data := conversation(n, text(600, "tool"))
		e := appendOne(t, s, "a", event.LLMRequest, data)
		want = append(want, encodeJSON(t, data))
		if string(e.Data) != want[len(want)-1] {
			t.Errorf("append gave other bytes: %.200s", e.Data)
		}
	}
	// The same list in another stream, and a changed one: neither disturbs.
	appendOne(t, s, "b", event.LLMRequest, conversation(9, "other"))
	for i, e := range all(t, s, "a") {
		if string(e.Data) != want[i] {
			t.Errorf("request %d came back as\n%.300s\nwant\n%.300s", i, e.Data, want[i])
		}
	}
	verifyChain(t, s, "a")
	verifyChain(t, s, "b")
	slim, _, err := s.Events(ctx, "a", store.Query{})
	if err != nil || len(slim) != len(want) {
		t.Fatalf("%d events, %v", len(slim), err)
	}
	for _, e := range slim {
		if string(e.Data) != "{}" {
			t.Errorf("bodies that nobody asked for: %.80s", e.Data)
		}
	}
}

func oddRequests(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	for _, data := range []map[string]any{
		nil, {}, {"request": nil}, {"request": "text"}, {"request": map[string]any{}},
		{"request": map[string]any{"messages": "none"}}, {"request": map[string]any{"messages": []any{}}},
		{"request": map[string]any{"messages": []any{nil, "x", int64(1), []any{}, false}}},
		{"a": text(2000, "a"), "request": map[string]any{"messages": []any{"m"}}, "z": text(2000, "z")},
	} {
		e := appendOne(t, s, "a", event.LLMRequest, data)
		if want := encodeJSON(t, data); string(e.Data) != want {
			t.Errorf("%.80s became %.80s", want, e.Data)
		}
	}
	verifyChain(t, s, "a")
}

func largeBodies(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	for _, n := range []int{200, 256, 257, 100_000, 3_000_000} {
		body := text(n, "x")
		var e event.Event
		write(t, s, func(tx store.Tx) (err error) {
			e, err = tx.Append("a", event.Draft{Kind: "k", Meta: map[string]any{"m": body}, Data: map[string]any{"d": body}})
			return err
		})
		if want := encodeJSON(t, map[string]any{"d": body}); string(e.Data) != want {
			t.Errorf("%d bytes changed", n)
		}
	}
	verifyChain(t, s, "a")
}

func redaction(t *testing.T, sub Subject) {
	redact := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("[secret]")) }
	s := sub.Open(t, Options{Redact: redact})
	write(t, s, func(tx store.Tx) error {
		_, err := tx.Append("a", event.Draft{Kind: "k", Meta: map[string]any{"m": "hunter2"}, Data: map[string]any{"hunter2": "x", "a": "hunter2"}})
		return err
	})
	data := conversation(3, "hunter2")
	request := data["request"].(map[string]any)
	request["messages"].([]any)[1] = map[string]any{"role": "user", "content": "my password is hunter2"}
	data["window"] = "hunter2"
	e := appendOne(t, s, "a", event.LLMRequest, data)
	if strings.Contains(string(e.Data), "hunter2") || strings.Count(string(e.Data), "[secret]") != 3 {
		t.Errorf("append gave %s", e.Data)
	}
	for _, e := range all(t, s, "a") {
		if strings.Contains(string(e.Meta)+string(e.Data), "hunter2") {
			t.Errorf("the secret is stored: %s %s", e.Meta, e.Data)
		}
	}
	if got := string(all(t, s, "a")[0].Data); got != `{"[secret]":"x","a":"[secret]"}` {
		t.Errorf("not canonical after redaction: %s", got)
	}
	verifyChain(t, s, "a")
}

func brokenRedactor(t *testing.T, sub Subject) {
	for name, redact := range map[string]func([]byte) []byte{
		"no JSON":   func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`"secret"`), []byte(`secret`)) },
		"no object": func(b []byte) []byte { return []byte(`"gone"`) },
		"key lost":  func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(`messages`), []byte(`m`)) },
	} {
		s := sub.Open(t, Options{Redact: redact})
		err := s.Write(context.Background(), func(tx store.Tx) error {
			_, err := tx.Append("a", event.Draft{Kind: event.LLMRequest, Data: map[string]any{
				"request": map[string]any{"messages": []any{"secret"}}}})
			return err
		})
		if !errors.Is(err, kernel.Validation) {
			t.Errorf("%s: %v", name, err)
		}
		if n := len(all(t, s, "a")); n != 0 {
			t.Errorf("%s: %d events are stored", name, n)
		}
	}
}

func upcast(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	appendOne(t, s, "a", "first", nil)
	sub.PlantV1(t, s, "a", 2, event.LLMRequest, `{"beat":"b1","data":{"request":{}},"meta":{"x":1}}`)
	check := func(where string, e event.Event, data string) {
		t.Helper()
		if e.SchemaVersion != event.SchemaVersion || string(e.Meta) != `{"beat":"b1","x":1}` || string(e.Data) != data {
			t.Errorf("%s: version %d meta %s data %s", where, e.SchemaVersion, e.Meta, e.Data)
		}
	}
	check("events", all(t, s, "a")[1], `{"request":{}}`)
	for _, q := range []store.Query{{Last: 1}, {From: 2}, {Kinds: []string{event.LLMRequest}}} {
		events, _, err := s.Events(context.Background(), "a", q)
		if err != nil || len(events) != 1 {
			t.Fatalf("%+v: %v, %v", q, events, err)
		}
		check(fmt.Sprintf("%+v", q), events[0], `{}`)
	}
	write(t, s, func(tx store.Tx) error {
		e, ok, err := tx.Last("a", event.LLMRequest)
		if !ok || err != nil {
			t.Fatalf("last: %v %v", ok, err)
		}
		check("last", e, `{"request":{}}`)
		return nil
	})
}

func prepared(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{Now: clock()})
	for _, d := range []event.Draft{
		{Kind: "k", Meta: map[string]any{"a": int64(1)}, Data: map[string]any{"x": text(900, "x")}},
		{Kind: event.LLMRequest, Data: conversation(5, "t")},
	} {
		p, err := s.Prepare(d)
		if err != nil {
			t.Fatal(err)
		}
		write(t, s, func(tx store.Tx) error {
			if _, err := tx.Append("plain", d); err != nil {
				return err
			}
			_, err := tx.Append("prepared", p)
			return err
		})
	}
	a, b := all(t, s, "plain"), all(t, s, "prepared")
	for i := range a {
		if !bytes.Equal(a[i].Data, b[i].Data) || !bytes.Equal(a[i].Meta, b[i].Meta) {
			t.Errorf("event %d differs", i)
		}
	}
	verifyChain(t, s, "prepared")
	if _, err := s.Prepare(event.Draft{Kind: "k", Data: map[string]any{"a": 1}}); !errors.Is(err, kernel.Validation) {
		t.Errorf("preparing an invalid draft: %v", err)
	}
}

func twoOpenings(t *testing.T, sub Subject) {
	if sub.Reopen == nil {
		t.Skip("the store lives in one opening")
	}
	a := sub.Open(t, Options{})
	b := sub.Reopen(t, a)
	for i := range 20 {
		for _, s := range []store.Store{a, b} {
			appendOne(t, s, "shared", "k", map[string]any{"n": int64(i), "t": text(400, "same")})
			appendOne(t, s, "shared", event.LLMRequest, conversation(i, "t"))
		}
	}
	for _, s := range []store.Store{a, b} {
		if n := len(all(t, s, "shared")); n != 80 {
			t.Errorf("%d events", n)
		}
		verifyChain(t, s, "shared")
	}
}

func ownerLives(t *testing.T, sub Subject) {
	a := sub.Open(t, Options{})
	if a.Owner() == "" || !a.Alive(a.Owner()) {
		t.Errorf("an open store is not alive to itself")
	}
	for _, name := range []string{"", "nobody", "../escape", strings.Repeat("0", 32)} {
		if a.Alive(name) {
			t.Errorf("%q is alive", name)
		}
	}
	if sub.Reopen == nil {
		return
	}
	b := sub.Reopen(t, a)
	if a.Owner() == b.Owner() || !a.Alive(b.Owner()) || !b.Alive(a.Owner()) {
		t.Errorf("two openings do not see each other alive")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if a.Alive(b.Owner()) || !a.Alive(a.Owner()) {
		t.Errorf("a closed opening is alive")
	}
}

func streams(t *testing.T, sub Subject) {
	s := sub.Open(t, Options{})
	for _, n := range []string{"c", "a", "b", "a"} {
		appendOne(t, s, n, "k", nil)
	}
	// In the order in which they began, whatever they are called and were written to since.
	heads, err := s.Streams(context.Background(), "", 0)
	if err != nil || len(heads) != 3 || heads[0].Stream != "c" || heads[1].Stream != "a" || heads[2].Stream != "b" ||
		heads[1].Seq != 2 || heads[1].Hash == (event.Hash{}) {
		t.Errorf("%+v, %v", heads, err)
	}
	if heads, err = s.Streams(context.Background(), "c", 1); err != nil || len(heads) != 1 || heads[0].Stream != "a" {
		t.Errorf("%+v, %v", heads, err)
	}
	if heads, err = s.Streams(context.Background(), "b", 0); err != nil || len(heads) != 0 {
		t.Errorf("after the last: %+v, %v", heads, err)
	}
	if _, err = s.Streams(context.Background(), "nosuch", 0); !errors.Is(err, kernel.NotFound) {
		t.Errorf("after a stream that is not there: %v", err)
	}
}
