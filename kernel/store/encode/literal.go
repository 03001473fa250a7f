package encode

import (
	"bytes"

	"ashlar/kernel/event"
)

// InlineBytes is the largest string, as log JSON with its quotes, that stands in the
// body that says it. A longer one is kept once, by its hash, whoever says it.
const InlineBytes = 256

// Literal is a string in a body, quotes included: Bytes[Start:End].
type Literal struct {
	Start, End int
	Hash       event.Hash
}

// Cut finds the strings of a body that are longer than InlineBytes. A tool's
// output is in the journal, in its tool_result and in every request after it: as
// a string it is the same in all of them.
func Cut(b []byte) (long []Literal) {
	if len(b) <= InlineBytes {
		return nil
	}
	for at := 0; ; {
		open := bytes.IndexByte(b[at:], '"')
		if open < 0 {
			return long
		}
		start := at + open
		end := closing(b, start+1)
		if end < 0 {
			return long // no log JSON; it stays whole
		}
		if end-start > InlineBytes {
			long = append(long, Literal{Start: start, End: end, Hash: event.HashOf(b[start:end])})
		}
		at = end
	}
}

// closing gives the index after the quote that ends a string whose text begins
// at i; -1 when there is none.
func closing(b []byte, i int) int {
	for {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return -1
		}
		quote += i
		slashes := 0
		for k := quote - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return quote + 1
		}
		i = quote + 1
	}
}
