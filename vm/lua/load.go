package lua

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	glua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"

	"ashlar/vm"
)

// compile makes a function of a chunk. The guard sees the source first, since the
// parser and the compiler recurse without a bound.
func (e *Engine) compile(chunk vm.Chunk) (fn *glua.LFunction, err error) {
	defer func() {
		if p := recover(); p != nil {
			fn, err = nil, panicError(p)
		}
	}()
	if proto := precompiled(chunk); proto != nil {
		return e.proto.NewFunctionFromProto(proto), nil
	}
	src := blankShebang(bytes.TrimPrefix(chunk.Source, []byte(byteOrderMark)))
	if bad := guard(chunk.Name, src, e.opts.Limits); bad != nil {
		return nil, bad
	}
	tree, err := parse.Parse(bytes.NewReader(src), chunk.Name)
	if err != nil {
		return nil, syntaxError(chunk.Name, err)
	}
	proto, err := glua.Compile(tree, chunk.Name)
	if err != nil {
		return nil, syntaxError(chunk.Name, err)
	}
	return e.proto.NewFunctionFromProto(proto), nil
}

// byteOrderMark is what some editors put in front of a file; it is no part of the text.
const byteOrderMark = "\uFEFF"

// blankShebang makes a comment of a first line that begins with #.
func blankShebang(src []byte) []byte {
	if len(src) == 0 || src[0] != '#' {
		return src
	}
	out := bytes.Clone(src)
	for i := range out {
		if out[i] == '\n' {
			break
		}
		out[i] = ' '
	}
	return out
}

var compileErrorText = regexp.MustCompile(`^compile error near line\((\d+)\) .*?: (.*)$`)

// syntaxError gives an error of the parser or compiler our own form:
// "agent.lua:12: unexpected 'end'".
func syntaxError(name string, err error) *vm.Error {
	line, msg := 0, strings.TrimSpace(err.Error())
	var pe *parse.Error
	var ce *glua.CompileError
	switch {
	case errors.As(err, &pe):
		line, msg = pe.Pos.Line, parseText(pe)
	case errors.As(err, &ce):
		line, msg = ce.Line, ce.Message
	default:
		if m := compileErrorText.FindStringSubmatch(msg); m != nil {
			_, _ = fmt.Sscan(m[1], &line)
			msg = m[2]
		}
	}
	return sourceError(name, line, "%s", msg)
}

func parseText(pe *parse.Error) string {
	msg := strings.TrimSpace(pe.Message)
	if pe.Pos.Line == parse.EOF {
		return msg + " at the end of the file (is an 'end' or a bracket missing?)"
	}
	if pe.Token != "" {
		return fmt.Sprintf("%s near '%s'", msg, shorten(pe.Token))
	}
	return msg
}

func shorten(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// sourceError is an error at a line of source; line 0 and below stand for none.
func sourceError(name string, line int, format string, args ...any) *vm.Error {
	pos := name
	if line > 0 {
		pos = fmt.Sprintf("%s:%d", name, line)
	}
	return &vm.Error{Message: pos + ": " + fmt.Sprintf(format, args...), Position: pos}
}

// load is 5.2's load, and 5.1's loadstring: a string or a function that gives
// pieces, a chunk name, a mode and an environment. Failures are nil and a message.
func (e *Engine) load(L *glua.LState) int {
	src, err := e.loadSource(L)
	if err != nil {
		return fail(L, err.Error())
	}
	name := strings.TrimLeft(L.OptString(2, chunkName(src)), "=@")
	if mode := L.OptString(3, "bt"); !strings.Contains(mode, "t") {
		return fail(L, "attempt to load a text chunk (mode is '"+mode+"')")
	}
	fn, err := e.compile(vm.Chunk{Name: name, Source: []byte(src)})
	if err != nil {
		return fail(L, err.Error())
	}
	if env, ok := L.Get(4).(*glua.LTable); ok {
		fn.Env = env
	} else {
		fn.Env = L.Env
	}
	L.Push(fn)
	return 1
}

func (e *Engine) loadSource(L *glua.LState) (string, error) {
	next, ok := L.Get(1).(*glua.LFunction)
	if !ok {
		return L.CheckString(1), nil
	}
	var b strings.Builder
	for {
		L.Push(next)
		L.Call(0, 1)
		piece := L.Get(-1)
		L.Pop(1)
		switch p := piece.(type) {
		case glua.LString:
			if p == "" {
				return b.String(), nil
			}
			b.WriteString(string(p))
		case *glua.LNilType:
			return b.String(), nil
		default:
			return "", errors.New("reader function must return a string")
		}
		if b.Len() > e.opts.Limits.SourceBytes {
			return b.String(), nil // the guard says so
		}
	}
}

// chunkName names a chunk that came without a name, by its first line.
func chunkName(src string) string {
	first, _, more := strings.Cut(src, "\n")
	const most = 40
	if len(first) > most {
		first, more = first[:most], true
	}
	if more {
		first += "..."
	}
	return `[string "` + first + `"]`
}

// fail pushes nil and a message, as Lua's libraries report what is no bug.
func fail(L *glua.LState, msg string) int {
	L.Push(glua.LNil)
	L.Push(glua.LString(msg))
	return 2
}
