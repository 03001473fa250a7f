// Package trace says who a run is to those who watch it, and how that is written: the
// observability lines of http and tool (and of mcp and mesh), and the envelope that
// carries it to another process. It formats and decides; whoever owns a log writes.
//
// No argument, prompt or answer belongs into a line, and a secret does not get into
// one by its name (Line) or inside a URL (CleanURL). Values are redacted once more at
// the log, as everything there.
//
// Start reading in identity.go, then line.go. The room genai turns a run's facts into
// OpenTelemetry spans, otlp sends spans.
package trace
