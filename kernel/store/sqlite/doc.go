// Package sqlite keeps the log in one SQLite database, on disk or in memory:
// the embedded default.
//
//  1. One connection writes. A caller that finds nobody committing makes its own
//     commit; what concurrent callers queued meanwhile is gathered into one by the
//     writer's goroutine, so one fsync pays for all that waited.
//  2. Each commit is made under a blocking flock on <db>.wlock: processes queue
//     up fairly, where SQLite's own busy handler lets them starve one another.
//  3. WAL with synchronous=FULL: an acknowledged Write survives power loss.
//     A commit is never cancelled; readers run beside it on connections of their own.
//  4. Content is stored once: bodies and strings over encode.InlineBytes by their
//     hash, messages of requests as a persistent list. The view `events` gives
//     whole objects back in plain SQL.
//  5. What is read is checked against its hash. The newest events that this process
//     wrote are kept in memory (tail.go), and are right as long as the head is theirs.
//  6. In memory (OpenMemory) it is the same code on SQLite's memory file system, so
//     that there is no second implementation to keep alike.
//  7. A query of a script is held back by SQLite itself (query_guard.go), not by what its
//     text looks like; a reader (OpenReader) never waits for a writer.
//  8. An audit (verify.go) reads all of it in one snapshot and believes no row.
//  9. Where processes cannot share memory, one of them has the file at a time and says
//     so (exclusive.go).
//
// It must never import session or run. Start reading in schema.go for the
// tables, then writer.go, tx.go and read.go.
package sqlite
