// Package lua is the Lua engine: gopher-lua behind vm.Engine.
//
// Its invariants:
//
//  1. One lock. Lua of a run executes on one goroutine at a time, the one that
//     holds the engine's lock; the lock is first in, first out, and each hand-over
//     is journalled (sched.go).
//  2. Nothing yields across Go. A task is a goroutine with its own Lua thread; so
//     is a coroutine, which therefore may yield inside pcall, metamethods, iterators
//     and sort (coroutine.go).
//  3. Every Lua thread runs under a context that carries its strand: who it runs
//     for, and what stops it (strand.go).
//  4. One value bridge (bridge.go, decode.go) and one binding of declared modules
//     (module.go), which goes through vm.Dispatcher alone.
//  5. No builtin, and no `..`, makes a string above vm.MaxStringBytes (concat.go), and
//     no builtin works for long without looking at its context; what gopher-lua does
//     in one step (table growth, a sort without a comparator) is the watchdog's.
//  6. Nothing that a script does ends the host: panics, overflows and hostile
//     source become errors (call.go, guard.go).
//
// It must never import stdlib, kernel or another engine. Start reading in
// engine.go, then strand.go.
package lua
