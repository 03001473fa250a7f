// Package proc runs commands that cannot outlive their bounds.
//
// A [Starter] belongs to one run, or to one process that hosts runs. Its first
// command starts the guard (package guard): this same binary re-executed, which
// forks the commands, reports their ends, and buries whatever they leave when the
// host ends or is killed. [Starter.Run] runs a command to its end and collects its
// output; [Starter.Start] gives a long-lived one with its pipes.
//
// Invariants:
//
//  1. A bound (timeout, output cap, cancel, label kill) ends the whole tree of a
//     command, and Run returns when the tree is gone. What a command that ended by
//     itself left running stays, for it may be a server that was asked for, until
//     [Starter.Close].
//  2. The result names its bound, and what arrived before the bound is kept.
//  3. Standard input is fed beside the drains and inside the deadline; without
//     input it is /dev/null, never the host's.
//  4. Output is complete up to the cap or the result says that it is not: the cap is
//     judged by the bytes seen, when the drain is over.
//  5. A pipe that a left-over process holds does not hold the caller: after the
//     command's own end the drains get [QuietTime], [SettleTime] in all.
//  6. Nothing is inherited: a command's environment is what its Spec says
//     ([Environment] builds it from an allow-list) plus the marker ASHLAR_PROC.
//  7. The host waits for its guard and for orphans that it inherited from a killed
//     guard, by number. It never waits for "any child": an embedding program has
//     children of its own.
//
// A program that uses this package calls guard.Main (ashlar.Reexec) first in main
// and in TestMain, or names a helper binary in [Options].
//
// Two things a host should know. Starting the first guard makes the process a
// subreaper for the rest of its life, so orphans of the host's other children
// become its children too and stay zombies unless the host waits for them. And a
// process that changes its environment, its parent and its RLIMIT_RTTIME all at
// once is out of reach of a single command's bound; it still ends with the Starter.
//
// Linux only: elsewhere every start is kernel.Unsupported. The package imports
// kernel, kernel/redact (whose rule says what a credential is called) and its own
// rooms guard and tree. Start reading in run.go, then
// start_linux.go and link_linux.go.
package proc
