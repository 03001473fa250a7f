package ashlar_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/kernel/event"
	"ashlar/kernel/store"
	"ashlar/kernel/verify"
	"ashlar/stdlib/llm/llmtest"
)

// written is a log with everything in it that a run leaves.
func written(t testing.TB) (*rig, string) {
	t.Helper()
	r := newRig(t, llmtest.Reply{Text: "one"}, llmtest.Reply{Text: "two"})
	res := r.ok(`
		local s = knl.open({ owner = "me", budget = { beats = 9, tokens = 100000 } })
		s:append({ kind = "msg_user", data = { content = string.rep("hello ", 200) } })
		local d = knl.device({ llm = llm_of({ max_tokens = 100 }) })
		eq(knl.beat(s, d).status, "ok"); s:append({ kind = "msg_user", data = { content = "again" } }); eq(knl.beat(s, d).status, "ok")
		s:reserve(2); s:spend(1); eq(s:reserve(50), false)
		local child = knl.open({ parent = s, budget = { from_parent = { beats = 2, seconds = 5 } } })
		local grand = knl.open({ parent = child, budget = { from_parent = 1 } })
		child:close()
		std.fs.exists("x")
		knl.open()
		return s:id()`)
	r.script(`error("it fails")`)
	return r, res.Value.(string)
}

func (r *rig) verified(heads ...event.Head) *verify.Report {
	r.t.Helper()
	s, err := r.ws.Store(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	rep, err := verify.Check(context.Background(), s, heads)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep
}

// damage changes the database as no program of ours does.
func (r *rig) damage(statements string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "home", "kernel.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	triggers := "DROP TRIGGER IF EXISTS event_no_update; DROP TRIGGER IF EXISTS event_no_delete; DROP TRIGGER IF EXISTS content_no_update; DROP TRIGGER IF EXISTS message_no_update;"
	if _, err := db.Exec(triggers + statements); err != nil {
		r.t.Fatalf("%s: %v", statements, err)
	}
}

func TestALogThatWasLeftAloneVerifies(t *testing.T) {
	t.Parallel()
	r, id := written(t)
	events := r.events(id)
	last := events[len(events)-1]
	rep := r.verified(event.Head{Stream: id, Seq: last.Seq, Hash: last.Hash})
	if !rep.OK() || rep.Events < 20 || rep.Rows < 6 || rep.Messages == 0 || rep.Contents == 0 || !rep.Whole {
		t.Errorf("%+v", rep)
	}
}

func TestVerifyNamesWhatWasDone(t *testing.T) {
	t.Parallel()
	const s = `(SELECT id FROM stream WHERE stream NOT LIKE 'run:%' ORDER BY id LIMIT 1)`
	for name, c := range map[string]struct{ sql, say string }{
		"an edit":                 {`UPDATE event SET data = replace(data, '"scope_id"', '"scope_iD"') WHERE seq = 2 AND stream = ` + s, ":2: the budget_granted does not match its hash"},
		"another kind":            {`UPDATE event SET kind = 'note' WHERE seq = 4 AND stream = ` + s, ":4: the note does not match"},
		"another time":            {`UPDATE event SET epoch_ms = epoch_ms + 1 WHERE seq = 4 AND stream = ` + s, ":4: the "},
		"a gap":                   {`DELETE FROM event WHERE seq = 3 AND stream = ` + s, ":4: seq 4 comes after seq 2"},
		"an order":                {`UPDATE event SET seq = 100 WHERE seq = 3 AND stream = ` + s + `; UPDATE event SET seq = 3 WHERE seq = 4 AND stream = ` + s + `; UPDATE event SET seq = 4 WHERE seq = 100 AND stream = ` + s, ": seq 4 comes after seq 2"},
		"content":                 {`UPDATE content SET body = replace(body, 'hello', 'hallo')`, "does not match its hash"},
		"content that is gone":    {`DELETE FROM content`, "not there"},
		"a message":               {`UPDATE message SET body = replace(body, '"role":"assistant"', '"role":"user"') WHERE instr(body, 'assistant')`, "does not match its node"},
		"a message that is gone":  {`DELETE FROM message WHERE id = 1`, "follows the message 1, which is not there"},
		"all of a stream":         {`DELETE FROM event WHERE stream = ` + s, "the stream has no events"},
		"a balance":               {`UPDATE projection SET value = replace(value, '"beats":', '"beats":9') WHERE tab = 'balance' AND instr(value, 'beats')`, "projection balance, row "},
		"a run":                   {`UPDATE projection SET value = replace(value, '"failed"', '"completed"') WHERE tab = 'run' AND instr(value, '"failed"')`, "projection run, row "},
		"a session's owner":       {`UPDATE projection SET value = replace(value, '"me"', '"you"') WHERE tab = 'session'`, "projection session, row "},
		"an open table that lies": {`INSERT INTO projection (tab, key, value) VALUES ('open', 'r/s', '{}')`, "projection open, row r/s: it is there, and no event says so"},
		"a missing row":           {`DELETE FROM projection WHERE tab = 'joined'`, "it is missing; the events give"},
		"a lease":                 {`INSERT INTO projection (tab, key, value) VALUES ('lease', 'nobody', '{}')`, "projection lease, row nobody: there is no such session"},
		"an index":                {`PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_message_1') WHERE name = 'sqlite_autoindex_content_1'; PRAGMA writable_schema = RESET`, "the file: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := written(t)
			if err := r.ws.Close(); err != nil {
				t.Fatal(err)
			}
			r.damage(c.sql)
			rep := r.verified()
			var all []string
			for _, f := range rep.Faults {
				all = append(all, f.String())
			}
			if text := strings.Join(all, "\n"); !strings.Contains(text, c.say) {
				t.Errorf("found %q, want %q", text, c.say)
			}
		})
	}
}

