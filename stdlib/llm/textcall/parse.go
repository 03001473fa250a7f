package textcall

import (
	"slices"
	"strings"
	"unicode/utf8"

	"ashlar/kernel/logjson"
)

// Bounds of one text; what is beyond stays text. A mark at which no call was found may
// have been read to the text's end, so that there can only be so many.
const (
	MaxCalls = 128
	MaxBytes = 1 << 20
	maxMarks = 256
)

// Tool is a declared tool. Types gives the JSON type of a parameter, for the form that
// writes values without quotes; nil: they are text.
type Tool struct {
	Name  string
	Types map[string]string
}

// Call is one call. Args is the JSON text of an object.
type Call struct{ Name, Args string }

// Result is what was found.
type Result struct {
	Text  string // what is left, without blanks at its ends where a call was taken out
	Calls []Call
	Cut   bool // the text ends inside a call of a declared tool
}

// Forms lists the names of forms; "auto" tries all of them.
func Forms() []string { return []string{"auto", "hermes", "llama", "mistral", "qwen"} }

// reader reads one form.
type reader struct {
	name string
	// opens are the marks at which a call may begin; "" is the beginning of the text.
	opens []string
	// read reads the calls that begin at the mark that the text begins with; n is how
	// many bytes they take, 0 for none.
	read func(p parser, text, open string) (calls []Call, n int)
}

func readers() []reader {
	return []reader{
		{"hermes", []string{"<tool_call>"}, parser.hermes},
		{"qwen", []string{"<tool_call>", "<function="}, parser.qwen},
		{"mistral", []string{"[TOOL_CALLS]"}, parser.mistral},
		{"llama", []string{"<|python_tag|>", "<function=", ""}, parser.llama},
	}
}

type parser struct{ tools []Tool }

// Parse finds the calls in a text. An unknown form finds none.
func Parse(text, form string, tools []Tool) Result {
	p := parser{tools}
	r := Result{}
	if len(text) > MaxBytes {
		return Result{Text: text}
	}
	if inner, ok := unfenced(text); ok {
		if r := Parse(inner, form, tools); len(r.Calls) > 0 || r.Cut {
			return r
		}
	}
	var kept strings.Builder
	var code quoting
	marks, last := 0, -1
	for at := 0; at < len(text); {
		if marks == maxMarks {
			kept.WriteString(text[at:])
			break
		}
		if code.steps(text[at:]) {
			_, size := utf8.DecodeRuneInString(text[at:])
			kept.WriteString(text[at : at+size])
			at += size
			continue
		}
		calls, n, open := p.at(text[at:], form, at == 0)
		if n > 0 && len(r.Calls)+len(calls) <= MaxCalls {
			r.Calls = append(r.Calls, calls...)
			at += n
			continue
		}
		if open {
			marks, last = marks+1, at
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		kept.WriteString(text[at : at+size])
		at += size
	}
	r.Cut = last >= 0 && p.begun(text[last:])
	if len(r.Calls) == 0 {
		return Result{Text: text, Cut: r.Cut}
	}
	r.Text = strings.TrimSpace(kept.String())
	return r
}

// at reads the calls that begin where the text does. open reports a mark.
func (p parser) at(text, form string, first bool) (calls []Call, n int, open bool) {
	for _, f := range readers() {
		if form != "auto" && form != f.name {
			continue
		}
		for _, mark := range f.opens {
			if mark == "" && !first || !strings.HasPrefix(text, mark) {
				continue
			}
			open = open || mark != ""
			if calls, n := f.read(p, text, mark); n > 0 && len(calls) > 0 {
				return calls, n, true
			}
		}
	}
	return nil, 0, open
}

// begun reports whether a text that begins with a mark and holds no whole call names a
// declared tool, and ends before the call does.
func (p parser) begun(text string) bool {
	for _, end := range []string{"</tool_call>", "</function>"} {
		if strings.Contains(text, end) {
			return false
		}
	}
	for _, t := range p.tools {
		if strings.Contains(text, `"`+t.Name+`"`) || strings.Contains(text, "="+t.Name+">") || strings.Contains(text, "]"+t.Name) {
			return true
		}
	}
	return false
}

func (p parser) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(p.tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return p.tools[i], true
}

// call makes a call of an object with a name and arguments, as the templates have them.
func (p parser) call(m map[string]any) (Call, bool) {
	if fn, ok := m["function"].(map[string]any); ok {
		m = fn
	}
	name, _ := m["name"].(string)
	if _, known := p.tool(name); !known {
		return Call{}, false
	}
	var args any
	for _, key := range []string{"arguments", "parameters"} {
		if m[key] != nil {
			args = m[key]
			break
		}
	}
	if text, ok := args.(string); ok {
		o, err := logjson.Object([]byte(text))
		if err != nil {
			return Call{}, false
		}
		args = o
	}
	if args == nil {
		args = map[string]any{}
	}
	o, ok := args.(map[string]any)
	if !ok {
		return Call{}, false
	}
	b, err := logjson.Marshal(o)
	if err != nil {
		return Call{}, false
	}
	return Call{name, string(b)}, true
}
