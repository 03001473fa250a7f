// Package assemble turns a stream, of Chat Completions chunks (Assembler) or of
// Messages events (Messages), into the provider's own non-streamed body, whatever the
// server did to the stream.
//
//  1. A tool call is told from its neighbours by index where there is one, by id
//     where the index lies or is missing, by order where there is neither. None is
//     invented, none is merged, none is lost; a call without an id gets a stable one.
//  2. The body is never taken for finished unless the server said so: a finish
//     reason came. Else Incomplete says how it ended.
//  3. What the server adds beside the known fields is kept.
//
// It sends nothing and knows no HTTP. Start reading in assemble.go.
package assemble
