package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

func TestMain(m *testing.M) {
	ashlar.Reexec()
	testscript.Main(m, map[string]func(){
		"ashlar": func() { os.Exit(Main(os.Args[1:], system())) },
	})
}

// TestCommandLine runs testdata/script: what a user types, and what comes of it.
// -args -update rewrites the expected output that differs.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join(root, "testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("ASHLAR_HOME", filepath.Join(e.WorkDir, ".home"))
			e.Setenv("REPO", root)
			for _, name := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"} {
				e.Setenv(name, "")
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"model": model,
		},
	})
}

// model starts a scripted model server for the rest of a script: model FILE.json
// sets $MODEL_URL to its base URL.
func model(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: model FILE.json")
	}
	replies, err := llmtest.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	s, err := llmtest.Start(replies...)
	ts.Check(err)
	ts.Defer(sync.OnceFunc(s.Close))
	ts.Setenv("MODEL_URL", s.URL())
}
