//go:build interop

// Package interop drives agents against servers that other people wrote. Here it is
// @copilotkit/aimock, which speaks the wires of both providers and misbehaves on
// request: what this repository's own servers do wrong was thought of by those who
// wrote its clients.
//
// It is built with the tag interop alone, needs node, and runs by `make interop`, not
// by `make test`. It holds no code that is shipped. Start reading in aimock_test.go.
package interop
