// Package textcall finds the tool calls that small models write into their text, in the
// forms of the chat templates that they were trained on.
//
//  1. A call is whole or it is none: what does not parse, is not closed, or names no
//     declared tool stays text, byte for byte.
//  2. Text around calls is kept.
//  3. What stands in a code fence or between backticks is talk about a call, unless the
//     fence is all that was said.
//  4. It is a pure function of text, form and tools.
//
// It sends nothing and knows no wire. Start reading in parse.go; forms.go has one reader
// for each form.
package textcall
