package main

import (
	"strings"
	"unicode"
)

// oneLine makes text of a model or a tool fit to stand in a line of ours: control
// characters, which a terminal would obey, are shown and not sent.
func oneLine(s string) string {
	if strings.IndexFunc(s, unprintable) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString("\\n")
		case r == '\t':
			b.WriteByte(' ')
		case unprintable(r):
			b.WriteRune('\uFFFD')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unprintable are control characters and the marks that turn the direction of text.
func unprintable(r rune) bool {
	return unicode.IsControl(r) || r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}
