// Package crash holds the tests that break Ashlar: the real binary as a process,
// with scripts that do not stop, signals, kill -9 at random moments, disks that are
// full and sinks that are broken. After each of them the promises of
// architecture.md §3 are looked at from outside: the log opens and its chain
// verifies, nothing that was acknowledged is missing, no process is left, the run's
// row says how it ended, and no secret is on disk.
//
//  1. A test drives a process and looks at files; what must hold inside a package is
//     tested beside the package.
//  2. The chain is computed here again from contracts §1, not by the code under test.
//  3. Everything here is skipped with -short. `make test-crash` runs it.
//
// It holds no code that is shipped. Start reading in harness_test.go.
package crash
