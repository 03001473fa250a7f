package genai

import (
	"context"
	"path"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Fact takes the next fact of the run. Those that make no span are passed over.
func (s *Spans) Fact(f Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return
	}
	s.last = f.At
	switch f.Type {
	case "run_started":
		s.started(f)
	case "beat_started":
		s.chats[f.Beat] = s.chat(f)
	case "usage":
		s.answered(f)
	case "beat_finished":
		s.beatEnded(f)
	case "tool_call":
		s.toolCalled(f)
	case "tool_result":
		s.toolEnded(f)
	case "run_finished":
		s.finished(f)
	}
}

func (s *Spans) started(f Fact) {
	who := s.options.Identity
	script := str(f, "block")
	name := who.AgentName
	if name == "" && script != "" {
		name = path.Base(script)
	}
	attrs := []attribute.KeyValue{
		attribute.String(agentName, name), attribute.String(agentID, who.AgentID), attribute.String(runID, s.options.Run),
		attribute.String(block, script), attribute.String(conventions, Conventions),
	}
	id := who.W3C()
	if trace.TraceID(id).String() != who.TraceID {
		attrs = append(attrs, attribute.String(runTrace, who.TraceID))
	}
	if s.options.Provider != "" {
		attrs = append(attrs, attribute.String(providerName, Provider(s.options.Provider)))
	}
	under, links := context.Background(), []trace.Link(nil)
	if p := s.options.Parent; p != nil {
		at := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: p.TraceID, SpanID: p.SpanID, TraceFlags: trace.TraceFlags(0).WithSampled(p.Sampled), Remote: true,
		})
		if p.TraceID == id {
			under = trace.ContextWithRemoteSpanContext(under, at)
		} else {
			// The caller named another trace by hand: that one it is, and this is told.
			links = []trace.Link{{SpanContext: at}}
		}
	}
	s.root, s.agent = s.begin(under, invokeAgent, name, f.At, trace.SpanKindInternal, links, attrs...)
}

// chat begins a model call.
func (s *Spans) chat(f Fact) *call {
	c := &call{session: f.Session, model: str(f, "model")}
	c.span = s.chatSpan(f, c.model, f.At)
	return c
}

func (s *Spans) chatSpan(f Fact, model string, from time.Time) trace.Span {
	attrs := place(f)
	if model != "" {
		attrs = append(attrs, attribute.String(requestModel, model))
	}
	provider := str(f, "provider")
	if provider == "" {
		provider = s.options.Provider
	}
	if provider != "" {
		attrs = append(attrs, attribute.String(providerName, Provider(provider)))
	}
	_, span := s.begin(s.root, chat, model, from, trace.SpanKindClient, nil, attrs...)
	return span
}

// answered ends a model call with what it used. A second usage of one beat is a second
// call, which began when the first had ended; one of no beat has only its end.
func (s *Spans) answered(f Fact) {
	c := s.chats[f.Beat]
	if f.Beat == "" || c == nil {
		c = &call{from: f.At}
	}
	if c.span == nil {
		c.span = s.chatSpan(f, c.model, c.from)
	}
	c.span.SetAttributes(usage(f.Fields)...)
	c.span.End(trace.WithTimestamp(f.At))
	c.span, c.from = nil, f.At
}

// beatEnded ends a call that brought nothing.
func (s *Spans) beatEnded(f Fact) {
	c := s.chats[f.Beat]
	delete(s.chats, f.Beat)
	if c == nil || c.span == nil {
		return
	}
	failed(c.span, otherError)
	c.span.End(trace.WithTimestamp(f.At))
}

// toolKey tells tool calls apart; two of a script's own at once have one key, and then
// the first to end is the first that began.
func toolKey(f Fact) string {
	return f.Session + "\x00" + f.Beat + "\x00" + str(f, "call_id") + "\x00" + str(f, "tool")
}

func (s *Spans) toolCalled(f Fact) {
	name := str(f, "tool")
	attrs := append(place(f), attribute.String(toolName, name), attribute.String(toolType, functionTool))
	if id := str(f, "call_id"); id != "" {
		attrs = append(attrs, attribute.String(toolCallID, id))
	}
	_, span := s.begin(s.root, executeTool, name, f.At, trace.SpanKindInternal, nil, attrs...)
	s.tools[toolKey(f)] = append(s.tools[toolKey(f)], span)
}

func (s *Spans) toolEnded(f Fact) {
	key := toolKey(f)
	open := s.tools[key]
	if len(open) == 0 {
		return
	}
	span := open[0]
	if s.tools[key] = open[1:]; len(open) == 1 {
		delete(s.tools, key)
	}
	if ok, _ := f.Fields["ok"].(bool); !ok {
		kind := str(f, "kind")
		if kind == "" {
			kind = otherError
		}
		failed(span, kind)
	}
	span.End(trace.WithTimestamp(f.At))
}

// abandon ends the calls that nothing ended.
func (s *Spans) abandon(at time.Time) {
	end := func(span trace.Span) {
		failed(span, unfinished)
		span.End(trace.WithTimestamp(at))
	}
	for beat, c := range s.chats {
		delete(s.chats, beat)
		if c.span != nil {
			end(c.span)
		}
	}
	for key, open := range s.tools {
		delete(s.tools, key)
		for _, span := range open {
			end(span)
		}
	}
	if s.agent != nil {
		end(s.agent)
		s.agent = nil
	}
}

func (s *Spans) finished(f Fact) {
	agent := s.agent
	s.agent = nil
	s.abandon(f.At)
	if agent == nil {
		return
	}
	status := str(f, "status")
	agent.SetAttributes(attribute.String(runStatus, status))
	if by := str(f, "stopped_by"); by != "" {
		agent.SetAttributes(attribute.String(runStopped, by))
	}
	if total, ok := f.Fields["usage"].(map[string]any); ok && len(total) > 0 {
		agent.SetAttributes(usage(total)...)
	}
	if problem, ok := f.Fields["error"].(map[string]any); ok {
		kind, _ := problem["kind"].(string)
		switch {
		case kind != "":
			failed(agent, kind)
		case status == "cancelled":
			failed(agent, status)
		default:
			failed(agent, otherError)
		}
	}
	agent.End(trace.WithTimestamp(f.At))
}

// place says where in the run something happened.
func place(f Fact) (attrs []attribute.KeyValue) {
	if f.Session != "" {
		attrs = append(attrs, attribute.String(conversationID, f.Session))
	}
	if f.Beat != "" {
		attrs = append(attrs, attribute.String(beatID, f.Beat))
	}
	return attrs
}

// usage gives a usage as the conventions count: what was cached is part of the input.
func usage(fields map[string]any) []attribute.KeyValue {
	n := func(key string) int64 { v, _ := fields[key].(int64); return v }
	attrs := []attribute.KeyValue{
		attribute.Int64(inputTokens, n("input")+n("cache_read")+n("cache_creation")), attribute.Int64(outputTokens, n("output")),
		attribute.Int64(cacheReadTokens, n("cache_read")), attribute.Int64(cacheCreateTokens, n("cache_creation")),
		attribute.Int64(reasoningTokens, n("thinking")),
	}
	if cost := n("cost"); cost > 0 {
		attrs = append(attrs, attribute.Int64(usageCost, cost))
	}
	if estimated, _ := fields["estimated"].(bool); estimated {
		attrs = append(attrs, attribute.Bool(usageEstimated, true))
	}
	return attrs
}

func str(f Fact, key string) string { s, _ := f.Fields[key].(string); return s }
