// Package vm is what a script engine is, without any engine: neutral values,
// functions and objects that cross between host and script, the declaration of a
// syscall, the one dispatcher that calls it, the host that a run lends its
// script, and the journal.
//
// It must never import stdlib or kernel, and no engine (vm/lua, vm/star) imports
// another. A namespace of the standard library is one Module value declared over
// this package; an engine turns it into globals; `ashlar api` prints it. Nobody
// writes a binding by hand.
//
// Start reading in value.go, then module.go, dispatch.go and engine.go.
package vm
