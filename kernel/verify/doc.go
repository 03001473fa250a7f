// Package verify says whether a log is what was written: every link of every chain,
// every piece of content, every message list, and every projection against the events
// that it follows from.
//
//  1. Check writes nothing. Repair rebuilds projections alone, and says what it did.
//  2. A projection is compared with what the packages that write it would have written:
//     the folds are theirs (budget.Balance.Apply, run.Rebuilt).
//  3. What no event says (who owns a run, who holds a lease) is held to its form only.
//
// It must never import a store's implementation. Start reading in verify.go.
package verify
