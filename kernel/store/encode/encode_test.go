package encode_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store/encode"
)

// Whatever a value holds, the strings that Cut finds are its long strings, at
// their places.
func TestCutFindsEveryLongStringAndNoOther(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{`"`, `\`, "a", "é", "\x01", "\n", "{", "}", ":", ","}
	text := func() string {
		var b strings.Builder
		for range r.IntN(2 * encode.InlineBytes) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		return b.String()
	}
	for range 300 {
		var want []string
		object := map[string]any{}
		list := []any{}
		for range r.IntN(6) {
			list = append(list, text())
			object[text()] = int64(1)
		}
		object["list"] = list
		b, err := logjson.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > encode.InlineBytes {
			want = longStrings(t, object)
		}
		got := map[string]int{}
		for _, l := range encode.Cut(b) {
			s := string(b[l.Start:l.End])
			if l.Hash != event.HashOf([]byte(s)) {
				t.Fatalf("the hash of %.40s", s)
			}
			got[s]++
		}
		for _, s := range want {
			got[s]--
		}
		for s, n := range got {
			if n != 0 {
				t.Fatalf("%+d times %.80s in %.200s", n, s, b)
			}
		}
	}
}

// longStrings gives the long strings of an object, encoded.
func longStrings(t *testing.T, object map[string]any) (out []string) {
	add := func(s string) {
		b, err := logjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > encode.InlineBytes {
			out = append(out, string(b))
		}
	}
	for k := range object {
		add(k)
	}
	for _, v := range object["list"].([]any) {
		add(v.(string))
	}
	return out
}

func TestWhatIsNoJSONIsCutNowhere(t *testing.T) {
	t.Parallel()
	for _, s := range []string{strings.Repeat("x", 999), `"` + strings.Repeat("x", 999), `{"a` + strings.Repeat(`\"`, 999)} {
		if got := encode.Cut([]byte(s)); got != nil {
			t.Errorf("%.20s: %v", s, got)
		}
	}
}
