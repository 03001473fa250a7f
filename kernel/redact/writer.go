package redact

import (
	"io"
	"strings"
)

// Writer redacts a stream whose chunks may cut a secret in two: it holds back
// the tail that could still become one. Close writes what is held.
type Writer struct {
	r    *Redactor
	w    io.Writer
	held string
}

// NewWriter returns a Writer on w. It does not close w.
func (r *Redactor) NewWriter(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write implements io.Writer; it reports p as written also where its tail is held.
func (w *Writer) Write(p []byte) (int, error) {
	if w.r.Empty() && w.held == "" {
		return w.w.Write(p)
	}
	text := w.held + string(p)
	keep := w.r.partial(text)
	out, tail := w.r.String(text[:len(text)-keep]), text[len(text)-keep:]
	w.held = tail
	if _, err := io.WriteString(w.w, out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is held; it cannot be a whole secret.
func (w *Writer) Close() error {
	held := w.held
	w.held = ""
	_, err := io.WriteString(w.w, w.r.String(held))
	return err
}

// partial gives the length of the longest tail of text that begins a secret and
// does not complete one.
func (r *Redactor) partial(text string) int {
	longest := r.longest()
	r.mu.RLock()
	defer r.mu.RUnlock()
	for n := min(longest-1, len(text)); n > 0; n-- {
		tail := text[len(text)-n:]
		for v := range r.values {
			if len(v) > n && strings.HasPrefix(v, tail) {
				return n
			}
		}
	}
	return 0
}
