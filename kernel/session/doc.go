// Package session is the life of a session: a stream of the log with an owner
// and a budget, opened once and closed once.
//
//  1. The single conditional write is a Batch: what is asked of the balance and
//     of the run's pool, and what is recorded because it was granted, are one
//     transaction. A beat that is not covered leaves no request behind.
//  2. Kernel-only kinds are written here and in package run, never by a caller.
//  3. One process writes a session (lease.go); its handles interleave.
//  4. Closing is per handle; after it the handle refuses writes and still reads.
//  5. Projections (balance, lease, session, child, open) change with the events
//     that they follow from.
//
// It must never import run, a store's implementation or anything above kernel;
// a run reaches it through the interface Run. Start reading in session.go, then
// commit.go.
package session
