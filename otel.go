package ashlar

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"ashlar/kernel/trace"
	"ashlar/kernel/trace/genai"
	"ashlar/kernel/trace/otlp"
	"ashlar/stdlib/llm"
)

// spans are the OpenTelemetry spans of a run, where the environment of the process
// names a collector. They are made of what the other sinks get; a collector that hangs
// or refuses costs at most the flush at the end of the run.
type spans struct {
	made   *genai.Spans
	notice func(string)
}

// startSpans gives nil where no collector is configured. A project's .env has no say in
// it: spans tell of the user's work, and go where the user sends them.
func (r *Run) startSpans(id string, who trace.Identity) *spans {
	config, on, problem := otlp.FromEnviron(r.ws.own)
	if problem != "" {
		r.ws.opts.Notice("OpenTelemetry: " + problem)
	}
	if !on {
		return nil
	}
	r.learnHeaders(config)
	o := genai.Options{Identity: who, Run: id, Version: Version, Provider: r.usualProvider()}
	if parent, ok := r.ws.parentSpan(); ok {
		o.Parent = &parent
	}
	return &spans{made: genai.Start(config, o), notice: r.ws.opts.Notice}
}

// learnHeaders teaches the redactor what gives access to the collector.
func (r *Run) learnHeaders(c otlp.Config) {
	for name, values := range c.Headers {
		for _, v := range values {
			_, word, _ := strings.Cut(v, " ") // as in "Bearer SECRET"
			r.ws.redact.Add("OTEL header "+name, v)
			r.ws.redact.Add("OTEL header "+name, word)
		}
	}
	if u, err := url.Parse(c.URL); err == nil && u.User != nil {
		password, _ := u.User.Password()
		r.ws.redact.Add("OTEL endpoint", password)
	}
}

// usualProvider is the provider that the run's model is named with; "" where it is
// named without one.
func (r *Run) usualProvider() string {
	name, _, ok := strings.Cut(firstOf(r.task.Model, r.ws.environ["ASHLAR_MODEL"], r.ws.config.Run.Model), "/")
	if !ok || !slices.ContainsFunc(r.ws.Providers(), func(p llm.Provider) bool { return p.Name == name }) {
		return ""
	}
	return name
}

// Fact implements Sink.
func (s *spans) Fact(f Fact) {
	s.made.Fact(genai.Fact{At: f.At, Type: f.Type, Session: f.Session, Beat: f.Beat, Fields: f.Fields})
}

// close sends what waits, for at most so long, and says what was lost.
func (s *spans) close(limit time.Duration) {
	if s == nil {
		return
	}
	if lost, reason := s.made.Close(limit); lost > 0 {
		s.notice(fmt.Sprintf("OpenTelemetry: spans not delivered: %d (%s)", lost, reason))
	}
}
