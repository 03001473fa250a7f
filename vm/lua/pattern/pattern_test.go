package pattern_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/pm"

	"ashlar/vm/lua/pattern"
)

// found is a match in a comparable form: start, end, then the captures.
func found(src, pat string, init int) (out []int, ok bool, err error) {
	m := pattern.New(src, pat, nil)
	start, end, ok, err := m.Next(init)
	if err != nil || !ok {
		return nil, false, err
	}
	caps, err := m.Captures()
	if err != nil {
		return nil, false, err
	}
	out = []int{start, end}
	for _, c := range caps {
		if c.Position {
			out = append(out, c.Start+1, c.Start+1)
		} else {
			out = append(out, c.Start, c.End)
		}
	}
	return out, true, nil
}

// foundByOracle is what gopher-lua's matcher says.
func foundByOracle(src, pat string, init int) (out []int, ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("panic")
		}
	}()
	ms, err := pm.Find(pat, []byte(src), init, 1)
	if err != nil || len(ms) == 0 {
		return nil, false, err
	}
	for i := 0; i < ms[0].CaptureLength(); i++ {
		out = append(out, ms[0].Capture(i))
	}
	return out, true, nil
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestMatchesAsGopherLuaDoes(t *testing.T) {
	for _, c := range []struct{ src, pat string }{
		{"hello world", "o w"}, {"hello", "l+"}, {"hello", "^hel"}, {"hello", "lo$"}, {"hello", "(h)(.)"},
		{"key = value", "(%w+)%s*=%s*(%w+)"}, {"  trim  ", "^%s*(.-)%s*$"}, {"f(a(b)c)d", "%b()"},
		{"aXbX", "(.)X%1"}, {"abab", "(ab)%1"}, {"x", "()x()"}, {"2026-11-30", "(%d+)-(%d+)-(%d+)"},
		{"[tag]", "%[(.-)%]"}, {"a.b", "%."}, {"a-b", "[a%-]+"}, {"]x", "[]]"}, {"^", "[%^]"}, {"a^", "[^a]"},
		{"", ""}, {"", "a*"}, {"abc", "b-"}, {"aaa", "a-$"}, {"0x1F", "%x+"}, {"\x00a", "%z"}, {"a\nb", ".b"},
		{"THE (quick) fox", "%((%a+)%)"}, {"a$a", "$."}, {"aaab", "a?a?a?b"}, {"-+*", "[+*-]+"},
	} {
		got, _, err := found(c.src, c.pat, 0)
		want, _, werr := foundByOracle(c.src, c.pat, 0)
		if err != nil || werr != nil || !equal(got, want) {
			t.Errorf("%q in %q: got %v (%v), want %v (%v)", c.pat, c.src, got, err, want, werr)
		}
	}
}

func TestRandomPatternsMatchAsGopherLuaDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	items := []string{"a", "b", "%a", "%d", ".", "[ab]", "[^a]", "[a-c]", "%s"}
	suffixes := []string{"", "", "", "*", "+", "-", "?"}
	for range 20_000 {
		var pat, src strings.Builder
		open := 0
		for range 1 + r.IntN(5) {
			if r.IntN(5) == 0 {
				pat.WriteString("(")
				open++
			}
			pat.WriteString(items[r.IntN(len(items))] + suffixes[r.IntN(len(suffixes))])
			if open > 0 && r.IntN(2) == 0 {
				pat.WriteString(")")
				open--
			}
		}
		pat.WriteString(strings.Repeat(")", open))
		for range r.IntN(10) {
			src.WriteByte("abc1 "[r.IntN(5)])
		}
		got, ok, err := found(src.String(), pat.String(), 0)
		want, wok, werr := foundByOracle(src.String(), pat.String(), 0)
		if werr != nil {
			continue
		}
		if err != nil || ok != wok || !equal(got, want) {
			t.Fatalf("%q in %q: got %v %v (%v), want %v %v", pat.String(), src.String(), got, ok, err, want, wok)
		}
	}
}

func TestMalformedPatternsAreErrors(t *testing.T) {
	for pat, want := range map[string]string{
		"%":                           "ends with '%'",
		"[a":                          "missing ']'",
		"[%":                          "missing ']'",
		"(a":                          "unfinished capture",
		"a)":                          "invalid pattern capture",
		"%1":                          "invalid capture index",
		"%b":                          "unbalanced",
		"%f":                          "missing '['",
		strings.Repeat("()", 40):      "too many captures",
		strings.Repeat("a?", 100_000): "too complex",
	} {
		m := pattern.New(strings.Repeat("a", 100_000), pat, nil)
		_, _, ok, err := m.Next(0)
		if err == nil && ok {
			_, err = m.Captures()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: got %v, want %q", pat, err, want)
		}
	}
}

func TestPollEndsAMatch(t *testing.T) {
	stop := errors.New("stop")
	polls := 0
	m := pattern.New(strings.Repeat("a", 60), strings.Repeat("a?", 60)+strings.Repeat("a", 60)+"b", func() error {
		if polls++; polls > 3 {
			return stop
		}
		return nil
	})
	if _, _, _, err := m.Next(0); !errors.Is(err, stop) {
		t.Errorf("ended with %v, want the poll's error", err)
	}
}

func FuzzPattern(f *testing.F) {
	f.Add("hello", "(h)%1[a-z]*$")
	f.Add("a(b)c", "%b()%f[%w]")
	f.Fuzz(func(t *testing.T, src, pat string) {
		polls := 0
		m := pattern.New(src, pat, func() error {
			if polls++; polls > 100 {
				return errors.New("enough")
			}
			return nil
		})
		if start, end, ok, err := m.Next(0); err == nil && ok {
			if start < 0 || start > end || end > len(src) {
				t.Fatalf("match [%d,%d) in %d bytes", start, end, len(src))
			}
			_, _ = m.Captures()
		}
	})
}
