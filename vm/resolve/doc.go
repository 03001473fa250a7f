// Package resolve says where a module's name comes from: the tiers of a run, nearest
// first, then the binary. A sealed name is served from the binary alone, and so is
// every name behind "embedded."; a file that would shadow a seal stops a run before
// its script starts.
//
// It reads directories and runs nothing. Start reading in modules.go.
package resolve
