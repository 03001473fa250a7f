// Package encode turns a draft into the bytes that a store keeps: log JSON,
// redacted piece by piece, hashed, with an llm_request taken apart so that its
// messages are stored once however often they are sent. Every store uses it, so
// that the same draft has the same hash everywhere.
//
//  1. Redaction comes first: no byte is hashed or stored before it.
//  2. What a redactor changed is read and written again: it stays log JSON, or
//     the draft is refused (failing closed).
//  3. Data.Hash is over the whole log JSON, however it is taken apart.
//
// It must never import a store. Start reading in encode.go.
package encode
