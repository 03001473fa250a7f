// Package redact is the one redactor. It stands before every sink (store, event
// stream, recorder, error text, log lines) and replaces the exact values of
// credential-named variables and configured keys.
//
// It fails closed: a value that cannot be examined is replaced whole. It must
// never be asked to decide whether something is a secret from its look alone;
// shapes and patterns come later, beside the exact values, through the same door.
//
// Start reading in redact.go.
package redact
