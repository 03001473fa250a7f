package event

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"ashlar/kernel"
)

// MaxKindBytes bounds the name of a kind.
const MaxKindBytes = 128

// Validate tells what keeps d from being stored, as an error of kind validation:
// a kind that is empty, too long or not printable, a kernel-only kind when the
// author is not the kernel, or a meta value that is no scalar. Whether meta and
// data have log JSON at all is found when they are encoded.
func Validate(d Draft, byKernel bool) error {
	const op = "event"
	switch {
	case d.Kind == "":
		return kernel.Errorf(op, kernel.Validation, "kind must be a non-empty string")
	case len(d.Kind) > MaxKindBytes:
		return kernel.Errorf(op, kernel.Validation, "kind is %d bytes long; at most %d", len(d.Kind), MaxKindBytes)
	case !utf8.ValidString(d.Kind) || strings.ContainsFunc(d.Kind, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return kernel.Errorf(op, kernel.Validation, "kind %q must be printable UTF-8", d.Kind)
	case !byKernel && KernelOnly(d.Kind):
		return kernel.Errorf(op, kernel.Validation, "%s is written by the kernel alone", d.Kind)
	}
	for k, v := range d.Meta {
		switch v.(type) {
		case string, bool, int64, float64, json.Number:
		case nil:
			return kernel.Errorf(op, kernel.Validation, "meta.%s is null; meta holds strings, numbers and booleans", k)
		default:
			return kernel.Errorf(op, kernel.Validation, "meta.%s is nested; meta holds scalars, structure belongs in data", k)
		}
	}
	return nil
}
