package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"ashlar"
	"ashlar/kernel"
)

// execute runs a prepared block and prints how it ended.
func (p *process) execute(c *cobra.Command, ws *ashlar.Workspace, run *ashlar.Run, f runFlags, req *request) error {
	ctx, stop := p.signals(c.Context())
	defer stop()
	var stream *ashlar.NDJSON
	if f.events != "" {
		w, closer, err := p.sink(f.events)
		if err != nil {
			return p.endedEarly(f, err)
		}
		defer closer()
		stream = ashlar.NewNDJSON(w)
		run.AddSink(stream)
	}
	var lines *progress
	if !f.quiet {
		lines = newProgress(p, run.Bounds())
		run.AddSink(lines)
	}
	r := run.Execute(ctx)
	limit := ashlar.StreamFlush
	if r.StoppedBy != "" {
		limit = ashlar.StreamFlushCut
	}
	if lines != nil {
		lines.Close(limit)
	}
	if stream != nil {
		if !stream.Close(limit) && !f.quiet {
			fmt.Fprintf(p.stderr, "notice: the event stream %s could not be written to its end\n", f.events)
		}
	}
	return p.ended(ws, r, f, req.result)
}

// sink opens what --events names.
func (p *process) sink(name string) (io.Writer, func(), error) {
	nothing := func() {}
	if name == "-" {
		return p.stdout, nothing, nil
	}
	if n, ok := strings.CutPrefix(name, "fd:"); ok {
		fd, err := strconv.Atoi(n)
		if err != nil || fd < 0 {
			return nil, nothing, usagef("--events: %q is no descriptor: want fd:3", name)
		}
		if !p.handed[fd] {
			return nil, nothing, usagef("--events: %s is not open for writing: have the caller open it, as in %d>FILE", name, fd)
		}
		file := os.NewFile(uintptr(fd), name)
		return file, func() { file.Close() }, nil
	}
	// Without waiting: a FIFO that nobody reads would hold the run before it began.
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o600)
	if errors.Is(err, syscall.ENXIO) {
		return nil, nothing, usagef("--events: nobody reads %s", name)
	}
	if err != nil {
		return nil, nothing, usagef("--events: %s cannot be written: %v", name, reason(err))
	}
	return file, func() { file.Close() }, nil
}

// ended prints the answer, writes --result, and gives the exit code.
func (p *process) ended(ws *ashlar.Workspace, r ashlar.Result, f runFlags, resultFile string) error {
	text, err := r.Text()
	if err != nil {
		r.Err = err
	}
	text = ws.Redact(text)
	returned := r.Err == nil
	if returned && r.Status == "completed" && resultFile != "" {
		if err := os.WriteFile(resultFile, []byte(text), 0o644); err != nil {
			r.Err = kernel.Errorf("run", kernel.Storage, "--result: the value was not written: %w", err)
		}
	}
	switch {
	case f.json && f.events != "-":
		if err := p.printJSON(ws, r); err != nil {
			return err
		}
	case returned && text != "" && f.events != "-":
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(p.stdout, text); err != nil {
			return err
		}
	}
	p.explain(ws, r, f)
	if code := r.Code(); code != ashlar.ExitOK {
		return &exitError{code}
	}
	return nil
}

func (p *process) printJSON(ws *ashlar.Workspace, r ashlar.Result) error {
	var b strings.Builder
	if err := writeJSON(&b, r.Object()); err != nil {
		return err
	}
	_, err := io.WriteString(p.stdout, ws.Redact(b.String()))
	return err
}

// explain says on stderr what an exit code alone does not.
func (p *process) explain(ws *ashlar.Workspace, r ashlar.Result, f runFlags) {
	switch {
	case r.Status == "deferred":
		fmt.Fprintln(p.stderr, ws.Redact(r.Err.Error()))
	case r.Err != nil:
		fmt.Fprintf(p.stderr, "error: %s\n", ashlar.Printable(ws.Redact(ashlar.Explain(r.Err, p.getenv("ASHLAR_LOG") == "debug"))))
	case r.StoppedBy != "" && !f.quiet:
		fmt.Fprintf(p.stderr, "stopped by a bound of the run: %s\n", r.StoppedBy)
	}
	if r.Unused > 0 && !f.quiet {
		fmt.Fprintf(p.stderr, "notice: %d recorded answers were not asked for\n", r.Unused)
	}
}
