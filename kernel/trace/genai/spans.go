package genai

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	own "ashlar/kernel/trace"
	"ashlar/kernel/trace/otlp"
)

// Bounds of what waits to be sent.
const (
	MaxQueued  = 2048 // spans; what comes then is dropped and counted
	maxBatch   = 256  // spans of one request
	batchEvery = 2 * time.Second
	maxText    = 1024 // characters of one attribute
	maxName    = 128  // characters of what a span is named after
)

// stopGrace is how long the sender may take to return once its request was broken off.
const stopGrace = 100 * time.Millisecond

// Options say whose spans these are.
type Options struct {
	Identity own.Identity
	Parent   *own.Parent // the span that the caller started the process in, nil: none
	Run      string      // the ledger's id
	Version  string      // of the program
	Provider string      // of calls whose facts name none; "" is not known
}

// Fact is one fact of a run, as its event stream has it.
type Fact struct {
	At                  time.Time
	Type, Session, Beat string
	Fields              map[string]any
}

// Spans makes a run's spans and sends them from a goroutine of its own. Close it.
type Spans struct {
	options  Options
	exporter *otlp.Exporter
	provider *sdk.TracerProvider
	tracer   trace.Tracer

	mu    sync.Mutex
	root  context.Context
	agent trace.Span // nil before the run began and after it ended
	last  time.Time
	chats map[string]*call
	tools map[string][]trace.Span // by session, beat, call and name, the oldest first
	made  int64
	done  bool

	closing sync.Once
	lost    int64
	reason  string
}

// call is a beat's model call, or what follows its last one.
type call struct {
	span    trace.Span // nil between two calls
	session string
	model   string
	from    time.Time // the end of the last one
}

// Start makes ready to take facts. Nothing is sent before the first span ended.
func Start(c otlp.Config, o Options) *Spans {
	s := &Spans{options: o, exporter: otlp.New(c), root: context.Background(), chats: map[string]*call{}, tools: map[string][]trace.Span{}}
	limits := sdk.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	s.provider = sdk.NewTracerProvider(
		sdk.WithResource(resource.NewSchemaless(resourceOf(c, o)...)),
		sdk.WithIDGenerator(ids(o.Identity.W3C())),
		sdk.WithRawSpanLimits(limits),
		sdk.WithBatcher(s.exporter, sdk.WithMaxQueueSize(MaxQueued), sdk.WithMaxExportBatchSize(maxBatch),
			sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(c.Timeout)),
	)
	s.tracer = s.provider.Tracer(Scope, trace.WithInstrumentationVersion(o.Version))
	return s
}

func resourceOf(c otlp.Config, o Options) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String(serviceName, "ashlar"), attribute.String(serviceVersion, o.Version)}
	for _, a := range c.Resource {
		all = append(all, attribute.String(a.Key, a.Value)) // of two for one key the last counts
	}
	if c.Service != "" {
		all = append(all, attribute.String(serviceName, c.Service))
	}
	return all
}

// ids gives every span without a parent the trace of the run.
type ids trace.TraceID

// NewIDs implements the SDK's IDGenerator.
func (i ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	return trace.TraceID(i), i.NewSpanID(ctx, trace.TraceID(i))
}

// NewSpanID implements the SDK's IDGenerator. Nothing of it reaches the log, so it
// takes nothing from the run's own randomness.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:]) // it never fails
	}
	return id
}

// begin starts a span under another.
func (s *Spans) begin(under context.Context, operation, of string, at time.Time, kind trace.SpanKind, links []trace.Link,
	attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	name := operation
	if of != "" {
		r := []rune(of)
		name += " " + string(r[:min(len(r), maxName)])
	}
	ctx, span := s.tracer.Start(under, name, trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithLinks(links...),
		trace.WithAttributes(append(attrs, attribute.String(operationName, operation))...))
	if span.SpanContext().IsSampled() {
		s.made++
	}
	return ctx, span
}

// failed marks a span; its kind, and no text, says what went wrong.
func failed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String(errorType, kind))
	span.SetStatus(codes.Error, "")
}

// Close ends what is open, sends what waits for at most so long, and gives how many
// spans were lost, with the reason. It returns when nothing of it is left, but for a
// request that does not heed its end. A second call waits for the first.
func (s *Spans) Close(limit time.Duration) (lost int64, reason string) {
	s.closing.Do(func() { s.close(limit) })
	return s.lost, s.reason
}

func (s *Spans) close(limit time.Duration) {
	s.mu.Lock()
	s.done = true
	s.abandon(s.last)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	_ = s.provider.Shutdown(ctx) // what it could not send is counted below
	s.exporter.Stop()
	late := time.NewTimer(stopGrace)
	defer late.Stop()
	select {
	case <-s.exporter.Done():
	case <-late.C:
	}
	s.lost = max(s.made-s.exporter.Delivered(), 0)
	if s.reason = s.exporter.Failure(); s.reason == "" && s.lost > 0 {
		s.reason = "there was no time left to send them"
	}
}
