// Package sse is the one decoder of server-sent events, for streamed model calls
// and for http.request alike.
//
//  1. Lines end with LF, CR or CRLF, also when a chunk ends between the two; a line
//     counts as soon as its CR is there.
//  2. It works on bytes: a character that two chunks share is whole again. What
//     was not UTF-8 is passed on as it came.
//  3. An event without the blank line behind it is given at the stream's end. One
//     that a read error cut is not: nobody knows what it would have said.
//  4. One line, and the data of one event, has at most MaxBytes; memory is bounded
//     by that whatever the server sends.
//  5. Comments are reported apart from events, so that a caller can tell keep-alives
//     from progress.
//
// It imports kernel and nothing else of Ashlar. Start reading in decoder.go.
package sse
