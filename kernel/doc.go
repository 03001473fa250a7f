// Package kernel holds what every part of the kernel shares: the closed
// vocabulary of error kinds and the error that carries one.
//
// The rooms below it (event, store, session, run, proc, redact, …) own the rules
// that a script must not be able to renegotiate: the record, the quota, the
// boundaries of a session, and the processes it starts. Nothing in kernel
// imports a package above it, and nothing in it knows a script language.
//
// Start reading in errors.go, then kernel/event, kernel/store, kernel/session.
package kernel
