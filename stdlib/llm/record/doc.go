// Package record keeps and replays model traffic at the HTTP seam (contracts §7):
// a Recorder writes each exchange of a run as one line of JSON, a Player answers
// from such a file without a network. What the run does with the answers is the
// run's own code both times.
//
// No key and no header outside the allow-list is ever written; every line passes
// the redactor. Start reading in recorder.go.
package record
