package llm

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/config"
	"ashlar/kernel/logjson"
	"ashlar/stdlib/llm/record"
	"ashlar/vm"
)

// Bounds of one call whose options name none.
const (
	DefaultTimeout  = 120 * time.Second // the whole of one attempt
	DefaultProgress = 60 * time.Second  // without any data
	MaxReplyBytes   = 64 << 20
)

// Seam is where model traffic leaves the process, or is answered from a recording.
type Seam struct {
	Client *http.Client
	Record *record.Recorder // may be nil
	Player *record.Player   // set: nothing leaves
}

// Sender sends model calls for one run.
type Sender struct {
	Directory *Directory
	Seam      Seam
	Now       func() time.Time
	Sleep     func(ctx context.Context, d time.Duration) error
	Pool      Pool  // nil: nothing is bounded
	Beats     Beats // nil: there are none
	// Price gives what a model costs; nil knows none.
	Price func(provider, model string) (config.Price, bool)
	// Usage is told what a call took that no beat reports; may be nil.
	Usage func(session, beat string, fields map[string]any)
	// Delta sees each piece of text as it comes, for the event stream; may be nil.
	Delta func(session, beat, kind, text string)
	// Partial sees the text of a reply that was cut off; may be nil.
	Partial func(session, beat string, fields map[string]any)

	told    onces          // the defaults that a session was told
	refused refusals       // what servers do not know
	known   known          // what servers said of themselves
	drains  sync.WaitGroup // ends of streams that are still being read
}

// Close waits for what is left of the calls' connections, a moment at most. No call
// may be made during it or later.
func (s *Sender) Close() { s.drains.Wait() }

// Retry is one attempt that is going to be repeated: the fields of llm_retry.
type Retry struct {
	Attempt int
	Kind    string
	Status  int
	Wait    time.Duration
}

// Call is one model call.
type Call struct {
	Ask      Ask
	Path     string // below the base URL; "" is the wire's own
	Headers  map[string]string
	Body     map[string]any
	Timeout  time.Duration
	Progress time.Duration
	Retries  int
	Session  string // ids for Delta; "" outside a beat
	Beat     string
	Task     *vm.Task // that makes the call; nil outside a script
	// Step notes what the call does to the run's budget and beats, which a replay does
	// again; nil notes nothing.
	Step func(name string, values ...vm.Value)
	// OnDelta is the script's own callback; its error ends the call.
	OnDelta func(ctx context.Context, kind, text string) error
	// OnPartial records what had come of a reply that was cut off; may be nil.
	OnPartial func(ctx context.Context, p Partial) error
	// OnRetry commits the record of a retry before it leaves.
	OnRetry func(ctx context.Context, r Retry) error
	// OnFallback commits the record of a request that goes on without something.
	OnFallback func(ctx context.Context, f Fallback) error
}

// Reply is the provider's answer, whatever its status.
type Reply struct {
	Status  int
	Headers map[string]any
	Body    any // the non-streamed JSON; text where it is none
	Notes   map[string]any
	Sent    int // bytes of the request's body

	wrote bool // an attempt may have reached the server
	whole bool // the stream has said its last word, and is not at its end
}

// Send makes one call. An HTTP status is a reply; kinds of the errors: network,
// timeout, cancelled, limit, not_found (a recording without the answer), refused
// (the run's budget does not cover it, nothing was sent), and those of Resolve.
func (s *Sender) Send(ctx context.Context, c Call) (Reply, error) {
	target, err := s.Directory.Resolve(c.Ask)
	if err != nil {
		return Reply{}, err
	}
	if c.Path == "" {
		c.Path = target.wire().path()
	}
	if !below(c.Path) {
		return Reply{}, kernel.Errorf("llm.send", kernel.Validation, "opts.path is %q; it is a path below the base URL, where the key goes", c.Path)
	}
	gone := s.spare(target, c.Body)
	body, err := logjson.Marshal(c.Body)
	if err != nil {
		return Reply{}, err
	}
	hold, body, err := s.reserve(ctx, c, target, body)
	if err != nil {
		return Reply{}, err
	}
	reply, err := s.attempts(ctx, c, target, body, gone)
	if serr := s.settle(ctx, c, target, hold, reply); err == nil {
		err = serr
	}
	return reply, err
}

