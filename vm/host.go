package vm

import (
	"context"
	"io"
	"time"
)

// Clock is a run's time: what scripts read and what they sleep by.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx ends, whose cause it then returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Timers is what a Clock may be too: one that counts other than real time says when
// something is due. stop reports whether it came in time.
type Timers interface {
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// After calls f on a goroutine of its own when d has passed on the clock.
func After(c Clock, d time.Duration, f func()) (stop func() bool) {
	if t, ok := c.(Timers); ok {
		return t.AfterFunc(d, f)
	}
	return time.AfterFunc(d, f).Stop
}

// Environ is a run's environment: the process's own, seen through an overlay that
// the script may write and nobody else sees.
type Environ interface {
	Get(name string) (string, bool)
	Set(name, value string)
}

// Chunk is source to be run: Name as it appears in positions ("agent.lua").
type Chunk struct {
	Name   string
	Source []byte

	// Compiled is what the engine's own compiler made of exactly this before, for
	// chunks of the binary itself; nil elsewhere.
	Compiled []byte
}

// Loader finds what a script requires. A module that is nowhere is an *Error of
// kind not_found whose message lists where it was looked for.
type Loader interface {
	Load(ctx context.Context, name string) (Chunk, error)
}

// Files is the part of the file system that os and io reach: the same rules as
// std.fs, which implements it.
type Files interface {
	Open(path, mode string) (File, error) // mode as io.open has it
	Remove(path string) error
	Rename(from, to string) error
	Temp() (string, error) // a new empty file's path
}

// File is one open file.
type File interface {
	io.ReadWriteCloser
	io.Seeker
}

// Host is what a run lends its script: everything that belongs to a run and not
// to the process. All fields but Journal are required.
type Host struct {
	Script  string // name of the running script, for _SCRIPT_NAME
	Dir     string // the project root; relative paths resolve against it
	Clock   Clock
	Rand    io.Reader
	Env     Environ
	Files   Files
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Loader  Loader
	Modules []*Module
	Globals map[string]Value
	Journal Journal             // nil: nothing is journalled
	Redact  func(string) string // over every text that leaves the VM: errors, print
	Log     func(level, msg string, fields map[string]any)
}
