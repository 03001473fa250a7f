package knl

import (
	"fmt"
	"regexp"
	"strings"

	"ashlar/kernel"
	"ashlar/vm"
)

// scriptKinds are the kinds that the namespace itself raises, in published order.
func scriptKinds() []kernel.Kind { return kernel.Kinds()[:8] }

// raised reads "<namespace>: <method>: <kind>: <message>", behind the position that
// an engine may put before it.
var raised = regexp.MustCompile(`^(?:[^\n]*?:\d+: )?([a-z][a-z0-9_.]*): ([a-z][a-z0-9_]*): ([a-z_]+): ((?s).*)$`)

// ReadError reads a raised value: the one place where the text of an error is taken
// apart, for scripts that branch on kinds.
func ReadError(v vm.Value) map[string]any {
	text := fmt.Sprint(v)
	if m, ok := v.(map[string]any); ok {
		if s, ok := m["message"].(string); ok {
			text = s
		}
		if kind, ok := m["kind"].(string); ok && known(kind) {
			return map[string]any{"kind": kind, "retryable": kernel.Kind(kind).Retryable(), "message": text}
		}
	}
	if v == nil {
		text = "nil"
	}
	// A traceback that an engine appended is no part of the message.
	if i := strings.Index(text, "\nstack traceback:"); i >= 0 {
		text = text[:i]
	}
	if m := raised.FindStringSubmatch(text); m != nil && known(m[3]) {
		return map[string]any{
			"namespace": m[1], "method": m[2], "kind": m[3], "message": m[4], "retryable": kernel.Kind(m[3]).Retryable(),
		}
	}
	return map[string]any{"retryable": false, "message": text}
}

func known(kind string) bool {
	for _, k := range kernel.Kinds() {
		if string(k) == kind {
			return true
		}
	}
	return false
}

// report is what knl.api() answers.
func report(m *vm.Module, class *vm.Class) map[string]any {
	list := func(funcs []vm.Function) []any {
		out := []any{}
		for _, f := range funcs {
			out = append(out, map[string]any{"name": f.Name, "doc": f.Doc})
		}
		return out
	}
	kinds := []any{}
	for _, k := range scriptKinds() {
		kinds = append(kinds, string(k))
	}
	columns := []any{}
	for _, c := range []struct{ name, typ string }{
		{"position", "INTEGER"}, {"stream", "TEXT"}, {"seq", "INTEGER"}, {"epoch_ms", "INTEGER"}, {"kind", "TEXT"},
		{"schema_version", "INTEGER"}, {"meta", "TEXT"}, {"data", "TEXT"}, {"hash", "TEXT"},
	} {
		columns = append(columns, map[string]any{"name": c.name, "type": c.typ, "pk": c.name == "position"})
	}
	fields := map[string]any{}
	for _, name := range []string{"amount", "tag", "desc", "remaining", "scope_id", "owner", "parent", "child", "reason", "detail", "open_children"} {
		fields[name] = name
	}
	return map[string]any{
		"module": list(m.Funcs), "session": list(class.Methods), "errors": kinds,
		"schema": map[string]any{"table": "events", "columns": columns}, "fields": fields,
	}
}
