// Package record keeps and replays model traffic at the HTTP seam (contracts §7):
// a Recorder writes each exchange of a run as one line of JSON, a Player answers
// from such a file without a network. What the run does with the answers is the
// run's own code both times.
//
// Beyond the form of contracts §7: an "error" is {kind, message, sent}, so that a
// replay fails as the run did (a text alone is read too), and a chunk that is no
// UTF-8 is {base64}, unless the reply holds a secret. "key" is taken over the request
// as it is written, that is redacted.
//
// No key and no header outside the allow-list is ever written; every line passes
// the redactor. Start reading in recorder.go.
package record
