package main

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// live is the line at the bottom of a terminal that shows what a model is saying: the
// end of the text of one beat, as it comes. It is gone when the beat's own line is
// printed, so nothing stands there twice. Text of a model is not trusted: no control
// character of it reaches the terminal.
type live struct {
	beat  string // whose text it is; "" where nobody speaks
	text  string // its end, one line
	dirty bool   // text changed since it was drawn
	drawn bool   // it stands on the terminal now
}

// eraseLine takes the line away that the cursor is in.
const eraseLine = "\r\x1b[2K"

// keepBytes is how much of the text is kept: more than a terminal is wide.
const keepBytes = 4096

// say adds a piece. While one beat speaks, others that run beside it do not.
func (l *live) say(beat, piece string) {
	if l.beat == "" {
		l.beat, l.text = beat, ""
	}
	if l.beat != beat || piece == "" {
		return
	}
	l.text += strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || !unicode.IsPrint(r) && r != ' ':
			return -1
		}
		return r
	}, piece)
	if len(l.text) > 2*keepBytes {
		l.text = strings.ToValidUTF8(l.text[len(l.text)-keepBytes:], "")
	}
	l.dirty = true
}

// over ends the text of a beat.
func (l *live) over(beat string) {
	if l.beat == beat {
		l.beat, l.text, l.dirty = "", "", l.drawn
	}
}

// draw gives what to write so that the line shows the newest text, in at most width
// columns.
func (l *live) draw(width int, paint func(string) string) string {
	out := l.erase()
	l.dirty = false
	if l.text == "" {
		return out
	}
	l.drawn = true
	return out + paint(tail(l.text, width-1))
}

// erase gives what to write so that the line is free.
func (l *live) erase() string {
	if !l.drawn {
		return ""
	}
	l.drawn, l.dirty = false, true
	return eraseLine
}

// tail is the end of a text that fits into so many columns, with a mark where it was
// cut.
func tail(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	from, have := len(runes), 1 // the mark
	for from > 0 {
		w := lipgloss.Width(string(runes[from-1]))
		if have+w > width {
			break
		}
		have += w
		from--
	}
	return "…" + string(runes[from:])
}
