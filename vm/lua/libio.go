package lua

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ashlar/vm"
)

// maxLine bounds one line and one io.read("*a").
const maxLine = vm.MaxStringBytes

// stream is the data of a file handle.
type stream struct {
	name   string
	file   io.Closer
	seeker io.Seeker
	r      *bufio.Reader
	w      io.Writer
	closed bool
}

// IO declares io for the reference alone: it opens nothing.
func IO() *vm.Module { return (&Engine{host: &vm.Host{}}).ioModule() }

// ioModule is io over the host's files and standard streams, and the class of its
// handles. On a replay a handle leads nowhere: what was read is in the journal.
func (e *Engine) ioModule() *vm.Module {
	class := &vm.Class{Name: "file", Doc: "An open file."}
	formats := vm.Param{Name: "formats", Type: vm.Any, Rest: true}
	data := vm.Param{Name: "data", Type: vm.Bytes, Also: []vm.Type{vm.Number}, Rest: true}
	of := func(c *vm.Call) *stream { return c.Self.Data.(*stream) }
	class.Methods = []vm.Function{
		{Name: "read", Doc: "Reads by formats: n, l, L, a or a number of bytes.", Effect: vm.Read, Waits: true,
			Params: []vm.Param{formats},
			Impl:   func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return of(c).read(c.Args) }},
		{Name: "write", Doc: "Writes strings and numbers; gives the file.", Effect: vm.Write, Waits: true,
			Params: []vm.Param{data}, Record: vm.RecordResult, Again: revived(func(c *vm.Call) vm.Value { return c.Self }),
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				return of(c).write(c, c.Self)
			}},
		{Name: "lines", Doc: "Iterates over lines, without their ends.", Effect: vm.Pure, Params: []vm.Param{formats},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
				return []vm.Value{e.lineReader(of(c), c.Args, false)}, nil
			}},
		{Name: "seek", Doc: "Moves the position: set, cur or end, and an offset.", Effect: vm.Read, Waits: true,
			Params: []vm.Param{{Name: "whence", Type: vm.String, Optional: true}, {Name: "offset", Type: vm.Integer, Optional: true}},
			Impl:   func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return of(c).seek(c) }},
		{Name: "flush", Doc: "Nothing is held back; gives the file.", Effect: vm.Pure,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return []vm.Value{c.Self}, nil }},
		{Name: "setvbuf", Doc: "Accepted and ignored.", Effect: vm.Pure, Params: []vm.Param{formats},
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return []vm.Value{true}, nil }},
		{Name: "close", Doc: "Closes the file.", Effect: vm.Write, Waits: true,
			Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return outcome(c, of(c).close()) }},
	}
	handle := func(s *stream) *vm.Object { return &vm.Object{Class: class, Data: s} }
	stdin := &stream{name: "stdin", r: bufio.NewReader(e.host.Stdin)}
	stdout := &stream{name: "stdout", w: redacting{e.host, e.host.Stdout}}
	out := handle(stdout)
	return &vm.Module{
		Name:    "io",
		Doc:     "The parts of Lua's io that belong to a run.",
		Classes: []*vm.Class{class},
		Values: map[string]vm.Value{
			"stdin": handle(stdin), "stdout": out,
			"stderr": handle(&stream{name: "stderr", w: redacting{e.host, e.host.Stderr}}),
		},
		Funcs: []vm.Function{
			{Name: "open", Doc: "Opens a file; a handle, or nil and a message.", Effect: vm.Write, Waits: true,
				Params: []vm.Param{{Name: "path", Type: vm.String}, {Name: "mode", Type: vm.String, Optional: true}},
				Again:  revived(func(c *vm.Call) vm.Value { return handle(&stream{name: c.Str(0)}) }),
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					s, err := openStream(c.Host, c.Str(0), c.Str(1))
					if err != nil {
						return []vm.Value{nil, c.Host.Redact(c.Str(0) + ": " + err.Error()), int64(1)}, nil
					}
					return []vm.Value{handle(s)}, nil
				}},
			{Name: "lines", Doc: "Iterates over the lines of a file, or of standard input.", Effect: vm.Read,
				Params: []vm.Param{{Name: "path", Type: vm.String, Optional: true}, formats},
				Again:  revived(func(c *vm.Call) vm.Value { return e.lineReader(&stream{name: c.Str(0)}, c.Args[1:], false) }),
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
					if c.Args[0] == nil {
						return []vm.Value{e.lineReader(stdin, c.Args[1:], false)}, nil
					}
					s, err := openStream(c.Host, c.Str(0), "r")
					if err != nil {
						return nil, err
					}
					return []vm.Value{e.lineReader(s, c.Args[1:], true)}, nil
				}},
			{Name: "read", Doc: "Reads from standard input by formats.", Effect: vm.Read, Waits: true, Params: []vm.Param{formats},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return stdin.read(c.Args) }},
			{Name: "write", Doc: "Writes to standard output.", Effect: vm.Pure, Params: []vm.Param{data},
				Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) { return stdout.write(c, out) }},
		},
	}
}

// redacting is standard output as a script writes it.
type redacting struct {
	host *vm.Host
	w    io.Writer
}

func (r redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.host.Redact(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func openStream(h *vm.Host, path, mode string) (*stream, error) {
	if mode == "" {
		mode = "r"
	}
	switch strings.TrimSuffix(mode, "b") {
	case "r", "w", "a", "r+", "w+", "a+":
	default:
		return nil, vm.Errorf("validation", "invalid mode %q", mode)
	}
	f, err := h.Files.Open(path, mode)
	if err != nil {
		return nil, err
	}
	return &stream{name: path, file: f, seeker: f, r: bufio.NewReader(f), w: f}, nil
}

// revived puts a new handle into the place of the one that a recorded call gave.
func revived(handle func(*vm.Call) vm.Value) func(context.Context, *vm.Call, vm.Entry) ([]vm.Value, error) {
	return func(_ context.Context, c *vm.Call, old vm.Entry) ([]vm.Value, error) {
		if old.Err != nil {
			return nil, old.Err
		}
		out := slices.Clone(old.Result)
		if len(out) > 0 && out[0] != nil {
			out[0] = handle(c)
		}
		return out, nil
	}
}

// lineReader is the iterator of lines: a read for each call, through the dispatcher,
// so that what was read is journalled. It closes what io.lines opened.
func (e *Engine) lineReader(s *stream, formats []vm.Value, owned bool) *vm.Func {
	fn := &vm.Function{
		Name: "lines", Effect: vm.Read, Waits: true,
		Impl: func(_ context.Context, _ *vm.Call) ([]vm.Value, error) {
			out, err := s.read(formats)
			if err == nil && out[0] == nil && owned {
				err = s.close()
			}
			return out, err
		},
	}
	return vm.NewFunc("io.lines", func(ctx context.Context, _ bool, _ []vm.Value) ([]vm.Value, error) {
		return e.dispat.Call(ctx, "io", fn, nil, nil)
	})
}

func (s *stream) close() error {
	switch {
	case s.closed:
		return errors.New("attempt to use a closed file")
	case s.file == nil:
		return fmt.Errorf("%s stays open", s.name)
	}
	s.closed = true
	return s.file.Close()
}
