// Package budget is the quota: grants, what is left of them, and the moves that
// change it, each an event and a change of the projection in one transaction.
// An account is the balance of one stream: a session's, or a run's pool.
//
//  1. A balance is the ordered fold over the account's budget events (Apply);
//     the projection is the same number, kept beside them.
//  2. It rises only by a grant, and by the settlement of what was reserved.
//  3. It is never negative, and no refused move changes it.
//  4. What was never granted is not limited.
//
// It must never import session or run. Start reading in budget.go, then
// account.go.
package budget
