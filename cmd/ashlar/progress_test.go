package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
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
		s := newProgress(p, ashlar.Bounds{})
		s.Fact(ashlar.Fact{Type: "run_finished", Run: "r", Fields: map[string]any{"status": "failed"}})
		s.Close(time.Minute)
		if got := strings.Contains(out.String(), "\x1b["); got != want {
			t.Errorf("%s: coloured %v, want %v: %q", environ, got, want, out.String())
		}
	}
}

// What a model says is seen as it comes, in one line that is gone when its beat ends.
func TestTextIsSeenAsItComes(t *testing.T) {
	t.Parallel()
	delta := func(beat, text string) ashlar.Fact {
		return ashlar.Fact{Type: "assistant_delta", Beat: beat, Fields: map[string]any{"text": text}}
	}
	for _, c := range []struct {
		name, term string
		tty        bool
		want       string
	}{
		{"terminal", "xterm", true, "beat 1 · 0 in, 0 out · 0s\n"}, {"dumb", "dumb", true, "beat 1 · 0 in, 0 out · 0s\n"}, {"pipe", "xterm", false, "beat 1 · 0 in, 0 out · 0s\n"},
	} {
		w := &terminal{}
		s := newProgress(&process{stderr: w, tty: c.tty, width: 12, environ: []string{"TERM=" + c.term, "NO_COLOR=1"}}, ashlar.Bounds{})
		s.Fact(ashlar.Fact{Type: "beat_started", Beat: "a"})
		s.Fact(delta("a", "first\nline, "))
		s.Fact(delta("b", "of another"))
		s.Fact(delta("a", "\x1b[31mand 世界 more\x07"))
		if c.name == "terminal" {
			w.wait(t, "世界 more")
		}
		s.Fact(ashlar.Fact{Type: "beat_finished", Beat: "a", Fields: map[string]any{"outcome": "ok"}})
		if !s.Close(time.Minute) {
			t.Fatal("it did not end")
		}
		got := w.String()
		if c.name != "terminal" {
			if strings.ContainsAny(got, "\x1b\r") || strings.Contains(got, "first") {
				t.Errorf("%s: %q", c.name, got)
			}
			continue
		}
		if strings.Contains(strings.ReplaceAll(got, eraseLine, ""), "\x1b") || strings.Contains(got, "another") || strings.ContainsRune(got, 7) {
			t.Errorf("%q", got)
		}
		rest := got[strings.LastIndex(got, eraseLine)+len(eraseLine):]
		if !strings.HasPrefix(rest, "beat 1") {
			t.Errorf("what stays is %q", rest)
		}
	}
}

// terminal keeps what is written to it.
type terminal struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (w *terminal) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *terminal) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (w *terminal) wait(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !strings.Contains(w.String(), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q does not come: %q", text, w.String())
		}
	}
}

// stuck is a terminal that stands still until it is released.
type stuck struct {
	buf     bytes.Buffer
	release chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.release
	return s.buf.Write(b)
}

func TestProgressDoesNotWaitForItsTerminal(t *testing.T) {
	t.Parallel()
	w := &stuck{release: make(chan struct{})}
	s := newProgress(&process{stderr: w, width: 80}, ashlar.Bounds{Tokens: 100, ToolCalls: 9})
	s.Fact(ashlar.Fact{Type: "beat_started", Beat: "b"})
	for range 10 * maxLines {
		s.Fact(ashlar.Fact{Type: "notice", Fields: map[string]any{"message": "m"}})
	}
	s.Fact(ashlar.Fact{Type: "usage", Fields: map[string]any{"input": int64(3), "output": int64(4)}})
	for _, kind := range []any{"denied", "budget", "validation", "failed", nil} {
		s.Fact(ashlar.Fact{Type: "tool_result", Beat: "b", Fields: map[string]any{"kind": kind}})
	}
	s.Fact(ashlar.Fact{Type: "run_finished", Run: "r", Fields: map[string]any{"status": "completed"}})
	if s.Close(time.Millisecond) {
		t.Error("closed, and nothing can have been written")
	}
	close(w.release)
	if !s.Close(time.Minute) {
		t.Fatal("the lines were not written")
	}
	if got := w.buf.String(); !strings.HasSuffix(got, "completed · 1 beats · 7 tokens · 2 tool calls · 0s · run r\n") || strings.Count(got, "\n") > maxLines+4 {
		t.Errorf("%d lines, the last: %q", strings.Count(got, "\n"), got[max(0, len(got)-200):])
	}
}

func TestMoneyIsWrittenInFull(t *testing.T) {
	t.Parallel()
	for micros, want := range map[int64]string{0: "$0", 1: "$0.000001", 140: "$0.00014", 1_500_000: "$1.5", 100_000_000: "$100", 1_234_567_891: "$1234.567891"} {
		if got := usd(micros); got != want {
			t.Errorf("%d is %s, want %s", micros, got, want)
		}
	}
}
