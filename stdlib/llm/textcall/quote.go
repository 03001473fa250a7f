package textcall

import "strings"

const fence = "```"

// quoting follows a text from its beginning and knows what is code in it: a call there
// is one that the model talks about.
type quoting struct {
	fenced bool // in a block between fences
	inline bool // between backticks of one line
	middle bool // of a line, behind what is no blank
}

// steps goes on by the character that the text begins with, and reports whether it is code
// or opens it.
func (q *quoting) steps(text string) bool {
	was := q.fenced || q.inline
	switch c := text[0]; {
	case !q.middle && strings.HasPrefix(text, fence):
		q.fenced, q.inline, q.middle = !q.fenced, false, true
		return true
	case c == '\n':
		q.inline, q.middle = false, false
	case c == '`' && !q.fenced:
		// An opening without an end on its line is a character like any other.
		end := strings.IndexAny(text[1:], "`\n")
		q.inline, q.middle = !q.inline && end >= 0 && text[1+end] == '`', true
		return was || q.inline
	case c != ' ' && c != '\t' && c != '\r':
		q.middle = true
	}
	return was
}

// unfenced gives what stands in a fence that is all of a text: small models put a call
// that they mean into one.
func unfenced(text string) (inner string, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, fence) {
		return "", false
	}
	_, inner, ok = strings.Cut(text, "\n")
	inner, closed := strings.CutSuffix(inner, fence)
	return inner, ok && closed && !strings.Contains(inner, fence)
}