// attempts sends until there is an answer, or no retry left. gone names what the request
// goes without; a fallback is no retry, and is made once for each thing that is refused.
func (s *Sender) attempts(ctx context.Context, c Call, target Target, body []byte, gone []any) (Reply, error) {
	chance := sha256.Sum256(body)
	pause := pauses()
	wrote := false
	var tried []Fallback
	for attempt := 1; ; attempt++ {
		reply, again, err := s.attempt(ctx, c, target, body)
		wrote = wrote || reply.wrote
		reply.Sent, reply.wrote = len(body), wrote
		if err == nil {
			less, f, err := s.fallback(ctx, c, reply)
			if err != nil {
				return Reply{wrote: wrote}, err
			}
			if f != nil {
				tried, gone, body = append(tried, *f), append(gone, f.Without), less
				attempt--
				continue
			}
			if reply.Status < 300 { // else it was not for the lack of it
				s.refused.add(place(target, c.Body), tried...)
			}
			if len(gone) > 0 {
				reply.Notes["without"] = gone
			}
		}
		if again == nil || attempt > c.Retries || again.Wait > MaxRetryAfter {
			return reply, err
		}
		again.Attempt = attempt
		again.Wait = max(again.Wait, jitter(pause.NextBackOff(), chance[attempt%len(chance)]))
		if c.OnRetry != nil {
			if err := c.OnRetry(ctx, *again); err != nil {
				return Reply{wrote: wrote}, err
			}
		}
		if s.Seam.Player != nil {
			continue // nobody has to be waited for
		}
		if err := s.Sleep(ctx, again.Wait); err != nil {
			return Reply{wrote: wrote}, err
		}
	}
}

// attempt sends once; again is set where it may be sent again.
func (s *Sender) attempt(ctx context.Context, c Call, t Target, body []byte) (Reply, *Retry, error) {
	ctx, w := s.watch(ctx, c)
	over := w.stop
	defer func() { over() }()
	res, tape, wrote, err := s.exchange(ctx, c, t, body)
	if err != nil {
		err = w.explain(ctx, err, t)
		tape.Fail(err, wrote)
		if !wrote && errors.Is(err, kernel.Network) {
			return Reply{}, &Retry{Kind: "transport"}, err
		}
		return Reply{wrote: wrote}, nil, err
	}
	over = func() { res.Body.Close(); w.stop() }
	var said heard
	reply, err := s.read(ctx, c, t, w, &said, res)
	if reply.whole {
		over = func() { s.drain(w, res.Body) }
	}
	reply.wrote = true
	if err != nil {
		err = w.explain(ctx, err, t)
		tape.Fail(err, true)
		s.keep(ctx, c, &said, reply, err)
		return Reply{wrote: true}, nil, err
	}
	s.keep(ctx, c, &said, reply, nil)
	wait, told := retryAfter(res.Header, reply.Body, s.Now())
	if kind := retryKind(reply.Status, reply.Body, told); kind != "" {
		return reply, &Retry{Kind: kind, Status: reply.Status, Wait: wait}, nil
	}
	return reply, nil, nil
}

// exchange sends the request, or asks the recording. wrote reports whether the
// request may have reached the server; tape is nil where nothing is recorded.
func (s *Sender) exchange(ctx context.Context, c Call, t Target, body []byte) (res *http.Response, tape *record.Tape, wrote bool, err error) {
	x := record.Exchange{Provider: t.Provider, Path: c.Path, Body: body}
	if s.Seam.Player != nil {
		res, wrote, err := s.Seam.Player.Answer(x)
		return res, nil, wrote, err
	}
	var sent atomic.Bool // the transport's own goroutine says so
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	stream, _ := c.Body["stream"].(bool)
	if s.Seam.Record != nil {
		tape = s.Seam.Record.Begin(x)
	}
	res, err = t.wire().do(httptrace.WithClientTrace(ctx, trace), s.Seam.Client, request{
		base: t.BaseURL, path: c.Path, key: t.key, headers: c.Headers, body: body, stream: stream,
	})
	if err != nil {
		return nil, tape, sent.Load(), err
	}
	tape.Reply(res)
	return res, tape, true, nil
}
