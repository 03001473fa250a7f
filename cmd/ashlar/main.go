// Command ashlar runs agents that are scripts. Each verb is one small file here: it
// reads flags, calls package ashlar, and prints. stdout carries only the answer (or
// JSON with --json); everything else goes to stderr.
package main

import (
	"os"

	"ashlar"
)

func main() {
	ashlar.Reexec()
	os.Exit(Main(os.Args[1:], system()))
}
