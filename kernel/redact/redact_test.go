package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestExactValuesAreReplacedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	r := New()
	r.Add("A_KEY", "sk-canary-123456")
	r.Add("LONGER", "sk-canary-123456789")
	r.Add("QUOTED", "with\"quote\\and\nline")
	r.Add("SHORT", "true")
	for in, want := range map[string]string{
		"x sk-canary-123456 y":                 "x [redacted:A_KEY] y",
		"sk-canary-123456789":                  "[redacted:LONGER]",
		`{"v":"with\"quote\\and\nline"}`:       `{"v":"[redacted:QUOTED]"}`,
		"true":                                 "true",
		"sk-canary-123456sk-canary-123456789!": "[redacted:A_KEY][redacted:LONGER]!",
		"\xff sk-canary-123456":                "\uFFFD [redacted:A_KEY]",
	} {
		if got := r.String(in); got != want {
			t.Errorf("String(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	t.Parallel()
	r := New()
	secret := "päss\"wo\\rd\t<&>"
	r.Add("S", secret)
	b, err := json.Marshal(map[string]string{"a": "before " + secret + " after"})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := json.Unmarshal(r.Bytes(b), &got); err != nil {
		t.Fatal(err)
	}
	if got["a"] != "before [redacted:S] after" {
		t.Errorf("got %q", got["a"])
	}
}

func TestWriterHoldsBackAHalfSecret(t *testing.T) {
	t.Parallel()
	secret := "abcabcabd-secret"
	text := "say " + strings.Repeat("abc", 5) + secret + " and abcabc end abcab"
	for size := 1; size < 9; size++ {
		r := New()
		r.Add("S", secret)
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := strings.ReplaceAll(text, secret, "[redacted:S]"); out.String() != want {
			t.Errorf("chunks of %d: %q, want %q", size, out.String(), want)
		}
	}
}

func TestWriterReadsFromLeftToRight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chunks []string
		want   string
	}{
		"a complete secret whose end begins another": {[]string{"x abcdef", "zz"}, "x [redacted:A]zz"},
		"the other follows all the same":             {[]string{"abcd", "efefghij"}, "[redacted:A][redacted:B]"},
		"a longer secret that begins like a shorter": {[]string{"abcdef", "-long!"}, "[redacted:C]!"},
		"the shorter at the end":                     {[]string{"abcdef-lo"}, "[redacted:A]-lo"},
		"a character in two halves":                  {[]string{"\xc3", "\xa9 abcdef"}, "\u00e9 [redacted:A]"},
		"bytes that are no text":                     {[]string{"\xff\x00", "\xfeabcdef\xff"}, "\xff\x00\xfe[redacted:A]\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := New()
			r.Add("A", "abcdef")
			r.Add("B", "efghij")
			r.Add("C", "abcdef-long")
			var out bytes.Buffer
			w := r.NewWriter(&out)
			for _, chunk := range c.chunks {
				if n, err := w.Write([]byte(chunk)); n != len(chunk) || err != nil {
					t.Fatalf("Write(%q) = %d, %v", chunk, n, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.want {
				t.Errorf("wrote %q, want %q", out.String(), c.want)
			}
		})
	}
}

func TestCredentialNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "ANTHROPIC_API_KEY": true, "GITHUB_TOKEN": true, "DB_PASSWORD": true,
		"npm_config__auth": true, "AWS_SECRET_ACCESS_KEY": true, "MYAPIKEY": true, "ACCESSTOKEN": true,
		"GOOGLE_APPLICATION_CREDENTIALS": true, "SSH_AUTH_SOCK": false, "PATH": false, "HOME": false,
		"SMTP_PASS": true, "BYPASS": false, "MAX_TOKENS": false, "PWD": false,
		"KEYBOARD": false, "MONKEY_ISLAND": false, "TERM": false, "LANG": false, "EDITOR": false,
	} {
		if got := CredentialName(name); got != want {
			t.Errorf("CredentialName(%q) = %v", name, got)
		}
	}
}

// FuzzWriter holds a stream in any pieces to the same bytes at once.
func FuzzWriter(f *testing.F) {
	f.Add("x abcdef-long abcabcdef efghij", uint8(3))
	f.Add("abcdefghij\xff\xc3", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		r := New()
		r.Add("A", "abcdef")
		r.Add("B", "efghij")
		r.Add("C", "abcdef-long")
		r.Add("D", "abcabcabd")
		var out bytes.Buffer
		w := r.NewWriter(&out)
		for rest := text; rest != ""; {
			n := min(int(size%16)+1, len(rest))
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := r.exact(text); out.String() != want {
			t.Errorf("in pieces of %d: %q, want %q", size%16+1, out.String(), want)
		}
	})
}
