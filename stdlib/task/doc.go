// Package task is the namespace std.task: structured concurrency for scripts.
//
// A task is the engine's; this package gives it a handle, joins and aborts it, and
// reports the error of a task that nobody joined. It imports vm alone. Scopes and
// timeouts are further functions over the same group (group.go), which is where
// every task that a script spawns is kept.
//
// Start reading in task.go.
package task
