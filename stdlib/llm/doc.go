// Package llm is the namespace llm: the model boundary. A script's port builds the
// body of a request; this room chooses the provider, adds the key (which no script
// sees), sends it through the provider's own SDK, retries what may be retried, and
// gives back the provider's non-streamed body, however it came.
//
//  1. A request is sent again only when it cannot have been answered: before it was
//     written, or when the provider said so. Never after a reply began.
//
//  2. A retry is in the session's log before it leaves.
//
//  3. Progress is data, not comments; a stream that stops is cut.
//
//  4. Nothing of the process's environment decides where a request goes.
//
//  5. Whatever a provider counts where, usage is told in fields that do not overlap, and
//     what is estimated is flagged.
//
// Rooms below: openai and anthropic (the SDKs' transports), assemble (stream to body),
// textcall (calls that are written as text), record (the recordings of contracts §7).
// Start reading in send.go; what differs between the wires is in wire.go.
package llm
