// Package otlp sends OpenTelemetry spans to a collector as OTLP over HTTP, in the JSON
// encoding, which is a stable part of that protocol. It is there in place of the
// project's own exporter, whose protocol buffers would cost every start of the program
// more than all of this room.
//
// A collector that hangs, refuses or answers nonsense costs spans and nothing else: an
// attempt is bounded in time, none is repeated, and the exporter only counts. It never
// logs and never panics, and once stopped it starts no request.
//
// Start reading in config.go, then exporter.go.
package otlp
