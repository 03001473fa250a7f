// Package run is the ledger of runs. Every way of starting work makes a run: an
// id that is never used again, a state, bounds, and one result.
//
//  1. A state changes by compare-and-set on (state, attempt), along the table in
//     state.go, and the event that says so is in the same transaction.
//  2. The row is a projection of the stream run:<id>, which only the kernel
//     writes; the bounds are the budget account of that stream (the pool).
//  3. A result and the terminal state are one transaction: a crash is never a
//     success. A running run whose owner is gone is lost.
//  4. The journal rides with the next commit: recording waits only for a disk that
//     is maxPending syscalls behind.
//
// It must never import session, which reaches it through session.Run. Start
// reading in state.go, then ledger.go and handle.go.
package run
