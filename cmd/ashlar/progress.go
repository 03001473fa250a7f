package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"charm.land/lipgloss/v2"

	"ashlar"
)

// maxLines is how many lines wait for a slow terminal; what comes then is dropped.
const maxLines = 256

// progress prints a line for each beat: model, tokens, tool calls, elapsed, and
// what is left of the run's bounds. On a terminal it is coloured, and what a model says
// is seen as it comes (live). It writes from a
// goroutine of its own, so that a terminal that stands still does not stop the run.
// Close it.
type progress struct {
	w      io.Writer
	color  bool
	cut    bool // lines are cut to the width: it is a terminal's
	width  int
	bounds ashlar.Bounds

	mu    sync.Mutex
	start time.Time
	n     int
	beats map[string]*beatLine
	used  struct{ beats, tokens, tools, cost int64 }

	live    live
	showing bool // text is shown as it comes: a terminal that can erase a line

	lines  []string
	lost   int // lines that had no room
	closed bool
	wake   *sync.Cond // of mu: lines or closed changed
	done   chan struct{}
}

type beatLine struct {
	n      int
	model  string
	start  time.Time
	in     int64
	out    int64
	tools  []string
	failed int
}

func newProgress(p *process, b ashlar.Bounds) *progress {
	color := p.tty && p.getenv("NO_COLOR") == "" && p.getenv("TERM") != "dumb"
	s := &progress{w: p.stderr, color: color, showing: p.tty && p.getenv("TERM") != "dumb", cut: p.tty, width: p.width, bounds: b, beats: map[string]*beatLine{}, done: make(chan struct{})}
	s.wake = sync.NewCond(&s.mu)
	go s.drain()
	return s
}

func (p *progress) drain() {
	defer close(p.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for len(p.lines) == 0 && !p.live.dirty && !p.closed {
			p.wake.Wait()
		}
		var text string
		switch {
		case len(p.lines) > 0:
			text = p.live.erase()
			if p.lost > 0 {
				text += fmt.Sprintf("notice: %d lines of progress had no room\n", p.lost)
				p.lost = 0
			}
			text += p.lines[0]
			p.lines = p.lines[1:]
		case p.closed && !p.live.drawn:
			return
		case p.closed:
			text = p.live.erase()
		default:
			text = p.live.draw(p.width, func(s string) string { return p.paint("2", s) })
		}
		p.mu.Unlock()
		_, err := io.WriteString(p.w, text)
		p.mu.Lock()
		if err != nil {
			p.closed, p.lines, p.live = true, nil, live{} // nobody reads
		}
	}
}

// Close writes what is queued, for at most so long, and reports whether all was
// written. A writer that hangs keeps its goroutine until it returns.
func (p *progress) Close(limit time.Duration) bool {
	p.mu.Lock()
	p.closed = true
	p.wake.Signal()
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// queue hands a line to the writing goroutine; the caller holds mu.
func (p *progress) queue(line string, last bool) {
	switch {
	case p.closed:
	case len(p.lines) >= maxLines && !last:
		p.lost++
	default:
		p.lines = append(p.lines, line+"\n")
		p.wake.Signal()
	}
}

// Fact implements ashlar.Sink.
func (p *progress) Fact(f ashlar.Fact) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch f.Type {
	case "run_started":
		p.start = f.At
	case "beat_started":
		p.n++
		p.used.beats++
		p.beats[f.Beat] = &beatLine{n: p.n, model: str(f.Fields["model"]), start: f.At}
	case "usage":
		in := num(f.Fields["input"]) + num(f.Fields["cache_read"]) + num(f.Fields["cache_creation"])
		out := num(f.Fields["output"])
		p.used.tokens += in + out // also of a call outside a beat
		p.used.cost += num(f.Fields["cost"])
		if b := p.beats[f.Beat]; b != nil {
			b.in += in
			b.out += out
		}
	case "tool_result":
		switch str(f.Fields["kind"]) {
		case "denied", "budget", "validation": // refused before it ran: the bound was not charged
		default:
			p.used.tools++
		}
		if b := p.beats[f.Beat]; b != nil {
			b.tools = append(b.tools, str(f.Fields["tool"]))
			if ok, _ := f.Fields["ok"].(bool); !ok {
				b.failed++
			}
		}
	case "assistant_delta", "reasoning_delta":
		if text, _ := f.Fields["text"].(string); p.showing {
			p.live.say(f.Beat, text)
			p.wake.Signal()
		}
	case "beat_finished":
		p.live.over(f.Beat)
		if b := p.beats[f.Beat]; b != nil {
			delete(p.beats, f.Beat)
			p.line(b, f)
		}
	case "notice":
		p.queue("notice: "+str(f.Fields["message"]), false)
	case "run_finished":
		p.last(f)
	}
}

