package redact

import (
	"io"
)

// Writer redacts a stream whose chunks may cut a secret in two: it holds back
// the tail that could still become one. Close writes what is held. Bytes that are
// no secret pass as they are, text or not. It is for one goroutine at a time.
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
	out := w.r.exact(text[:len(text)-keep])
	w.held = text[len(text)-keep:]
	if out == "" {
		return len(p), nil
	}
	if _, err := io.WriteString(w.w, out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes what is held; the end of the stream shows whether it holds a secret.
func (w *Writer) Close() error {
	held := w.held
	w.held = ""
	if held == "" {
		return nil
	}
	_, err := io.WriteString(w.w, w.r.exact(held))
	return err
}

// exact replaces every known secret and leaves all other bytes alone.
func (r *Redactor) exact(s string) string {
	r.mu.RLock()
	rep := r.replacer
	r.mu.RUnlock()
	if rep == nil {
		return s
	}
	return rep.Replace(s)
}

// partial gives the length of the tail of text that must wait for more: it begins
// where a secret may have begun that is not complete, or that a longer one may yet
// contain. It reads as the replacer does, from left to right, so that it never cuts
// a secret which is complete already.
func (r *Redactor) partial(text string) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := 0; i < len(text); {
		forms := r.byFirst[text[i]]
		step := 1
		for _, secret := range forms { // the longest first
			rest := text[i:]
			if len(rest) < len(secret) {
				if secret[:len(rest)] == rest {
					return len(rest)
				}
				continue
			}
			if rest[:len(secret)] == secret {
				step = len(secret)
				break
			}
		}
		i += step
	}
	return 0
}
