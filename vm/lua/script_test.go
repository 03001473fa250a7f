package lua_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/vm"
	"ashlar/vm/lua"
)

// expected is the mark of an expected error: a regular expression behind it, on the
// line that must fail.
var expected = regexp.MustCompile(`--> (.*)$`)

// TestScripts runs the scripts of testdata. A file is cut at lines of `---`; each
// chunk runs in an engine of its own and must succeed, or fail on the marked line
// with an error that matches.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		line := 1
		for chunk := range strings.SplitSeq(string(text), "\n---\n") {
			name := fmt.Sprintf("%s:%d", strings.TrimSuffix(filepath.Base(file), ".lua"), line)
			t.Run(name, func(t *testing.T) { runChunk(t, filepath.Base(file), line, chunk) })
			line += strings.Count(chunk, "\n") + 2
		}
	}
}

func runChunk(t *testing.T, file string, first int, chunk string) {
	wantLine, want := 0, ""
	for i, l := range strings.Split(chunk, "\n") {
		if m := expected.FindStringSubmatch(l); m != nil {
			wantLine, want = first+i, m[1]
		}
	}
	host, _ := testHost(t)
	host.Loader = sources{
		"answer": `return {value = 42}`, "nothing": `local x = 1`,
		"ring_a": `return require("ring_b")`, "ring_b": `return require("ring_a")`,
		"broken":  `return return`,
		"slow":    `host.sleep(20) slow_runs = (slow_runs or 0) + 1 return {}`,
		"cross_a": `host.sleep(10) return require("cross_b")`, "cross_b": `host.sleep(10) return require("cross_a")`,
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	// Blank lines in front keep the file's own line numbers.
	e, err := lua.New(host, lua.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Run(ctx, vm.Chunk{Name: file, Source: []byte(strings.Repeat("\n", first-1) + chunk)})
	if n := e.Close(ctx); n > 0 {
		t.Errorf("%d tasks were abandoned", n)
	}
	if want == "" {
		if err != nil {
			t.Errorf("%s\n%s", err, traceback(err))
		}
		return
	}
	var script *vm.Error
	if !errors.As(err, &script) {
		t.Fatalf("line %d: want an error that matches %q, got %v", wantLine, want, err)
	}
	if !regexp.MustCompile(want).MatchString(script.Error()) {
		t.Errorf("line %d: got %q, want a match of %q", wantLine, script.Error(), want)
	}
	if pos := fmt.Sprintf("%s:%d", file, wantLine); script.Position != pos {
		t.Errorf("failed at %q, want %q: %s", script.Position, pos, script.Error())
	}
}

func traceback(err error) string {
	var script *vm.Error
	if errors.As(err, &script) {
		return script.Traceback
	}
	return ""
}
