// Package tool holds the contract of a tool, the registry of those that are
// offered, and the bus: the one way that a tool is ever executed.
//
//  1. Decisions come first (resolve, validate, intercept, gate), then the intent is
//     recorded, then the handler runs, then the outcome is recorded. A call that is
//     refused runs nothing, and its call and result are recorded together.
//  2. What was decided on is what runs: arguments are not changed after the gate.
//  3. A result is redacted and made valid text before anyone sees it, and bounded
//     for the model; the whole is kept by its hash.
//  4. A handler that panics, hangs or returns what cannot be said is a failed call,
//     never a failed host.
//
// It knows no script language and no provider. Start reading in bus.go.
package tool
