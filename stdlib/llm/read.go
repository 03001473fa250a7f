package llm

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"ashlar/kernel"
	"ashlar/stdlib/http/sse"
	"ashlar/stdlib/llm/assemble"
	"ashlar/stdlib/llm/record"
)

// watch bounds one attempt: its whole time, and the time without data. It needs no
// goroutine of its own: both are timers that end the context.
type watch struct {
	cancel   context.CancelCauseFunc
	parent   func() bool // stops listening to the caller's context
	whole    *time.Timer
	progress *time.Timer
	pause    time.Duration
}

// Bounds of drain.
const (
	drainWait  = 20 * time.Millisecond
	drainBytes = 64 << 10
)

var (
	errWhole    = errors.New("the whole time of the call passed")
	errProgress = errors.New("no data came in time")
)

func (s *Sender) watch(ctx context.Context, c Call) (context.Context, *watch) {
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w := &watch{cancel: cancel, pause: c.Progress}
	w.parent = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	w.whole = time.AfterFunc(c.Timeout, func() { cancel(errWhole) })
	w.progress = time.AfterFunc(c.Progress, func() { cancel(errProgress) })
	return own, w
}

func (w *watch) moved() { w.progress.Reset(w.pause) }

// held stops the watch on progress while what came is being worked on: a callback
// that takes its time is not the server's silence.
func (w *watch) held() { w.progress.Stop() }

func (w *watch) stop() {
	w.whole.Stop()
	w.progress.Stop()
	w.parent()
	w.cancel(context.Canceled)
}

// explain gives a transport's error its kind and a text without URL parts that
// could hold a secret.
func (w *watch) explain(ctx context.Context, err error, t Target) error {
	const op = "llm.send"
	var own *kernel.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errWhole):
		return kernel.Errorf(op, kernel.Timeout, "%s did not finish within the call's timeout", t.Provider)
	case errors.Is(cause, errProgress):
		return kernel.Errorf(op, kernel.Timeout, "%s sent nothing for %s", t.Provider, w.pause)
	case cause == context.Canceled:
		return kernel.Errorf(op, kernel.Cancelled, "the call was cancelled: %w", cause)
	case cause == context.DeadlineExceeded:
		return kernel.Errorf(op, kernel.Timeout, "the run's deadline passed during the call: %w", cause)
	case cause != nil:
		return cause
	case errors.As(err, &own):
		return err
	}
	// net/http names method and URL first, which may hold more than a message should.
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	return kernel.Errorf(op, kernel.Network, "%s at %s: %v", t.Provider, t.BaseURL, err)
}

// read takes the reply apart: a stream is assembled, anything else is its JSON.
func (s *Sender) read(ctx context.Context, c Call, t Target, w *watch, said *heard, res *http.Response) (Reply, error) {
	reply := Reply{Status: res.StatusCode, Headers: record.Headers(res.Header), Notes: map[string]any{}}
	w.moved()
	body := &io.LimitedReader{R: res.Body, N: MaxReplyBytes + 1}
	if res.StatusCode < 300 && streams(c, res.Header) {
		err := s.stream(ctx, c, t, w, said, body, &reply)
		return reply, err
	}
	b, err := readAll(body, w)
	if err != nil {
		return reply, err
	}
	if len(b) > MaxReplyBytes {
		return reply, tooLong()
	}
	if body, repaired := assemble.Object(b); body != nil {
		if repaired {
			reply.Notes["repaired"] = true
		}
		reply.Body = body
		return reply, nil
	}
	// No JSON: an error page, or a reply that was cut. Only its kind goes on, since a
	// page may hold anything.
	reply.Notes["not_json"] = true
	message := http.StatusText(res.StatusCode) + ": the reply is no JSON"
	switch {
	case res.StatusCode < 300:
		reply.Notes["incomplete"] = "no JSON"
	case res.StatusCode < 400:
		message = http.StatusText(res.StatusCode) + ": a redirect is not followed; name the address that it leads to as base URL"
	}
	reply.Body = map[string]any{"error": map[string]any{"message": message}}
	return reply, nil
}

func tooLong() error {
	return kernel.Errorf("llm.send", kernel.Limit, "the reply is longer than %d bytes", MaxReplyBytes)
}

// streams reports whether a reply is one of server-sent events. Some servers do not
// say so; what was asked for decides, unless they say what else it is.
func streams(c Call, h http.Header) bool {
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if media == "text/event-stream" {
		return true
	}
	asked, _ := c.Body["stream"].(bool)
	return asked && (media == "" || media == "text/plain" || media == "application/octet-stream")
}

func (s *Sender) stream(ctx context.Context, c Call, t Target, w *watch, said *heard, body *io.LimitedReader, reply *Reply) error {
	a := t.wire().assembler(func(kind, text string) error {
		said.add(kind, text)
		if s.Delta != nil && c.Session != "" {
			s.Delta(c.Session, c.Beat, kind, text)
		}
		if c.OnDelta == nil {
			return nil
		}
		if err := c.OnDelta(ctx, kind, text); err != nil && ctx.Err() == nil {
			// The script's own fault, which sending again does not mend.
			return kernel.Errorf("llm.send", kernel.Validation, "on_delta raised: %w", err)
		} else if err != nil {
			return err
		}
		return nil
	})
	events := sse.NewDecoder(body)
	cut := false
	for !a.Done() {
		e, err := events.Next()
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			var own *kernel.Error
			if errors.As(err, &own) {
				return err
			}
			if body.N <= 0 {
				return tooLong()
			}
			cut = err != io.EOF
			break
		}
		if a.Ping([]byte(e.Data)) {
			continue
		}
		w.held()
		if err := a.Add([]byte(e.Data)); err != nil {
			return err
		}
		w.moved()
	}
	reply.whole = a.Done() && s.Seam.Record == nil
	r := a.Result(cut)
	reply.Body = r.Body
	if r.Incomplete != "" {
		reply.Notes["incomplete"] = r.Incomplete
	}
	if len(r.Notes) > 0 {
		reply.Notes["stream"] = r.Notes
	}
	return nil
}

// drain reads the end of a stream that has said its last word, so that the
// connection can be used again. Nobody waits for it but Close: it is cut where a server
// keeps the stream open.
func (s *Sender) drain(w *watch, body io.ReadCloser) {
	w.whole.Stop()
	w.progress.Stop()
	w.parent()
	s.drains.Go(func() {
		defer w.stop()
		defer body.Close()
		t := time.AfterFunc(drainWait, func() { w.cancel(context.Canceled) })
		defer t.Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(body, drainBytes))
	})
}

// readAll reads a body whole; each piece is progress.
func readAll(r io.Reader, w *watch) ([]byte, error) {
	var out []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			w.moved()
			out = append(out, buf[:n]...)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
	}
}