func (p *progress) line(b *beatLine, f ashlar.Fact) {
	parts := []string{p.paint("36", fmt.Sprintf("beat %d", b.n))}
	if b.model != "" {
		parts = append(parts, b.model)
	}
	parts = append(parts, fmt.Sprintf("%d in, %d out", b.in, b.out))
	if len(b.tools) > 0 {
		text := toolList(b.tools, p.width)
		if b.failed > 0 {
			text += fmt.Sprintf(" (%d failed)", b.failed)
		}
		parts = append(parts, text)
	}
	if outcome := str(f.Fields["outcome"]); outcome != "ok" {
		parts = append(parts, p.paint("31", outcome))
	}
	parts = append(parts, round(f.At.Sub(b.start)))
	if left := p.left(f.At); left != "" {
		parts = append(parts, p.paint("2", left))
	}
	p.print(strings.Join(parts, " · "), false)
}

// toolList names the tools of a beat, those called in a row once, in at most width
// columns; what has no room is counted.
func toolList(tools []string, width int) string {
	var text string
	for i := 0; i < len(tools); {
		n := 1
		for i+n < len(tools) && tools[i+n] == tools[i] {
			n++
		}
		item := tools[i]
		if n > 1 {
			item += fmt.Sprintf(" ×%d", n)
		}
		if i > 0 {
			item = ", " + item
		}
		const room = len(", +1000000 more")
		if lipgloss.Width(text)+lipgloss.Width(item) > width-room {
			more := fmt.Sprintf("+%d more", len(tools)-i)
			if i == 0 {
				return more
			}
			return text + ", " + more
		}
		text += item
		i += n
	}
	return text
}

// left says what remains of each bound that was given.
func (p *progress) left(now time.Time) string {
	var parts []string
	add := func(bound, used int64, what string) {
		if bound > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", max(0, bound-used), what))
		}
	}
	add(p.bounds.Beats, p.used.beats, "beats")
	add(p.bounds.Tokens, p.used.tokens, "tokens")
	if c := p.bounds.Cost; c > 0 {
		parts = append(parts, usd(max(0, c-p.used.cost)))
	}
	add(p.bounds.ToolCalls, p.used.tools, "tool calls")
	if d := p.bounds.Deadline; d > 0 {
		parts = append(parts, round(max(0, d-now.Sub(p.start))))
	}
	if len(parts) == 0 {
		return ""
	}
	return "left: " + strings.Join(parts, ", ")
}

func (p *progress) last(f ashlar.Fact) {
	status := str(f.Fields["status"])
	if p.n == 0 {
		// A block that called no model has nothing to report, but where to read why.
		if status == "failed" || status == "cancelled" {
			p.print(p.paint("1", status)+" · run "+f.Run, true)
		}
		return
	}
	secs, _ := f.Fields["elapsed_s"].(float64)
	parts := []string{
		p.paint("1", status), fmt.Sprintf("%d beats", p.n), fmt.Sprintf("%d tokens", p.used.tokens),
		fmt.Sprintf("%d tool calls", p.used.tools),
	}
	if p.used.cost > 0 {
		parts = append(parts, usd(p.used.cost))
	}
	parts = append(parts, round(time.Duration(secs*float64(time.Second))), "run "+f.Run)
	p.print(strings.Join(parts, " · "), true)
}

// print queues a line, cut to the terminal's width, never inside a character.
func (p *progress) print(line string, last bool) {
	if p.cut && lipgloss.Width(line) > p.width {
		line = lipgloss.NewStyle().MaxWidth(p.width).Render(line)
	}
	p.queue(line, last)
}

func (p *progress) paint(code, text string) string {
	if !p.color {
		return text
	}
	style := lipgloss.NewStyle()
	switch code {
	case "1":
		style = style.Bold(true)
	case "2":
		style = style.Faint(true)
	default:
		style = style.Foreground(lipgloss.Color(map[string]string{"31": "1", "36": "6"}[code]))
	}
	return style.Render(text)
}

func round(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// usd writes micro-USD, without zeros at the end.
func usd(micros int64) string {
	return "$" + strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6), "0"), ".")
}

// str is a text field, fit to stand in a line.
func str(v any) string { s, _ := v.(string); return oneLine(s) }

func num(v any) int64 { n, _ := v.(int64); return n }
