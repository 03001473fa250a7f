package session_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/kernel/event"
	"ashlar/kernel/ident"
	"ashlar/kernel/logjson"
	"ashlar/kernel/session"
	"ashlar/kernel/session/budget"
	"ashlar/kernel/store"
	"ashlar/kernel/store/sqlite"
)

var ctx = context.Background()

func newStore(t testing.TB, path string) store.Store {
	t.Helper()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func ids() *ident.Source { return ident.New(ident.System{}, rand.Reader) }

func bookOn(s store.Store, r session.Run) *session.Book {
	return session.NewBook(session.Options{Store: s, IDs: ids(), PID: 7, Run: r})
}

func newBook(t testing.TB) *session.Book {
	return bookOn(newStore(t, filepath.Join(t.TempDir(), "kernel.db")), nil)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err error, kind kernel.Kind) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want kind %s", err, kind)
	}
}

func open(t testing.TB, b *session.Book, grants ...budget.Grant) *session.Session {
	t.Helper()
	s, err := b.Open(ctx, session.Opening{Budget: grants})
	must(t, err)
	return s
}

func user(text string) event.Draft {
	return event.Draft{Kind: event.MsgUser, Data: map[string]any{"content": text}}
}

func request() event.Draft {
	return event.Draft{Kind: event.LLMRequest, Data: map[string]any{"request": map[string]any{"messages": []any{}}}}
}

// story tells a stream in the words of the reference: kind, and for a budget
// event what it moved.
func story(t *testing.T, s store.Store, stream string) string {
	t.Helper()
	events, _, err := s.Events(ctx, stream, store.Query{Bodies: true})
	must(t, err)
	var words []string
	for _, e := range events {
		data, err := logjson.Object(e.Data)
		must(t, err)
		w := e.Kind
		for _, key := range []string{"tag", "amount", "reserved", "used", "returned", "overdrawn", "remaining", "bound", "reason", "detail", "effect"} {
			if v, ok := data[key]; ok {
				w += fmt.Sprint(" ", v)
			}
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}

func tell(t *testing.T, s store.Store, stream, wanted string) {
	t.Helper()
	if got := story(t, s, stream); got != wanted {
		t.Errorf("the log says\n  %s\nwant\n  %s", got, wanted)
	}
}

func TestTheReferencesSequencesAreWritten(t *testing.T) {
	t.Parallel()
	beats := func(n int64) budget.Grant { return budget.Grant{Tag: "beats", Amount: n} }
	for _, c := range []struct {
		name   string
		grants []budget.Grant
		do     func(t *testing.T, s *session.Session) error
		want   string
	}{
		{"open without grant, close", nil, func(t *testing.T, s *session.Session) error { return s.Close(ctx, "", "") },
			"session_opened, session_closed closed"},
		{"one beat", []budget.Grant{beats(2)}, func(t *testing.T, s *session.Session) error {
			if _, err := s.Append(ctx, user("hi")); err != nil {
				return err
			}
			r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1, "tokens": 9}, Append: []event.Draft{request()}})
			if !r.Granted || len(r.Seqs) != 1 || r.Seqs[0] != 5 {
				t.Errorf("%+v", r)
			}
			if err != nil {
				return err
			}
			_, err = s.Append(ctx, event.Draft{Kind: event.LLMResponse, Data: map[string]any{}})
			return err
		}, "session_opened, budget_granted beats 2, msg_user, budget_reserved beats 1, llm_request, llm_response"},
		{"quota short", []budget.Grant{beats(1)}, func(t *testing.T, s *session.Session) error {
			r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 2}, Append: []event.Draft{request()}})
			if r.Granted || r.Tag != "beats" || r.Remaining != 1 || r.Bound != "" || r.Seqs != nil {
				t.Errorf("%+v", r)
			}
			return err
		}, "session_opened, budget_granted beats 1, budget_refused beats 2 1"},
		{"all or nothing, the first short tag is named", []budget.Grant{beats(5), {Tag: "cost", Amount: 1}, {Tag: "tokens", Amount: 1}},
			func(t *testing.T, s *session.Session) error {
				_, err := s.Reserve(ctx, budget.Amounts{"cost": 2, "tokens": 2, "beats": 1})
				return err
			}, "session_opened, budget_granted beats 5, budget_granted cost 1, budget_granted tokens 1, budget_refused tokens 2 1"},
		{"a need is not taken", []budget.Grant{{Tag: "seconds", Amount: 1}, beats(5)},
			func(t *testing.T, s *session.Session) error {
				for range 2 {
					r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"beats": 1}, Need: budget.Amounts{"seconds": 1}})
					if err != nil {
						return err
					}
					if r.Granted {
						if err := s.Spend(ctx, budget.Amounts{"seconds": 3}); err != nil {
							return err
						}
					}
				}
				return nil
			}, "session_opened, budget_granted seconds 1, budget_granted beats 5, budget_reserved beats 1, budget_spent seconds 3, budget_refused seconds 1 0"},
		{"settlement with the response", []budget.Grant{{Tag: "tokens", Amount: 100}},
			func(t *testing.T, s *session.Session) error {
				if _, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"tokens": 60}, Append: []event.Draft{request()}}); err != nil {
					return err
				}
				_, err := s.Commit(ctx, session.Batch{Append: []event.Draft{{Kind: event.LLMResponse}},
					Settle: []session.Settlement{{Tag: "tokens", Reserved: 60, Used: 20}}})
				if left, ok, _ := s.Remaining(ctx, "tokens"); !ok || left != 80 {
					t.Errorf("left %d", left)
				}
				return err
			}, "session_opened, budget_granted tokens 100, budget_reserved tokens 60, llm_request, llm_response, budget_settled tokens 60 20 40"},
		{"overdrawn stops at nothing", []budget.Grant{{Tag: "tokens", Amount: 10}},
			func(t *testing.T, s *session.Session) error {
				if _, err := s.Reserve(ctx, budget.Amounts{"tokens": 10}); err != nil {
					return err
				}
				err := s.Settle(ctx, session.Settlement{Tag: "tokens", Reserved: 10, Used: 15})
				if left, _, _ := s.Remaining(ctx, "tokens"); left != 0 {
					t.Errorf("left %d", left)
				}
				if out, _ := s.Exhausted(ctx); !out {
					t.Errorf("not exhausted")
				}
				return err
			}, "session_opened, budget_granted tokens 10, budget_reserved tokens 10, budget_settled tokens 10 15 0 5"},
		{"a refused call says so", []budget.Grant{{Tag: "tool_calls", Amount: 0}},
			func(t *testing.T, s *session.Session) error {
				r, err := s.Commit(ctx, session.Batch{Reserve: budget.Amounts{"tool_calls": 1},
					Append:    []event.Draft{{Kind: event.ToolCall}},
					Otherwise: []event.Draft{{Kind: event.ToolCall}, {Kind: event.ToolResult}}})
				if r.Granted || len(r.Seqs) != 2 {
					t.Errorf("%+v", r)
				}
				return err
			}, "session_opened, budget_granted tool_calls 0, budget_refused tool_calls 1 0, tool_call, tool_result"},
		{"without a grant nothing is recorded", nil, func(t *testing.T, s *session.Session) error {
			if r, err := s.Reserve(ctx, budget.Amounts{"": 1}); err != nil || !r.Granted {
				t.Errorf("%+v %v", r, err)
			}
			if _, ok, _ := s.Remaining(ctx, ""); ok {
				t.Error("a balance without a grant")
			}
			return s.Spend(ctx, budget.Amounts{"": 1})
		}, "session_opened"},
		{"body raised", nil, func(t *testing.T, s *session.Session) error {
			return s.Close(ctx, session.ReasonError, strings.Repeat("é", 201))
		},
			"session_opened, session_closed error " + strings.Repeat("é", 200) + "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBook(t)
			s := open(t, b, c.grants...)
			must(t, c.do(t, s))
			tell(t, b.Store(), s.ID(), c.want)
			checkBalance(t, b.Store(), s.ID())
		})
	}
}

