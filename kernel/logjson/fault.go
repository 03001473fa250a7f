package logjson

import (
	"fmt"
	"strconv"
	"strings"

	"ashlar/kernel"
)

// fault is an error on its way out of the nesting: each level adds its step, so
// that the way down pays nothing for the path.
type fault struct {
	msg   string
	at    int      // byte of the text; -1 when there is no text
	steps []string // innermost first
}

func faultf(format string, args ...any) *fault {
	return &fault{msg: fmt.Sprintf(format, args...), at: -1}
}

func tooDeep() *fault { return faultf("nested deeper than %d, or a cycle", MaxDepth) }

func (f *fault) inKey(k string) *fault {
	step := "." + k
	if !isName(k) {
		step = "[" + strconv.Quote(k) + "]"
	}
	f.steps = append(f.steps, step)
	return f
}

func (f *fault) inIndex(i int) *fault {
	f.steps = append(f.steps, "["+strconv.Itoa(i)+"]")
	return f
}

func (f *fault) err(op string) error {
	var path strings.Builder
	path.WriteByte('$')
	for i := len(f.steps) - 1; i >= 0; i-- {
		path.WriteString(f.steps[i])
	}
	if f.at >= 0 {
		return kernel.Errorf(op, kernel.Validation, "%s: %s (byte %d)", path.String(), f.msg, f.at)
	}
	return kernel.Errorf(op, kernel.Validation, "%s: %s", path.String(), f.msg)
}

func isName(k string) bool {
	for i := 0; i < len(k); i++ {
		c := k[i]
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return k != ""
}
