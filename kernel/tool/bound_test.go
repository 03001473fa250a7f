package tool_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"ashlar/kernel/logjson"
	"ashlar/kernel/tool"
)

func TestWhatIsTooLongIsShownAsHeadAndTail(t *testing.T) {
	t.Parallel()
	big := map[string]any{}
	for i := range 3000 {
		big[fmt.Sprintf("key%04d", i)] = []any{"äöü", int64(i)}
	}
	for shift := range 4 { // every place of the cut within a character of four bytes
		for name, value := range map[string]any{
			"text": strings.Repeat("x", shift) + strings.Repeat("𝄞", 20_000), "value": big,
			"lines": strings.Repeat("é\n", shift) + strings.Repeat("é line\n", 20_000),
		} {
			b, r, _ := newBus(t, tool.Contract{}, gives(value))
			res := dispatch(t, b, r, nil)
			text, ok := res.Model.(string)
			if !ok || len(text) > tool.MaxModelBytes || !utf8.ValidString(text) {
				t.Fatalf("%s: %d bytes of %T, valid %v", name, len(text), res.Model, utf8.ValidString(text))
			}
			whole, isText := value.(string)
			if !isText {
				j, err := logjson.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				whole = string(j)
			}
			if res.Truncated == nil || res.Truncated.Bytes != len(whole) || r.kept[res.Truncated.Handle] != whole {
				t.Errorf("%s: %+v does not keep the whole", name, res.Truncated)
			}
			head, rest, _ := strings.Cut(text, "\n[… ")
			note, tail, _ := strings.Cut(rest, " …]\n")
			if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(head) < 16_000 || len(tail) < 16_000 {
				t.Errorf("%s: head of %d and tail of %d bytes", name, len(head), len(tail))
			}
			if want := fmt.Sprintf("%d of %d bytes left out; the whole is kept as %s", len(whole)-len(head)-len(tail), len(whole), res.Truncated.Handle); note != want {
				t.Errorf("%s: %q, want %q", name, note, want)
			}
			if !res.OK {
				t.Errorf("%s: a long result is a good one: %+v", name, res.Kind)
			}
		}
	}
}

func TestExactlyTheBoundIsNotCut(t *testing.T) {
	t.Parallel()
	b, r, _ := newBus(t, tool.Contract{}, gives(strings.Repeat("x", tool.MaxModelBytes)))
	if res := dispatch(t, b, r, nil); res.Truncated != nil || len(res.Model.(string)) != tool.MaxModelBytes {
		t.Errorf("%+v", res.Truncated)
	}
}

func TestAResultIsValidTextWithoutSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value     any
		want      any
		sanitised bool
		raw       bool
	}{
		"plain":                   {"fine", "fine", false, false},
		"nothing":                 {nil, "", false, false},
		"false":                   {false, false, false, false},
		"NUL":                     {"a\x00b", "a\uFFFDb", true, true},
		"invalid UTF-8":           {"a\xff\xfeb", "a\uFFFDb", true, true},
		"half a character":        {"a\xe2\x82", "a\uFFFD", true, true},
		"a secret":                {"key=" + canary + "!", "key=[redacted:KEY]!", false, false},
		"a secret in bytes":       {"\xff" + canary, "\uFFFD[redacted:KEY]", true, false},
		"in a value":              {map[string]any{"l": []any{"x\x00", canary}, canary: int64(1)}, map[string]any{"l": []any{"x\uFFFD", "[redacted:KEY]"}, "[redacted:KEY]": int64(1)}, true, false},
		"a number of many digits": {int64(9007199254740993), int64(9007199254740993), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, r, _ := newBus(t, tool.Contract{}, gives(c.value))
			res := dispatch(t, b, r, nil)
			got, _ := logjson.Marshal(res.Model)
			want, _ := logjson.Marshal(c.want)
			if string(got) != string(want) || res.Sanitised != c.sanitised || !res.OK {
				t.Errorf("got %s %+v, want %s", got, res, want)
			}
			if (res.Raw != "") != c.raw || c.raw && r.kept[res.Raw] != c.value {
				t.Errorf("raw %q kept as %q", res.Raw, r.kept[res.Raw])
			}
			for _, kept := range r.kept {
				if strings.Contains(kept, canary) {
					t.Error("what is kept holds the canary")
				}
			}
		})
	}
}
