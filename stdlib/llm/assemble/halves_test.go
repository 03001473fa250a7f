package assemble

import (
	"slices"
	"strings"
	"testing"
)

// A character that a server cut between its UTF-16 units is whole again, in text, in
// thinking and in arguments; half of one stays U+FFFD.
func TestACharacterCutOverTwoDeltasIsWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		field  string
		want   string
		told   string
		note   bool
	}{
		"text":      {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":"\ude00b"}`)}, "content", "a😀b", "a|😀b", false},
		"alone":     {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":"\uDE00"}`)}, "content", "😀", "😀", false},
		"two":       {[]string{delta(`{"content":"\ud83d"}`), delta(`{"content":"\ude00\ud83d"}`), delta(`{"content":"\ude01"}`)}, "content", "😀😁", "😀|😁", false},
		"thinking":  {[]string{delta(`{"reasoning":"\ud83d"}`), delta(`{"content":"x"}`), delta(`{"reasoning":"\ude00"}`)}, "reasoning", "😀", "x|😀", false},
		"lone high": {[]string{delta(`{"content":"a\ud83d"}`), delta(`{"content":"b"}`)}, "content", "a\uFFFDb", "a|\uFFFDb", true},
		"lone low":  {[]string{delta(`{"content":"a\ude00b"}`)}, "content", "a\uFFFDb", "a\uFFFDb", true},
		"reversed":  {[]string{delta(`{"content":"\ude00"}`), delta(`{"content":"\ud83d"}`), delta(`{"content":"c"}`)}, "content", "\uFFFD\uFFFDc", "\uFFFD|\uFFFDc", true},
		"at once":   {[]string{delta(`{"content":"\ud83d\ude00 \\ud83d"}`)}, "content", `😀 \ud83d`, `😀 \ud83d`, false},
		"private":   {[]string{delta(`{"content":"\udbfe\udc00` + "\U0010FFF0" + `"}`)}, "content", "\U0010F800\U0010FFF0", "\U0010F800\U0010FFF0", false},
		"at last":   {[]string{delta(`{"content":"a\ud83d"}`)}, "content", "a\uFFFD", "a", true},
	} {
		var told []string
		a := New(func(_, text string) error { told = append(told, text); return nil })
		for _, chunk := range append(c.chunks, finish("stop")) {
			if err := a.Add([]byte(chunk)); err != nil {
				t.Fatal(err)
			}
		}
		r := a.Result(false)
		message := r.Body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
		if message[c.field] != c.want || strings.Join(told, "|") != c.told || slices.Contains(r.Notes, any("invalid_utf8")) != c.note {
			t.Errorf("%s: %q, told %q, notes %v", name, message[c.field], strings.Join(told, "|"), r.Notes)
		}
	}
	_, message := assembled(t,
		calls(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}`),
		calls(`{"index":0,"function":{"arguments":"\ude00\",\"y\":\"\\ud83d"}}`), calls(`{"index":0,"function":{"arguments":"\\ude00\"}"}}`),
		finish("tool_calls"))
	if got := callsOf(message); len(got) != 1 || got[0] != (called{"a", "f", `{"x":"😀","y":"\ud83d\ude00"}`}) {
		t.Errorf("%v", got)
	}
}
