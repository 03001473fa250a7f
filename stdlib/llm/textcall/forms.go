package textcall

import (
	"bytes"
	"encoding/json"
	"strings"

	"ashlar/kernel/logjson"
)

// value reads one JSON value at the beginning of a text; n is 0 where there is none.
func value(text string) (v any, n int) {
	d := json.NewDecoder(strings.NewReader(text))
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return nil, 0
	}
	n = int(d.InputOffset())
	// Log JSON has no form for a bare value.
	o, err := logjson.Object(bytes.Join([][]byte{[]byte(`{"v":`), raw, []byte(`}`)}, nil))
	if err != nil {
		return nil, 0
	}
	return o["v"], n
}

func blanks(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }

// after gives where a text goes on behind blanks and a mark; 0 where the mark is not.
func after(text, mark string) int {
	n := blanks(text)
	if !strings.HasPrefix(text[n:], mark) {
		return 0
	}
	return n + len(mark)
}

// objects makes calls of one object, or of a list of them: all or none.
func (p parser) objects(v any) []Call {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var calls []Call
	for _, e := range list {
		m, _ := e.(map[string]any)
		c, ok := p.call(m)
		if !ok {
			return nil
		}
		calls = append(calls, c)
	}
	return calls
}

// hermes: <tool_call>{"name": …, "arguments": {…}}</tool_call>, of Hermes and Qwen.
func (p parser) hermes(text, open string) ([]Call, int) {
	n := len(open)
	v, size := value(text[n:])
	if size == 0 {
		return nil, 0
	}
	n += size
	end := after(text[n:], "</tool_call>")
	if end == 0 {
		return nil, 0
	}
	return p.objects(v), n + end
}

// qwen: <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>,
// the outer tag or its end missing at times, of Qwen's coders.
func (p parser) qwen(text, open string) ([]Call, int) {
	n := 0
	if open == "<tool_call>" {
		n = len(open)
		n += blanks(text[n:])
		if !strings.HasPrefix(text[n:], "<function=") {
			return nil, 0
		}
	}
	c, size := p.function(text[n:])
	if size == 0 {
		return nil, 0
	}
	n += size
	return []Call{c}, n + after(text[n:], "</tool_call>")
}

// function reads <function=NAME>, then parameters in tags or one JSON object, then
// </function>.
func (p parser) function(text string) (Call, int) {
	n := len("<function=")
	name, _, ok := strings.Cut(text[n:], ">")
	tool, known := p.tool(strings.TrimSpace(name))
	if !ok || !known {
		return Call{}, 0
	}
	n += len(name) + 1
	args := map[string]any{}
	if v, size := value(text[n:]); size > 0 {
		o, ok := v.(map[string]any)
		if !ok {
			return Call{}, 0
		}
		args, n = o, n+size
	}
	for {
		begin := after(text[n:], "<parameter=")
		if begin == 0 {
			break
		}
		key, rest, ok := strings.Cut(text[n+begin:], ">")
		key, length := strings.TrimSpace(key), len(key)+1
		end := closing(rest)
		if _, twice := args[key]; !ok || key == "" || twice || end < 0 {
			return Call{}, 0
		}
		args[key] = typed(rest[:end], tool.Types[key])
		n += begin + length + end + len(parameterEnd)
	}
	end := after(text[n:], "</function>")
	if end == 0 {
		return Call{}, 0
	}
	b, err := logjson.Marshal(args)
	if err != nil {
		return Call{}, 0
	}
	return Call{tool.Name, string(b)}, n + end
}

const parameterEnd = "</parameter>"

// closing finds the end of a value: the first closing tag behind which the call goes
// on, since a value may be text that holds such a tag.
func closing(text string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], parameterEnd)
		if i < 0 {
			return -1
		}
		behind := text[at+i+len(parameterEnd):]
		if after(behind, "<parameter=") > 0 || after(behind, "</function>") > 0 {
			return at + i
		}
		at += i + len(parameterEnd)
	}
}

// typed gives a value that was written without quotes the type that its schema says. One
// line break at each end belongs to the template.
func typed(text, typ string) any {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	if typ == "" || typ == "string" {
		return text
	}
	trimmed := strings.TrimSpace(text)
	if typ == "boolean" {
		trimmed = strings.ToLower(trimmed) // as Python writes them
	}
	if v, n := value(trimmed); n == len(trimmed) && n > 0 {
		return v
	}
	return text
}

// mistral: [TOOL_CALLS][{"name": …, "arguments": {…}}, …], or [TOOL_CALLS]NAME{…} with or
// without [ARGS] between them, of the newer templates.
func (p parser) mistral(text, open string) ([]Call, int) {
	n := len(open)
	if v, size := value(text[n:]); size > 0 {
		return p.objects(v), n + size
	}
	n += blanks(text[n:])
	brace := strings.IndexByte(text[n:], '{')
	if brace < 0 {
		return nil, 0
	}
	name := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text[n:n+brace]), "[ARGS]"))
	v, size := value(text[n+brace:])
	if size == 0 {
		return nil, 0
	}
	return p.objects(map[string]any{"name": name, "arguments": v}), n + brace + size
}

// llama: <|python_tag|>{"name": …, "parameters": {…}}, <function=NAME>{…}</function>, or
// a text that is nothing but such objects; several are parted by semicolons.
func (p parser) llama(text, open string) ([]Call, int) {
	if open == "<function=" {
		c, n := p.function(text)
		return []Call{c}, n
	}
	n := len(open)
	var calls []Call
	for {
		v, size := value(text[n:])
		found := p.objects(v)
		if size == 0 || len(found) == 0 {
			return nil, 0
		}
		calls, n = append(calls, found...), n+size
		more := after(text[n:], ";")
		if more == 0 {
			break
		}
		n += more
	}
	for _, end := range []string{"<|eom_id|>", "<|eot_id|>"} {
		n += after(text[n:], end)
	}
	if open == "" && strings.TrimSpace(text[n:]) != "" {
		return nil, 0 // an object that the model talks about
	}
	return calls, n
}
