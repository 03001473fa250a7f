//go:build linux

package proc_test

import (
	"context"
	"os"
	"testing"
	"time"

	"ashlar/kernel/proc"
	"ashlar/kernel/proc/guard"
)

func TestMain(m *testing.M) {
	guard.Main()
	if line := os.Getenv(hostEnv); line != "" {
		beHost(line)
	}
	os.Exit(m.Run())
}

// start gives a Starter that is closed, and must leave nothing, at the test's end.
func start(t testing.TB) *proc.Starter {
	t.Helper()
	s := proc.New(proc.Options{Grace: 200 * time.Millisecond})
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// sh is a spec for a shell line in a directory of the test's own.
func sh(t testing.TB, line string) proc.Spec {
	t.Helper()
	return proc.Spec{
		Argv: []string{"sh", "-c", line},
		Dir:  t.TempDir(),
		Env:  []string{"PATH=" + os.Getenv("PATH")},
	}
}

// run runs a spec that must start.
func run(t testing.TB, s *proc.Starter, spec proc.Spec) proc.Result {
	t.Helper()
	r, err := s.Run(context.Background(), spec)
	if err != nil {
		t.Fatalf("Run %q: %v", spec.Argv, err)
	}
	return r
}
