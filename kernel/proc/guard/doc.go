// Package guard is the process that starts this host's commands and buries them.
//
// The host re-executes its own binary once, at the first command, with a socket as
// descriptor 3; [Main] recognises that and never returns. From then on the guard
// forks each command, reports its end, ends a command with everything it started
// when asked to, and, when the socket closes for whatever reason, kill -9 of the
// host included, kills and reaps all that is left below it and exits.
//
// Invariants:
//
//  1. The guard is a subreaper: whatever its commands leave behind becomes its
//     child, so "wait says there are no children" proves that nothing is left.
//  2. It runs in a session of its own and survives terminal signals; the commands
//     get the default dispositions back.
//  3. It holds no credentials and no environment of its own to hand down: each
//     command gets exactly the environment that the host sent.
//  4. A command's end is reported by a blocking wait, never by polling.
//  5. It trusts nothing but the socket that it was given: arguments are not read,
//     and the environment variable alone makes nobody a guard.
//
// Why a process and not a goroutine: only a process outlives a host that was
// killed, and forking out of a small one costs the same as out of a large one.
//
// Linux only; elsewhere Main returns at once and kernel/proc says unsupported.
// It imports kernel/proc/tree and nothing else of Ashlar. Start reading in
// guard_linux.go; the protocol is message.go.
package guard
