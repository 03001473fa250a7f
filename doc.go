// Package ashlar is the door for Go hosts: it opens a workspace (a home with the
// log, a project, an environment), prepares a block and runs it under bounds, with
// every fact in the log. The command ashlar is a thin reader of flags over it.
//
//	ws, err := ashlar.Open(ctx, ashlar.Options{Project: dir})
//	run, err := ws.Prepare(ashlar.Task{Script: "block.lua", Prompt: "…"})
//	result := run.Execute(ctx)
//
// A program that embeds it calls Reexec first in main (and in TestMain): without it
// starting a child process is unsupported.
//
// The package joins the rooms (kernel, vm, stdlib, embedded) and adds no rule that
// belongs to one of them. Start reading in workspace.go, then run.go.
package ashlar
