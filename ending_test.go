package ashlar_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

// A run has its end on every record, whatever bytes its block, its error or its
// labels hold. There is no credential here: the redactor would mend the text.
func TestEveryRunEndsWhateverItsTextHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Environ: []string{"ASHLAR_HOME=" + filepath.Join(dir, "h")}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	labels := map[string]any{"who\xff": "me\xfe"}
	for name, c := range map[string]struct {
		source, status, says string
		labels               map[string]any
	}{
		"an error":    {`error("a\255b")`, "failed", "a\uFFFDb", nil},
		"its level 0": {`error("a\255b", 0)`, "failed", "a\uFFFDb", nil},
		"a table":     {`error({ message = "a\255b" })`, "failed", "", nil},
		"a syscall's": {`std.fs.read("no\255such")`, "failed", "not UTF-8", nil},
		"a result":    {`return "a\255"`, "failed", "$: invalid UTF-8", nil},
		"inside":      {`return { list = { 1, "a\255" } }`, "failed", "$.list[2]: a string that is not UTF-8", nil},
		"a key":       {`return { ["a\255"] = 1 }`, "failed", "a key that is not UTF-8", nil},
		"a NaN":       {`return { 0 / 0 }`, "failed", "NaN", nil},
		"a deep one":  {`local v = {} for i = 1, 200 do v = { v } end return v`, "failed", "deep", nil},
		"a session":   {`knl = require("knl") local s = knl.open() error("a\255b")`, "failed", "a\uFFFDb", nil},
		"labels":      {`require("knl").open():append({ kind = "x" }) return "fine"`, "completed", "", labels},
	} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".lua")
		if err := os.WriteFile(file, []byte(c.source), 0o600); err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		sink := ashlar.NewNDJSON(&lines)
		run, err := ws.Prepare(ashlar.Task{Script: file, Labels: c.labels, Sinks: []ashlar.Sink{sink}})
		if err != nil {
			t.Fatal(err)
		}
		res := run.Execute(context.Background())
		sink.Close(time.Second)
		object, err := logjson.Marshal(res.Object())
		if err != nil || res.Status != c.status || !strings.Contains(string(object), c.says) {
			t.Errorf("%s: %s %v\n%s", name, res.Status, err, object)
		}
		if c.status == "failed" && strings.Contains(c.source, "return") && res.Object()["error"].(map[string]any)["kind"] != "validation" {
			t.Errorf("%s: %v", name, res.Object()["error"])
		}
		if !strings.Contains(lines.String(), `"type":"run_finished"`) || !strings.Contains(lines.String(), `"type":"run_started"`) {
			t.Errorf("%s: the stream has no end:\n%s", name, lines.String())
		}
		s, err := ws.Store(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		events := readAll(t, s, "run:"+res.Run)
		if len(events) == 0 || lastOf(events).Kind != "run_settled" || str(dataOf(t, lastOf(events)), "state") != c.status {
			t.Errorf("%s: %s", name, kinds(events))
		}
		for _, session := range res.Sessions {
			e, _, err := s.Events(context.Background(), session, store.Query{Last: 1})
			if err != nil || len(e) != 1 || e[0].Kind != "session_closed" {
				t.Errorf("%s: session %s is open", name, session)
			}
		}
	}
}

// A field without JSON does not take the last line with it.
func TestTheLastLineIsNeverDropped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	sink := ashlar.NewNDJSON(&out)
	sink.Fact(ashlar.Fact{Seq: 1, Run: "r", Type: "run_finished", Fields: map[string]any{
		"status": "failed", "error": map[string]any{"message": "a\xffb"}, "odd": func() {},
	}})
	sink.Close(time.Second)
	for _, part := range []string{`"status":"failed"`, "a\uFFFDb", `"omitted":["odd"]`} {
		contains(t, out.String(), part)
	}
}

// A byte order mark in front of a script or a module is none of its text; lines keep
// their numbers, and the block's digest is that of the file.
func TestAByteOrderMarkIsPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ws, err := ashlar.Open(context.Background(), ashlar.Options{Project: dir, Environ: []string{"ASHLAR_HOME=" + filepath.Join(dir, "h")}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	const mark = "\uFEFF"
	for name, source := range map[string]string{
		"plain.lua":   mark + "return require('m')",
		"shebang.lua": mark + "#!/usr/bin/env ashlar\nreturn require('m')",
		"m.lua":       mark + "#! module\nreturn 7",
		"late.lua":    mark + "\n\nerror('here')",
		"syntax.lua":  mark + "\nreturn return",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"plain.lua": "7", "shebang.lua": "7", "late.lua": "late.lua:3: here", "syntax.lua": "syntax.lua:2:"} {
		run, err := ws.Prepare(ashlar.Task{Script: filepath.Join(dir, name)})
		if err != nil {
			t.Fatal(err)
		}
		res := run.Execute(context.Background())
		got, _ := res.Text()
		if res.Err != nil {
			got = res.Err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
