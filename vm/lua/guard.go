package lua

import (
	"bytes"
	"fmt"

	"ashlar/vm"
)

// Bounds of the guard beside vm.MaxNesting. The parser keeps its stack on the heap,
// but the compiler recurses over the tree: along a chain of operators, calls or
// fields, and along the branches of an if.
const (
	maxChain    = 8_000
	maxBranches = 8_000
)

// guard reads source before the parser does. It refuses what would overflow the Go
// stack, which nothing can catch, and what only a later Lua knows, where gopher-lua
// would read something else or say nothing useful. nil is a pass.
func guard(name string, src []byte, limits Limits) *vm.Error {
	if len(src) > limits.SourceBytes {
		return limitError(name, 0, "the source is %d bytes long (the limit is %d)", len(src), limits.SourceBytes)
	}
	if bytes.HasPrefix(src, []byte("\x1bLua")) {
		return sourceError(name, 0, "this is compiled Lua; only source text is run")
	}
	g := guardian{lexer: lexer{src: src, line: 1}, name: name, limits: limits}
	return g.run()
}

func limitError(name string, line int, format string, args ...any) *vm.Error {
	e := sourceError(name, line, format, args...)
	e.Kind = "limit"
	return e
}

// guardian counts what nests.
type guardian struct {
	lexer
	name   string
	limits Limits

	depth    int
	chains   []int // operators so far in the expression at each bracket depth
	branches int
	operand  bool  // the last token ends an operand
	last     token // the last token
	before   token // the one before it
}

func (g *guardian) run() *vm.Error {
	g.chains = append(g.chains[:0], 0)
	for {
		t, problem := g.next()
		if problem != "" {
			return sourceError(g.name, g.line, "%s", problem)
		}
		if t.kind == tokEnd {
			return nil
		}
		if err := g.see(t); err != nil {
			return err
		}
		g.before, g.last = g.last, t
	}
}

func (g *guardian) see(t token) *vm.Error {
	switch t.kind {
	case tokName, tokNumber:
		if g.operand { // two operands in a row: a new statement
			g.reset()
		}
		g.operand = true
	case tokString:
		if g.operand { // f"text"
			return g.link()
		}
		g.operand = true
	case tokWord:
		return g.word(t)
	case tokMark:
		return g.mark(t)
	}
	return nil
}

func (g *guardian) word(t token) *vm.Error {
	switch t.text {
	case "and", "or", "not":
		g.operand = false
		return g.link()
	case "nil", "true", "false":
		if g.operand {
			g.reset()
		}
		g.operand = true
		return nil
	case "elseif":
		if g.branches++; g.branches > maxBranches {
			return limitError(g.name, g.line, "more than %d branches of elseif", maxBranches)
		}
	case "function", "if", "do", "repeat":
		g.operand = false
		if t.text != "function" {
			g.reset()
		}
		return g.enter()
	case "end", "until":
		g.leave()
		g.operand = t.text == "end" // a function's end ends an operand
		return nil
	}
	g.operand = false
	g.reset()
	return nil
}

func (g *guardian) mark(t token) *vm.Error {
	switch t.text {
	case "(", "[", "{":
		suffix := g.operand
		g.operand = false
		if suffix {
			if err := g.link(); err != nil {
				return err
			}
		}
		return g.enter()
	case ")", "]", "}":
		g.leave()
		g.operand = true
		return nil
	case ",", ";", "=", "::":
		g.operand = false
		g.reset()
		return nil
	case "...":
		g.operand = true
		return nil
	case "<":
		if g.last.kind == tokName && g.before.text == "local" {
			if err := g.attribute(); err != nil {
				return err
			}
		}
	}
	g.operand = false
	return g.link()
}

// attribute tells `local x <const>` from a comparison, which cannot stand there.
func (g *guardian) attribute() *vm.Error {
	save := g.lexer
	t, _ := g.next()
	line := g.line
	g.lexer = save
	switch t.text {
	case "const":
		return sourceError(g.name, line, "<const> is Lua 5.4; leave the attribute out")
	case "close":
		return sourceError(g.name, line, "<close> is Lua 5.4; use knl.session(opts, fn), or close the value after a pcall")
	}
	return nil
}

func (g *guardian) enter() *vm.Error {
	if g.depth++; g.depth > g.limits.Nesting {
		return limitError(g.name, g.line, "nested deeper than %d brackets and blocks", g.limits.Nesting)
	}
	g.chains = append(g.chains, 0)
	return nil
}

func (g *guardian) leave() {
	if g.depth > 0 { // too many closers are the parser's to report
		g.depth--
		g.chains = g.chains[:len(g.chains)-1]
	}
}

func (g *guardian) link() *vm.Error {
	at := &g.chains[len(g.chains)-1]
	if *at++; *at > maxChain {
		return limitError(g.name, g.line, "an expression of more than %d operators; build it in steps", maxChain)
	}
	return nil
}

func (g *guardian) reset() { g.chains[len(g.chains)-1] = 0 }

// later says what to write instead of an operator that only a later Lua has.
func later(op string) string {
	switch op {
	case "//":
		return "// is Lua 5.3; write math.floor(a / b)"
	case "<<":
		return "<< is Lua 5.3; write a * 2 ^ n"
	case ">>":
		return ">> is Lua 5.3; write math.floor(a / 2 ^ n)"
	case "&", "|", "~":
		return fmt.Sprintf("%s as an operator on bits is Lua 5.3; use arithmetic with %% and math.floor", op)
	}
	return ""
}
