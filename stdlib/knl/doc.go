// Package knl is the namespace knl, the native half of the kernel as scripts see
// it: sessions and what moves them, and the few steps of a beat that must be one
// commit. embedded/knl is the other half.
//
// It adds no rule of its own: kernel/session holds the quota and the record,
// kernel/tool the way that a tool runs. It must never run a handler or write an
// event past them. Start reading in module.go, then beat.go.
package knl
