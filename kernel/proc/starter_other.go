//go:build !linux

package proc

import (
	"context"
	"os"
	"time"

	"ashlar/kernel"
)

// Starter cannot start anything on this system: its bounds need Linux.
type Starter struct{}

// New returns a Starter.
func New(Options) *Starter { return &Starter{} }

// Run is unsupported here.
func (*Starter) Run(context.Context, Spec) (Result, error) { return Result{}, needsLinux("proc.run") }

// Start is unsupported here.
func (*Starter) Start(context.Context, Spec) (*Process, error) { return nil, needsLinux("proc.start") }

func needsLinux(op string) error {
	return kernel.Errorf(op, kernel.Unsupported, "commands need Linux: nothing else lets a host bury what they leave")
}

// Process never exists here.
type Process struct{ Stdin, Stdout, Stderr *os.File }

// PID is 0.
func (*Process) PID() int { return 0 }

// Done is nil.
func (*Process) Done() <-chan struct{} { return nil }

// Exit gives no status.
func (*Process) Exit() (code int, signal string) { return -1, "" }

// Terminate has nothing to do.
func (*Process) Terminate(time.Duration) {}

// Close has nothing to do.
func (*Process) Close() {}

// Kill finds nothing here.
func (*Starter) Kill(string) bool { return false }

// Close has nothing to do here.
func (*Starter) Close(context.Context) error { return nil }
