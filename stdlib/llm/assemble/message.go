package assemble

import (
	"maps"
	"slices"
	"strings"
)

// choice applies one choice of a chunk.
func (a *Assembler) choice(choice map[string]any) error {
	for key, value := range choice {
		switch key {
		case "delta", "message", "index", "error":
		case "finish_reason":
			if reason, ok := value.(string); ok && reason != "" {
				a.finish = reason
			}
		case "logprobs":
			a.logprobs(value)
		default:
			if value != nil {
				a.extra[key] = value
			}
		}
	}
	delta, ok := choice["delta"].(map[string]any)
	if !ok {
		delta, _ = choice["message"].(map[string]any) // some servers send the whole at once
	}
	return a.fields(delta)
}

// fields applies a delta's fields. Thinking comes before content, as it was
// thought, and otherwise names decide: a replay must see the same order.
func (a *Assembler) fields(delta map[string]any) error {
	told := false // some servers send one thought under two names
	for _, thinking := range []bool{true, false} {
		for _, key := range slices.Sorted(maps.Keys(delta)) {
			value := delta[key]
			if value == nil || isThinking(key) != thinking {
				continue
			}
			piece, isText := value.(string)
			switch {
			case thinking && isText:
				if err := a.text(key, piece, "thinking", told); err != nil {
					return err
				}
				told = told || piece != ""
			case key == "content":
				if err := a.content(value, &told); err != nil {
					return err
				}
			case key == "refusal" && isText:
				if err := a.text(key, piece, "", true); err != nil {
					return err
				}
			case key == "tool_calls":
				a.toolCalls(value)
			case key == "function_call":
				a.functionCall(value)
			default:
				a.keep(key, value)
			}
		}
	}
	return nil
}

// isThinking knows reasoning, reasoning_content, thinking and what else servers
// call it.
func isThinking(key string) bool {
	return strings.Contains(key, "reason") || strings.Contains(key, "think")
}

// content is text, or a list of parts, among which there may be thinking.
func (a *Assembler) content(value any, told *bool) error {
	if piece, ok := value.(string); ok {
		return a.text("content", piece, "text", false)
	}
	parts, _ := value.([]any)
	for _, p := range parts {
		part, ok := p.(map[string]any)
		if !ok {
			continue
		}
		if piece, ok := part["text"].(string); ok {
			if err := a.text("content", piece, "text", false); err != nil {
				return err
			}
		}
		if thought := textOf(part["thinking"]); thought != "" {
			if err := a.text("reasoning", thought, "thinking", *told); err != nil {
				return err
			}
		}
	}
	return nil
}

// textOf gives a text, or the texts of a list of parts.
func textOf(value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	var b strings.Builder
	parts, _ := value.([]any)
	for _, p := range parts {
		if part, ok := p.(map[string]any); ok {
			s, _ := part["text"].(string)
			b.WriteString(s)
		}
	}
	return b.String()
}

// text joins a piece to a field of the message, and tells the delta unless silent.
func (a *Assembler) text(key, piece, kind string, silent bool) error {
	if piece == "" {
		return nil
	}
	b := a.texts[key]
	if b == nil {
		b = &strings.Builder{}
		a.texts[key] = b
	}
	b.WriteString(piece)
	if a.delta == nil || silent {
		return nil
	}
	if a.halves {
		if piece = a.whole(key, piece); piece == "" {
			return nil
		}
	}
	return a.delta(kind, piece)
}

func (a *Assembler) toolCalls(value any) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	a.width = len(list)
	for i, v := range list {
		if fields, ok := v.(map[string]any); ok {
			a.call(readPiece(fields), i)
		}
	}
}

// functionCall joins the one call of the form before tool_calls.
func (a *Assembler) functionCall(value any) {
	fn, ok := value.(map[string]any)
	if !ok {
		return
	}
	p := readPiece(map[string]any{"function": fn})
	if a.function == nil {
		a.function = &call{}
	}
	if p.name != a.function.name {
		a.function.name += p.name
	}
	a.function.args.WriteString(p.args)
}

// keep takes a field that is not known here: lists grow, of the rest the last
// stands.
func (a *Assembler) keep(key string, value any) {
	more, isList := value.([]any)
	have, hadList := a.message[key].([]any)
	if isList && hadList {
		value = append(have, more...)
	}
	a.message[key] = value
}

// logprobs joins the lists of probabilities.
func (a *Assembler) logprobs(value any) {
	more, ok := value.(map[string]any)
	if !ok {
		return
	}
	have, ok := a.extra["logprobs"].(map[string]any)
	if !ok {
		a.extra["logprobs"] = more
		return
	}
	for key, v := range more {
		list, isList := v.([]any)
		old, hadList := have[key].([]any)
		if isList && hadList {
			v = append(old, list...)
		}
		if v != nil {
			have[key] = v
		}
	}
}

// finishedMessage gives the message as the non-streamed form has it.
func (a *Assembler) finishedMessage(cut bool) map[string]any {
	message := maps.Clone(a.message)
	if role, _ := message["role"].(string); role == "" {
		message["role"] = "assistant"
	}
	message["content"] = nil
	for key, b := range a.texts {
		message[key] = b.String()
	}
	calls := a.finished(cut)
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	if a.function != nil {
		message["function_call"] = map[string]any{"name": a.function.name, "arguments": a.function.args.String()}
	}
	// An answer without a word is "", nil is for a message that is something else.
	if message["content"] == nil && len(calls) == 0 && a.function == nil && a.texts["refusal"] == nil {
		message["content"] = ""
	}
	return message
}
