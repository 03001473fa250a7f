// Package task is the namespace std.task: structured concurrency for scripts.
//
// A task is the engine's; this package gives it a handle, a place in a scope and a
// token, and reports the error of a task that nobody joined. It imports vm alone.
//
//  1. A task is cancelled by its token (token.go): the wait that it is in ends with
//     "task cancelled", and from then on sleep, yield and checkpoint raise. Other
//     calls still run, so that what caught the cancel can clean up.
//  2. It is cut by its context: its Lua ends at the next instruction, its wait at
//     once, and the commands that it waits for die with their trees. An abort is a
//     cancel, and a cut AbortGrace later; with_timeout cuts when its grace is over.
//  3. A scope returns after its children ended, and the context of Lua carries the
//     innermost scope: so a spawn attaches to the scope around it, whichever task
//     entered another one last.
//  4. What the clock decides is journalled where a script can see it: sleep, yield,
//     checkpoint, is_cancelled, and whether a with_timeout was exceeded.
//
// Start reading in task.go, then scope.go.
package task
