// Package tree finds and ends the processes that a command left behind, however
// far they tried to get away from it. The guard uses it, and so does the host
// when the guard is gone.
//
// A process belongs to a [Scope] by any one of three signs:
//
//  1. the marker ASHLAR_PROC=<path> in its environment (shed by env -i);
//  2. the tag, a number in its soft RLIMIT_RTTIME, which fork and exec hand down
//     and which env -i, setsid and a double fork do not touch. The number is above
//     2^62 microseconds, so as a limit it is none;
//  3. a parent that belongs.
//
// Invariants:
//
//  1. A scope is frozen (SIGSTOP) until two looks in a row show nothing new and
//     everything stopped, and only then killed: a tree that forks while it is
//     being counted, or whose middle dies first, does not fall apart into orphans
//     that nothing claims.
//  2. A signal goes to the process that was looked at, through a pidfd and its
//     start time, never to a later one with the same number.
//  3. The caller itself is never a member, whatever it carries.
//
// Everything here reads /proc and is Linux only; on another system the package
// is empty. It imports nothing of Ashlar. Start reading in scope.go.
package tree
