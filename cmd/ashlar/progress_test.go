package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"ashlar"
)

func TestToolListStaysWithinTheWidth(t *testing.T) {
	t.Parallel()
	many := make([]string, 1000)
	for i := range many {
		many[i] = strings.Repeat("n", i%7+1)
	}
	for _, c := range []struct {
		tools []string
		want  string
	}{
		{[]string{"read_file"}, "read_file"},
		{[]string{"add", "add", "sub", "add"}, "add ×2, sub, add"},
		{[]string{strings.Repeat("x", 100), "y"}, "+2 more"},
		{many, "n, nn, nnn, nnnn, nnnnn, nnnnnn, nnnnnnn, n, nn, nnn, nnnn, nnnnn, +988 more"},
	} {
		if got := toolList(c.tools, 80); got != c.want || utf8.RuneCountInString(got) > 80 {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestADumbTerminalGetsNoColour(t *testing.T) {
	t.Parallel()
	for environ, want := range map[string]bool{"TERM=xterm": true, "TERM=dumb": false, "NO_COLOR=1": false} {
		var out bytes.Buffer
		p := &process{stderr: &out, tty: true, width: 80, environ: []string{environ}}
		newProgress(p, ashlar.Bounds{}).Fact(ashlar.Fact{Type: "run_finished", Run: "r", Fields: map[string]any{"status": "failed"}})
		if got := strings.Contains(out.String(), "\x1b["); got != want {
			t.Errorf("%s: coloured %v, want %v: %q", environ, got, want, out.String())
		}
	}
}
