// Package fs is the namespace std.fs and the file side of io and os: plain files
// of the project and the machine, under two rules that no option lifts.
//
//  1. Relative paths resolve against the project's directory.
//  2. No path that resolves into $ASHLAR_HOME is opened, and nothing that holds it
//     is moved or removed: the control plane is out of a script's reach.
//
// Start reading in area.go.
package fs
