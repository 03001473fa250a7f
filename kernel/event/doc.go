// Package event is what the log is made of: one event, the kinds the kernel
// knows, what a draft must satisfy before it is stored, the chain of hashes over
// a stream, and the reading of older shapes.
//
//  1. A stored event never changes: older shapes are read through Upcast, never
//     rewritten.
//  2. Kernel-only kinds are unforgeable: Validate refuses them from a caller.
//  3. The chain shows edits, gaps and reordering of a stream (Link); a cut tail
//     shows only against a Head that was kept elsewhere.
//
// It must never import a store. Start reading in event.go, then chain.go.
package event
