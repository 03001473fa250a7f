// Package store is what the log needs of a database: the interface, and the
// rules that every implementation keeps. The suite in storetest is the
// definition; store/sqlite is the embedded default, on disk and in memory.
//
//  1. Events are only appended; seq, time and hash are the store's.
//  2. An acknowledged Write is durable, and all of it is there or none.
//  3. Projections change in the same transaction as the events they follow from.
//  4. Readers never wait for a writer that waits.
//
// It must never import session, run or an implementation. Start reading in
// store.go.
package store
