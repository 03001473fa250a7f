// Package storetest is the definition of a store: one suite that every
// implementation passes. A new store calls Run from its own tests.
//
// Start reading in storetest.go.
package storetest
