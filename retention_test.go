package ashlar_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/event"
)

// A session that somebody writes stays, and so does its run; what has ended goes whole,
// its child does not.
func TestOnlyWhatNobodyWritesIsRemoved(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	r := newRig(t)
	res := r.ok(`
		local parent = knl.open({ budget = { beats = 4 } })
		local child = knl.open({ parent = parent, budget = { from_parent = 1, tag = "beats" } })
		child:append({ kind = "note", data = { text = ("shared "):rep(100) } })
		parent:append({ kind = "note", data = { text = ("shared "):rep(100) } })
		child:close() parent:close()
		return { parent = parent:id(), child = child:id() }`)
	ids := res.Value.(map[string]any)
	parent, child := str(ids, "parent"), str(ids, "child")
	before := r.events(child)
	got, err := r.ws.Remove(ctx, []string{parent}, false)
	if err != nil || len(got.Sessions) != 1 || len(r.events(parent)) != 0 {
		t.Fatalf("%+v %v", got, err)
	}
	after := r.events(child)
	if len(after) != len(before) || string(after[len(after)-2].Data) != string(before[len(before)-2].Data) {
		t.Error("the child is another")
	}
	if _, err := r.ws.Remove(ctx, []string{"run:" + res.Run}, false); err != nil {
		t.Fatal(err)
	}
	audit := r.events(event.Audit)
	if kinds(audit) != "session_removed session_removed run_removed" {
		t.Errorf("the audit says %s", kinds(audit))
	}
	if d := dataOf(t, audit[0]); str(d, "session") != parent || num(d, "events") != 5 || len(str(d, "head")) != 64 {
		t.Errorf("%v", d)
	}
	if len(r.events("run:"+res.Run)) != 0 {
		t.Error("the journal is left")
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		r.script(`local s = knl.open({}) std.fs.write("live", s:id()) while not std.fs.exists("end") do std.task.sleep(5) end`)
	}()
	defer func() { <-done }()
	live := r.waitFile("live")
	defer r.writeFile("end", "x")
	if _, err := r.ws.Remove(ctx, []string{live}, true); kernel.KindOf(err) != kernel.Busy {
		t.Errorf("a session that is written: %v", err)
	}
	if got, err := r.ws.Prune(ctx, -time.Hour, false); err != nil || len(got.Sessions)+len(got.Runs) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

// waitFile gives the text of a file of the project as soon as it is there.
func (r *rig) waitFile(name string) string {
	r.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if b, err := os.ReadFile(filepath.Join(r.ws.Project(), name)); err == nil && len(b) > 0 {
			return string(b)
		}
	}
	r.t.Fatalf("%s does not come", name)
	return ""
}

func (r *rig) writeFile(name, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.ws.Project(), name), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}
