package otlp

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The JSON form of an export request: ids in hexadecimal, 64-bit numbers as text, kinds
// and codes as numbers.
type (
	request struct {
		ResourceSpans []resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resource     `json:"resource"`
		ScopeSpans []scopeSpans `json:"scopeSpans"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeSpans struct {
		Scope     scope  `json:"scope"`
		Spans     []span `json:"spans"`
		SchemaURL string `json:"schemaUrl,omitempty"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	span struct {
		TraceID    string     `json:"traceId"`
		SpanID     string     `json:"spanId"`
		TraceState string     `json:"traceState,omitempty"`
		ParentID   string     `json:"parentSpanId,omitempty"`
		Flags      uint32     `json:"flags,omitempty"`
		Name       string     `json:"name"`
		Kind       int        `json:"kind"`
		Start      string     `json:"startTimeUnixNano"`
		End        string     `json:"endTimeUnixNano"`
		Attributes []keyValue `json:"attributes,omitempty"`
		Dropped    int        `json:"droppedAttributesCount,omitempty"`
		Links      []link     `json:"links,omitempty"`
		Status     status     `json:"status"`
	}
	link struct {
		TraceID string `json:"traceId"`
		SpanID  string `json:"spanId"`
	}
	status struct {
		Code int `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string  `json:"stringValue,omitempty"`
		Bool   *bool    `json:"boolValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
)

// encode writes spans of one provider: they share its resource, and their one scope.
func encode(spans []sdk.ReadOnlySpan) ([]byte, error) {
	first := spans[0]
	by := first.InstrumentationScope()
	group := scopeSpans{Scope: scope{by.Name, by.Version}, SchemaURL: by.SchemaURL}
	for _, s := range spans {
		group.Spans = append(group.Spans, encoded(s))
	}
	res := resource{Attributes: []keyValue{}}
	if r := first.Resource(); r != nil {
		res.Attributes = attributes(r.Attributes())
	}
	return json.Marshal(request{[]resourceSpans{{res, []scopeSpans{group}}}})
}

func encoded(s sdk.ReadOnlySpan) span {
	at := s.SpanContext()
	out := span{
		TraceID: at.TraceID().String(), SpanID: at.SpanID().String(), TraceState: at.TraceState().String(),
		Flags: uint32(at.TraceFlags()), Name: text(s.Name()), Kind: kind(s.SpanKind()),
		Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
		Attributes: attributes(s.Attributes()), Dropped: s.DroppedAttributes(),
	}
	if p := s.Parent(); p.HasSpanID() {
		out.ParentID = p.SpanID().String()
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, link{l.SpanContext.TraceID().String(), l.SpanContext.SpanID().String()})
	}
	switch s.Status().Code {
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status.Code = 2
	}
	return out
}

// kind is the protocol's number of a kind.
func kind(k trace.SpanKind) int {
	switch k {
	case trace.SpanKindServer:
		return 2
	case trace.SpanKindClient:
		return 3
	case trace.SpanKindProducer:
		return 4
	case trace.SpanKindConsumer:
		return 5
	}
	return 1
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func attributes(list []attribute.KeyValue) []keyValue {
	out := make([]keyValue, 0, len(list))
	for _, a := range list {
		kv := keyValue{Key: text(string(a.Key))}
		switch a.Value.Type() {
		case attribute.BOOL:
			b := a.Value.AsBool()
			kv.Value.Bool = &b
		case attribute.INT64:
			n := strconv.FormatInt(a.Value.AsInt64(), 10)
			kv.Value.Int = &n
		case attribute.FLOAT64:
			f := a.Value.AsFloat64()
			kv.Value.Double = &f
		default: // a list is its text: no span here has one
			s := text(a.Value.String())
			kv.Value.String = &s
		}
		out = append(out, kv)
	}
	return out
}
