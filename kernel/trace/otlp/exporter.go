package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// maxReply is how much of a collector's answer is read, in bytes.
const maxReply = 64 << 10

// Exporter sends spans. It implements the SDK's SpanExporter and fails towards no one:
// Delivered and Failure say what came of it. Stop it, then Shutdown is called once.
type Exporter struct {
	config Config
	client *http.Client
	life   context.Context // ends with Stop
	stop   context.CancelFunc
	done   chan struct{} // closed when the SDK asks for nothing more

	mu        sync.Mutex
	delivered int64
	failure   string
	ended     bool
}

// New makes an exporter with a client of its own.
func New(c Config) *Exporter {
	e := &Exporter{config: c, done: make(chan struct{})}
	e.life, e.stop = context.WithCancel(context.Background())
	e.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1},
		// Headers hold a credential, which belongs to the configured place alone.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e
}

// ExportSpans implements the SDK's SpanExporter. It gives no error: the SDK would
// print it.
func (e *Exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	taken, err := e.send(ctx, spans)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.delivered += taken
	if err != nil && e.failure == "" {
		e.failure = err.Error()
	}
	return nil
}

func (e *Exporter) send(ctx context.Context, spans []sdk.ReadOnlySpan) (taken int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	body, err := encode(spans)
	if err != nil {
		return 0, fmt.Errorf("the spans have no JSON: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.config.URL, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the endpoint is no URL")
	}
	req.Header = e.config.Headers.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := e.client.Do(req)
	if err != nil {
		return 0, e.unreachable(ctx, err)
	}
	defer res.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return 0, fmt.Errorf("the collector answered with status %d", res.StatusCode)
	}
	if err != nil {
		return 0, e.unreachable(ctx, err)
	}
	rejected := rejectedOf(reply, int64(len(spans)))
	if rejected > 0 {
		err = fmt.Errorf("the collector rejected %d of %d spans", rejected, len(spans))
	}
	return int64(len(spans)) - rejected, err
}

// unreachable says what went wrong on the way, without the URL and what the other side
// may have sent.
func (e *Exporter) unreachable(ctx context.Context, err error) error {
	var op *net.OpError
	switch {
	case e.life.Err() != nil:
		return errors.New("the run ended before the collector answered")
	case ctx.Err() != nil:
		return fmt.Errorf("the collector did not answer within %s", e.config.Timeout)
	case errors.As(err, &op):
		return fmt.Errorf("the collector cannot be reached: %w", op.Err)
	}
	return errors.New("the collector broke the connection off")
}

// rejectedOf reads a partial success.
func rejectedOf(reply []byte, most int64) int64 {
	var r struct {
		Partial struct {
			Rejected json.RawMessage `json:"rejectedSpans"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(reply, &r) != nil {
		return 0
	}
	n, err := strconv.ParseInt(string(bytes.Trim(r.Partial.Rejected, `"`)), 10, 64)
	if err != nil {
		return 0
	}
	return min(max(n, 0), most)
}

// Shutdown implements the SDK's SpanExporter: nothing more is asked for.
func (e *Exporter) Shutdown(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.ended = true
		e.client.CloseIdleConnections()
		close(e.done)
	}
	return nil
}

// Stop ends requests that are under way and lets none begin. What waits for them
// returns at once.
func (e *Exporter) Stop() { e.stop() }

// Done is closed after Shutdown.
func (e *Exporter) Done() <-chan struct{} { return e.done }

// Delivered counts the spans that a collector took.
func (e *Exporter) Delivered() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.delivered
}

// Failure says what went wrong first; "" where nothing did.
func (e *Exporter) Failure() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}
