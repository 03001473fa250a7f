package ashlar_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar"
)

// workspace opens one of its own for a test, in a temporary home and project.
func workspace(t *testing.T) (*ashlar.Workspace, string) {
	t.Helper()
	project := t.TempDir()
	ws, err := ashlar.Open(context.Background(), ashlar.Options{
		Project: project,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "ASHLAR_HOME=" + t.TempDir()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	return ws, project
}

func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "block.lua")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Scenario 13: text, a number and a nested object reach the script as globals.
func TestGlobalsOfAHostReachTheScript(t *testing.T) {
	t.Parallel()
	ws, dir := workspace(t)
	run, err := ws.Prepare(ashlar.Task{
		Script:  script(t, dir, `return G.text .. N .. G.list[2].deep .. _SCRIPT_NAME`),
		Globals: map[string]any{"N": int64(7), "G": map[string]any{"text": "a", "list": []any{nil, map[string]any{"deep": "d"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := run.Execute(context.Background()); r.Err != nil || r.Value != "a7dblock.lua" {
		t.Errorf("got %v %v", r.Value, r.Err)
	}
}

// Scenario 14: a host's cancel ends a busy loop, after the ending is recorded.
func TestACancelOfTheHostEndsABusyLoop(t *testing.T) {
	t.Parallel()
	ws, dir := workspace(t)
	run, err := ws.Prepare(ashlar.Task{Script: script(t, dir, `
		local s = knl.open({})
		s:append({ kind = "msg_user", data = { content = "ready" } })
		while true do pcall(function() local x = 1 end) end`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run.AddSink(on{"user_message", cancel})
	r := run.Execute(ctx)
	if r.Status != "cancelled" || r.StoppedBy != "cancel" || r.Code() != ashlar.ExitFailed {
		t.Fatalf("status %s, stopped by %q: %v", r.Status, r.StoppedBy, r.Err)
	}
	log, err := ws.Log(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := log.Sessions(context.Background(), "", 10, nil, "")
	if err != nil || len(list) != 1 || list[0].Closed != "error" {
		t.Errorf("sessions %+v %v", list, err)
	}
	if !strings.Contains(r.Heads[list[0].ID], list[0].Head) {
		t.Errorf("the result's head %q is not the log's %q", r.Heads[list[0].ID], list[0].Head)
	}
}

// on calls a function when a fact of a type comes.
type on struct {
	typ string
	do  func()
}

func (o on) Fact(f ashlar.Fact) {
	if f.Type == o.typ {
		o.do()
	}
}

// A run that is cancelled before it began says so.
func TestACancelBeforeTheBeginningIsOne(t *testing.T) {
	t.Parallel()
	ws, dir := workspace(t)
	run, err := ws.Prepare(ashlar.Task{Script: script(t, dir, `return 1`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(&ashlar.Signal{Number: 15})
	if r := run.Execute(ctx); r.Status != "cancelled" || r.StoppedBy != "signal" || r.Code() != 143 {
		t.Errorf("status %s, stopped by %q, code %d", r.Status, r.StoppedBy, r.Code())
	}
}

// A host may run many blocks at once in one process; none sees another's state.
func TestRunsOfOneHostShareNothing(t *testing.T) {
	t.Parallel()
	ws, dir := workspace(t)
	path := script(t, dir, `
		shared = (shared or 0) + 1
		std.env.set("MINE", _PROMPT)
		std.task.sleep(20)
		return std.env.get("MINE") .. shared`)
	results := make(chan ashlar.Result, 8)
	for i := range 8 {
		prompt := string(rune('a' + i))
		go func() {
			run, err := ws.Prepare(ashlar.Task{Script: path, Prompt: &prompt})
			if err != nil {
				results <- ashlar.Result{Err: err}
				return
			}
			r := run.Execute(context.Background())
			if r.Err == nil && r.Value != prompt+"1" {
				r.Err = errors.New("got " + r.Value.(string) + " for " + prompt)
			}
			results <- r
		}()
	}
	for range 8 {
		if r := <-results; r.Err != nil {
			t.Error(r.Err)
		}
	}
}
