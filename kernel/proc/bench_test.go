//go:build linux

package proc_test

import (
	"bytes"
	"context"
	"os/exec"
	"testing"

	"ashlar/kernel/proc"
)

// BenchmarkTrivialChild is a whole call through the guard; `make bench` wants it
// within 1.5 times of BenchmarkOsExec.
func BenchmarkTrivialChild(b *testing.B) {
	s := start(b)
	spec := proc.Spec{Argv: []string{"true"}, Dir: b.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}}
	run(b, s, spec) // the guard starts here
	for b.Loop() {
		if _, err := s.Run(context.Background(), spec); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOsExec is the baseline: the same child with the same pipes.
func BenchmarkOsExec(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		cmd := exec.Command("true")
		cmd.Dir, cmd.Env = dir, []string{"PATH=/usr/bin:/bin"}
		cmd.Stdout, cmd.Stderr = new(bytes.Buffer), new(bytes.Buffer)
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
