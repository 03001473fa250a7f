// Package logjson is the one text form of everything that the log keeps: log
// JSON. Equal values have equal bytes, so that bytes can be hashed, compared and
// kept once.
//
//  1. Object keys are sorted by code point, without duplicates; there is no
//     space outside strings.
//  2. A string escapes `"`, `\` and every control character below U+0020, and
//     nothing else. No byte below 0x20 therefore ever occurs in log JSON: the
//     store uses such bytes as place holders.
//  3. A number has its shortest form that reads back as the same value; an
//     integral float below 2^53 is written as an integer, -0 as 0, an integer
//     beyond int64 digit by digit.
//  4. NaN, infinities, invalid UTF-8, nesting over MaxDepth (and so a cycle) and
//     types that are not neutral are errors that name the path: `$.a[1].b`.
//
// Neutral values are nil, bool, int64, float64, string, json.Number, []any and
// map[string]any. The package must never import anything but kernel.
//
// Start reading in encode.go; decode.go is the way back.
package logjson