// checkBalance holds the projection to the fold over the stream's events.
func checkBalance(t *testing.T, s store.Store, stream string) {
	t.Helper()
	events, _, err := s.Events(ctx, stream, store.Query{})
	must(t, err)
	fold := budget.Balance{Left: budget.Amounts{}, Held: budget.Amounts{}}
	for _, e := range events {
		must(t, fold.Apply(e))
	}
	kept, err := budget.Read(s.Row(ctx, store.Balances, stream))
	must(t, err)
	if a, b := fmt.Sprint(fold.Tags, fold.Left), fmt.Sprint(kept.Tags, kept.Left); a != b {
		t.Errorf("%s: the events give %s, the projection has %s", stream, a, b)
	}
}

func TestAMistakeWritesNothing(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for name, o := range map[string]session.Opening{
		"anon":        {Owner: "anon"},
		"system":      {Owner: "system"},
		"negative":    {Budget: []budget.Grant{{Amount: -1}}},
		"twice":       {Budget: []budget.Grant{{Tag: "a"}, {Tag: "a"}}},
		"no parent":   {FromParent: []budget.Grant{{Amount: 1}}},
		"nested meta": {Meta: map[string]any{"a": []any{}}},
	} {
		if _, err := b.Open(ctx, o); !errors.Is(err, kernel.Validation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := open(t, b)
	_, err := s.Append(ctx, user("a"), event.Draft{Kind: event.SessionClosed})
	want(t, err, kernel.Validation)
	_, err = s.Reserve(ctx, budget.Amounts{"beats": -1})
	want(t, err, kernel.Validation)
	want(t, s.Settle(ctx, session.Settlement{Tag: "beats"}), kernel.Validation)
	_, err = b.Resume(ctx, "nobody", session.Resuming{})
	want(t, err, kernel.Validation)
	if n, _ := s.Len(ctx); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestAChildIsPaidByItsParentInOneTransaction(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	p, err := b.Open(ctx, session.Opening{Owner: "ada", Budget: []budget.Grant{{Tag: "beats", Amount: 5}}})
	must(t, err)
	c, err := b.Open(ctx, session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 3}}})
	must(t, err)
	if c.Owner() != "ada" || !c.Has("beats") {
		t.Errorf("owner %s, has %v", c.Owner(), c.Has("beats"))
	}
	tell(t, b.Store(), c.ID(), "session_opened, budget_granted beats 3")
	_, err = b.Open(ctx, session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 9}}})
	want(t, err, kernel.Refused)
	must(t, p.Close(ctx, "", ""))
	events, err := p.Tail(ctx, 1)
	must(t, err)
	if !strings.Contains(string(events[0].Data), `"open_children":["`+c.ID()+`"]`) {
		t.Errorf("%s", events[0].Data)
	}
	tell(t, b.Store(), p.ID(), "session_opened, budget_granted beats 5, budget_reserved beats 3, budget_refused beats 9 2, session_closed closed")
	if _, err := c.Append(ctx, user("still here")); err != nil {
		t.Error(err)
	}
	_, err = b.Open(ctx, session.Opening{Parent: p, FromParent: []budget.Grant{{Amount: 0}}})
	want(t, err, kernel.Closed)
	checkBalance(t, b.Store(), p.ID())
}

