// Package config reads config.toml: the user's own, in $ASHLAR_HOME, and a project's,
// in <project>/.ashlar. It knows providers, what models hold and cost, bounds of runs,
// and limits; each value remembers the file and the line that it comes from.
//
// A project's file comes with a repository, so what it may say is bounded: it narrows
// the user's bounds and limits and never widens them, it prices only models that the
// user has not priced, and what would send keys or prompts somewhere, or let tools do
// more, is refused with the line to move to the user's own file.
//
// It reads no environment and applies nothing: flags and variables stand above it, and
// who enforces a bound is told of it by package ashlar. Start reading at Load.
package config
