package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"ashlar"
)

// process is what a verb sees of the process it runs in.
type process struct {
	environ []string
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	tty     bool         // stderr is a terminal
	width   int          // of that terminal
	handed  map[int]bool // descriptors that were open at the start, to write to
	exit    func(code int)
	// signals ends the context of a run with the first signal as its cause, and the
	// process with the second.
	signals func(ctx context.Context) (context.Context, func())
}

func system() *process {
	given := handed() // before anything is opened
	p := &process{handed: given, environ: os.Environ(), stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, exit: os.Exit, signals: onSignals}
	fd := int(os.Stderr.Fd())
	p.tty = term.IsTerminal(fd)
	p.width = 80
	if w, _, err := term.GetSize(fd); err == nil && w > 0 {
		p.width = w
	}
	return p
}

func (p *process) getenv(name string) string {
	for _, kv := range p.environ {
		if len(kv) > len(name) && kv[len(name)] == '=' && kv[:len(name)] == name {
			return kv[len(name)+1:]
		}
	}
	return ""
}

// onSignals owns a goroutine that stop ends and waits for.
func onSignals(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Asked for and not read: a write to a closed standard output is then an error,
	// which the run records, instead of the end of the process.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case <-quit:
				return
			case s := <-got:
				n, _ := s.(syscall.Signal)
				if !first {
					os.Exit(128 + int(n)) // asked twice: the guard buries the children
				}
				cancel(&ashlar.Signal{Number: int(n)})
			}
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(quit)
		<-done
		cancel(nil)
	}
}