func TestClosingIsPerHandleAndEndsTheSession(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	a := open(t, b)
	other, err := b.Resume(ctx, a.ID(), session.Resuming{})
	must(t, err)
	for range 2 {
		must(t, a.Close(ctx, "", ""))
	}
	_, err = a.Append(ctx, user("late"))
	want(t, err, kernel.Closed)
	if _, _, err := a.Events(ctx, 1, true); err != nil {
		t.Errorf("reading after close: %v", err)
	}
	if _, err := other.Append(ctx, user("recorded")); err != nil {
		t.Errorf("the other handle: %v", err)
	}
	must(t, other.Close(ctx, session.ReasonScopeExit, ""))
	_, err = b.Resume(ctx, a.ID(), session.Resuming{})
	want(t, err, kernel.Closed)
	tell(t, b.Store(), a.ID(), "session_opened, session_closed closed, msg_user, session_closed scope_exit")
}

func TestADroppedSessionIsEndedOnceByTheNextCommit(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := open(t, b)
	s.Drop()
	s.Drop()
	must(t, b.Store().Flush(ctx))
	tell(t, b.Store(), s.ID(), "session_opened, session_closed dropped")
}

func TestAResumeGrantsAndRestores(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	s := open(t, b)
	again, err := b.Resume(ctx, s.ID(), session.Resuming{Budget: []budget.Grant{{Tag: "beats", Amount: 4}}})
	must(t, err)
	if again.ScopeID() != s.ScopeID() || again.Owner() != "anon" || !again.Has("beats") {
		t.Errorf("%+v", again)
	}
	tell(t, b.Store(), s.ID(), "session_opened, budget_granted beats 4")
}

func TestOneLivingProcessWritesASession(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kernel.db")
	st := newStore(t, path)
	first := bookOn(st, nil)
	second := bookOn(newStore(t, path), nil)
	s := open(t, first)
	_, err := second.Resume(ctx, s.ID(), session.Resuming{})
	want(t, err, kernel.Busy)
	if err == nil || !strings.HasSuffix(err.Error(), "session "+s.ID()+" is written by pid 7, run none") {
		t.Errorf("%v", err)
	}
	use := func(id string) map[string]any { return map[string]any{"type": "tool_use", "id": id, "name": "t"} }
	_, err = s.Append(ctx, event.Draft{Kind: event.LLMResponse, Meta: map[string]any{"beat": "b1"},
		Data: map[string]any{"content": []any{use("done"), use("begun"), use("asked"), use("gated")}}},
		event.Draft{Kind: event.ToolCall, Data: map[string]any{"call_id": "done"}},
		event.Draft{Kind: event.ToolResult, Data: map[string]any{"call_id": "done"}},
		event.Draft{Kind: event.ToolCall, Data: map[string]any{"call_id": "begun"}})
	must(t, err)
	must(t, st.Close()) // as the end of its process does
	taken, err := second.Resume(ctx, s.ID(), session.Resuming{Keep: func(id string) bool { return id == "gated" }})
	must(t, err)
	tell(t, second.Store(), s.ID(), "session_opened, llm_response, tool_call, tool_result, tool_call, tool_result unknown, tool_result none")
	again, err := second.Resume(ctx, s.ID(), session.Resuming{})
	must(t, err)
	if n, _ := again.Len(ctx); n != 7 {
		t.Errorf("%d events: a second resume answered again", n)
	}
	if _, err := taken.Append(ctx, user("on")); err != nil {
		t.Error(err)
	}
}

func TestATailIsOnePageAtMost(t *testing.T) {
	t.Parallel()
	s := open(t, newBook(t))
	for n, fits := range map[int]bool{store.MaxPage: true, store.MaxPage + 1: false} {
		events, err := s.Tail(ctx, n)
		if fits {
			must(t, err)
			if len(events) != 1 {
				t.Errorf("%d events", len(events))
			}
			continue
		}
		want(t, err, kernel.Validation)
	}
}
