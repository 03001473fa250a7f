package event_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
)

func TestKernelKindsAreUnforgeable(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"session_opened", "session_closed", "budget_granted", "budget_reserved", "budget_refused",
		"budget_spent", "budget_settled", "run_queued", "run_owned", "run_session", "run_waiting", "run_settled", "syscall", "handover"} {
		if err := event.Validate(event.Draft{Kind: kind}, false); !errors.Is(err, kernel.Validation) {
			t.Errorf("a caller may write %s: %v", kind, err)
		}
		if err := event.Validate(event.Draft{Kind: kind}, true); err != nil {
			t.Errorf("the kernel may not write %s: %v", kind, err)
		}
	}
	for _, kind := range []string{"msg_user", "llm_retry", "tool_result", "run_started", "anything"} {
		if err := event.Validate(event.Draft{Kind: kind}, false); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestADraftThatBreaksTheRulesIsRefused(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]event.Draft{
		"no kind":     {},
		"long kind":   {Kind: strings.Repeat("k", event.MaxKindBytes+1)},
		"binary kind": {Kind: "a\xff"},
		"line break":  {Kind: "a\nb"},
		"null meta":   {Kind: "k", Meta: map[string]any{"a": nil}},
		"nested meta": {Kind: "k", Meta: map[string]any{"a": []any{}}},
	} {
		if err := event.Validate(d, true); !errors.Is(err, kernel.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ok := event.Draft{Kind: "k", Meta: map[string]any{"s": "x", "i": int64(1), "f": 1.5, "b": true, "n": json.Number("99999999999999999999")}}
	if err := event.Validate(ok, false); err != nil {
		t.Error(err)
	}
}

// The origin was computed with sha256sum.
func TestTheChainIsTheOneThatIsPublished(t *testing.T) {
	t.Parallel()
	meta, data := event.HashOf([]byte(`{}`)), event.HashOf([]byte(`{"a":1}`))
	e := event.Event{Stream: "s", Seq: 1, EpochMS: 1757300000123, Kind: "msg_user", SchemaVersion: 2}
	text := `["` + event.Origin("s").String() + `","s",1,1757300000123,"msg_user",2,"` + meta.String() + `","` + data.String() + `"]`
	if got, want := event.Link(event.Origin("s"), &e, meta, data), event.HashOf([]byte(text)); got != want {
		t.Errorf("%s, want %s over %s", got, want, text)
	}
	if got := event.Origin("s").String(); got != "7bcf47bd28c320bd85c2a94afdfb61719496a90a3349e37783c664432207d781" {
		t.Errorf("origin of s is %s", got)
	}
	seen := map[event.Hash]bool{}
	for _, change := range []func(*event.Event){
		func(*event.Event) {}, func(e *event.Event) { e.Stream = "t" }, func(e *event.Event) { e.Seq = 2 },
		func(e *event.Event) { e.EpochMS++ }, func(e *event.Event) { e.Kind = "x" }, func(e *event.Event) { e.SchemaVersion = 1 },
	} {
		f := e
		change(&f)
		h := event.Link(event.Origin("s"), &f, meta, data)
		if seen[h] {
			t.Errorf("a change of %+v does not show", f)
		}
		seen[h] = true
	}
}

func TestAnOlderEventIsReadInTheCurrentShape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"beat":"b1","data":{"x":1},"meta":{"a":"z"}}`: `{"a":"z","beat":"b1"} {"x":1}`,
		`{"beat":"b1"}`: `{"beat":"b1"} {}`,
		`{"data":{"beat":1},"meta":{"beat":2},"beat":3}`: `{"beat":2} {"beat":1}`,
	} {
		e, err := event.Event{SchemaVersion: 1, Meta: []byte(`{}`), Data: []byte(in)}.Upcast()
		if got := string(e.Meta) + " " + string(e.Data); err != nil || got != want || e.SchemaVersion != 2 {
			t.Errorf("%s became %s (version %d, %v)", in, got, e.SchemaVersion, err)
		}
	}
	if _, err := (event.Event{SchemaVersion: 3, Data: []byte(`{}`)}).Upcast(); !errors.Is(err, kernel.Unsupported) {
		t.Errorf("a newer version: %v", err)
	}
	if _, err := (event.Event{SchemaVersion: 1, Data: []byte(`{`)}).Upcast(); !errors.Is(err, kernel.Corruption) {
		t.Errorf("a torn row: %v", err)
	}
}
