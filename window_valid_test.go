package ashlar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// validators hold a request's body to the rules by which its provider refuses one.
var validators = map[string]func(map[string]any) error{"openai": validChat, "anthropic": validMessages}

var chatName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func sendable(text string) error {
	if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return fmt.Errorf("text that no provider takes: %.40q", text)
	}
	return nil
}

// validChat knows the rules of Chat Completions.
func validChat(body map[string]any) error {
	messages, _ := body["messages"].([]any)
	if len(messages) == 0 {
		return errors.New("no messages")
	}
	open, used, spoke := map[string]bool{}, map[string]bool{}, false
	for i, x := range messages {
		m, _ := x.(map[string]any)
		role := str(m, "role")
		if role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages[%d]: calls without a result: %v", i, open)
		}
		switch role {
		case "system":
			if i > 0 {
				return fmt.Errorf("messages[%d] is of the system", i)
			}
		case "user":
			spoke = true
			if err := chatContent(m["content"]); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		case "assistant":
			if !spoke {
				return fmt.Errorf("messages[%d]: the assistant speaks before any user", i)
			}
			calls, _ := m["tool_calls"].([]any)
			text, _ := m["content"].(string)
			if m["tool_calls"] != nil && len(calls) == 0 || text == "" && len(calls) == 0 {
				return fmt.Errorf("messages[%d]: nothing is said or called", i)
			}
			if err := sendable(text); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
			for _, c := range calls {
				if err := chatCall(c.(map[string]any), open, used); err != nil {
					return fmt.Errorf("messages[%d]: %w", i, err)
				}
			}
		case "tool":
			id, text := str(m, "tool_call_id"), ""
			if text, _ = m["content"].(string); m["content"] == nil || sendable(text) != nil {
				return fmt.Errorf("messages[%d]: the result of %q cannot be sent", i, id)
			}
			if !open[id] {
				return fmt.Errorf("messages[%d]: a result without its call: %q", i, id)
			}
			delete(open, id)
		default:
			return fmt.Errorf("messages[%d]: role %q", i, role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without a result: %v", open)
	}
	return nil
}

func chatContent(v any) error {
	if text, ok := v.(string); ok {
		if text == "" {
			return errors.New("empty text")
		}
		return sendable(text)
	}
	parts, _ := v.([]any)
	if len(parts) == 0 {
		return errors.New("no content")
	}
	for _, p := range parts {
		if err := sendable(str(p.(map[string]any), "text")); err != nil {
			return err
		}
	}
	return nil
}

func chatCall(c map[string]any, open, used map[string]bool) error {
	id, f := str(c, "id"), sub(c, "function")
	if id == "" || used[id] {
		return fmt.Errorf("a call's id %q is empty or was used before", id)
	}
	if !chatName.MatchString(str(f, "name")) {
		return fmt.Errorf("a call of %q", str(f, "name"))
	}
	var args map[string]any
	if json.Unmarshal([]byte(str(f, "arguments")), &args) != nil || args == nil {
		return fmt.Errorf("arguments %.40q", str(f, "arguments"))
	}
	open[id], used[id] = true, true
	return nil
}

var messagesName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
var messagesID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// validMessages knows the rules of Anthropic's Messages. Neighbours of one role count
// as one message, as they do there.
func validMessages(body map[string]any) error {
	var turns [][]map[string]any
	var roles []string
	messages, _ := body["messages"].([]any)
	for i, x := range messages {
		m, _ := x.(map[string]any)
		blocks, err := messagesContent(m["content"])
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
		role := str(m, "role")
		if role != "user" && role != "assistant" {
			return fmt.Errorf("messages[%d]: role %q", i, role)
		}
		if n := len(roles); n > 0 && roles[n-1] == role {
			turns[n-1] = append(turns[n-1], blocks...)
			continue
		}
		roles, turns = append(roles, role), append(turns, blocks)
	}
	if len(roles) == 0 || roles[0] != "user" {
		return errors.New("the first message is not of the user")
	}
	used, open := map[string]bool{}, map[string]bool{}
	for i, blocks := range turns {
		last, others := open, false
		open = map[string]bool{}
		for _, b := range blocks {
			id := str(b, "id") + str(b, "tool_use_id")
			switch str(b, "type") {
			case "tool_use":
				if _, ok := b["input"].(map[string]any); roles[i] != "assistant" || !messagesID.MatchString(id) || used[id] || !ok || !messagesName.MatchString(str(b, "name")) {
					return fmt.Errorf("turn %d: a bad call: %v", i, b)
				}
				used[id], open[id] = true, true
			case "tool_result":
				if !last[id] || others {
					return fmt.Errorf("turn %d: a result without its call, or behind other blocks: %q", i, id)
				}
				delete(last, id)
			case "thinking":
				if str(b, "signature") == "" {
					return fmt.Errorf("turn %d: a thought without a signature", i)
				}
			default:
				others = true
			}
		}
		if len(last) > 0 {
			return fmt.Errorf("turn %d: calls without a result: %v", i, last)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("calls without a result: %v", open)
	}
	return nil
}

func messagesContent(v any) ([]map[string]any, error) {
	if text, ok := v.(string); ok {
		v = []any{map[string]any{"type": "text", "text": text}}
	}
	list, _ := v.([]any)
	if len(list) == 0 {
		return nil, errors.New("no content")
	}
	var blocks []map[string]any
	for _, x := range list {
		b, _ := x.(map[string]any)
		text := str(b, "text")
		if str(b, "type") == "text" && strings.Trim(text, " \t\r\n") == "" {
			return nil, errors.New("empty text")
		}
		if inner, ok := b["content"].(string); ok {
			text += inner
		}
		if err := sendable(text); err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// The validators themselves can fail.
func TestTheValidatorsRefuseWhatProvidersRefuse(t *testing.T) {
	t.Parallel()
	chat := func(rest string) string { return `{"messages":[{"role":"user","content":"q"},` + rest + `]}` }
	call := `{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"t","arguments":"{}"}}]}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"t","input":{}}]}`
	for _, c := range []struct{ wire, body string }{
		{"openai", `{"messages":[]}`}, {"openai", `{"messages":[{"role":"assistant","content":"x"}]}`},
		{"openai", chat(call)}, {"openai", chat(call + `,{"role":"user","content":"x"}`)},
		{"openai", chat(`{"role":"tool","tool_call_id":"a","content":"x"}`)},
		{"openai", chat(call + `,{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`)},
		{"openai", chat(`{"role":"assistant","content":""}`)}, {"openai", chat(`{"role":"user","content":""}`)},
		{"openai", chat(`{"role":"user","content":"a\u0000b"}`)},
		{"anthropic", `{"messages":[` + use + `]}`}, {"anthropic", chat(use)},
		{"anthropic", chat(use + `,{"role":"user","content":"x"}`)},
		{"anthropic", chat(use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"r"}]}`)},
		{"anthropic", chat(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}`)},
		{"anthropic", chat(`{"role":"assistant","content":" "}`)},
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(c.body), &body); err != nil {
			t.Fatal(err)
		}
		if validators[c.wire](body) == nil {
			t.Errorf("%s takes %s", c.wire, c.body)
		}
	}
	for wire, body := range map[string]string{
		"openai":    chat(call + `,{"role":"tool","tool_call_id":"a","content":""},{"role":"assistant","content":"x"}`),
		"anthropic": chat(use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":""}]},{"role":"user","content":"y"}`),
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		if err := validators[wire](m); err != nil {
			t.Errorf("%s: %v", wire, err)
		}
	}
}