// A tail that was cut off shows only against a head that was kept elsewhere.
func TestAHeadThatWasKeptShowsACut(t *testing.T) {
	t.Parallel()
	r, id := written(t)
	events := r.events(id)
	head := events[len(events)-1]
	if err := r.ws.Close(); err != nil {
		t.Fatal(err)
	}
	r.damage(`DELETE FROM event WHERE stream = (SELECT id FROM stream WHERE stream = '` + id + `') AND seq >= ` + "(SELECT max(seq) FROM event WHERE stream = (SELECT id FROM stream WHERE stream = '" + id + "'))")
	want := event.Head{Stream: id, Seq: head.Seq, Hash: head.Hash}
	rep := r.verified(want)
	found := false
	for _, f := range rep.Faults {
		found = found || f.Stream == id && f.Seq == head.Seq && strings.Contains(f.What, "cut off")
	}
	if !found {
		t.Errorf("%+v", rep.Faults)
	}
}

// Repair puts projections right, says which, and touches nothing else.
func TestRepairRebuildsProjectionsAlone(t *testing.T) {
	t.Parallel()
	r, id := written(t)
	ctx := context.Background()
	s, err := r.ws.Store(ctx)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, table := range store.Tables() {
		rows, err := s.Rows(ctx, table, "", store.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			before[string(table)+" "+row.Key] = string(row.Value)
		}
	}
	r.damage(`UPDATE projection SET value = '{}' WHERE tab IN ('balance', 'session'); DELETE FROM projection WHERE tab IN ('joined', 'open', 'child');
		INSERT INTO projection (tab, key, value) VALUES ('child', 'a/b', '{}')`)
	if rep := r.verified(); rep.OK() {
		t.Fatal("nothing was found")
	}
	rep, err := verify.Repair(ctx, s, nil)
	if err != nil || !rep.OK() || len(rep.Fixed) == 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	for _, table := range store.Tables() {
		rows, err := s.Rows(ctx, table, "", store.MaxPage)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			key := string(table) + " " + row.Key
			if before[key] != string(row.Value) {
				t.Errorf("%s is %s, was %s", key, row.Value, before[key])
			}
			delete(before, key)
		}
	}
	if len(before) > 0 {
		t.Errorf("rows that were not rebuilt: %v", before)
	}
	// What no event is right about is not repaired.
	r.damage(`UPDATE event SET epoch_ms = 1 WHERE seq = 1 AND stream = (SELECT id FROM stream WHERE stream = '` + id + `'); UPDATE projection SET value = '{}' WHERE tab = 'balance'`)
	if rep, err := verify.Repair(ctx, s, nil); err != nil || len(rep.Fixed) > 0 || rep.OK() {
		t.Errorf("%+v, %v", rep, err)
	}
}

// A log from which sessions were removed is as whole as before.
func TestALogVerifiesAfterARemoval(t *testing.T) {
	t.Parallel()
	r, id := written(t)
	if _, err := r.ws.Remove(context.Background(), []string{id}, false); err != nil {
		t.Fatal(err)
	}
	if rep := r.verified(); !rep.OK() {
		t.Errorf("%+v", rep.Faults)
	}
	if _, err := r.ws.Prune(context.Background(), -time.Hour, false); err != nil {
		t.Fatal(err)
	}
	if rep := r.verified(); !rep.OK() {
		t.Errorf("%+v", rep.Faults)
	}
}
