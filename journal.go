package ashlar

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"ashlar/kernel/logjson"
	"ashlar/kernel/redact"
	"ashlar/kernel/run"
	"ashlar/vm"
)

// journal keeps a script's reads and writes in its run's stream. It implements
// vm.Journal over the ledger's handle.
type journal struct{ run *run.Handle }

// Record implements vm.Journal.
func (j journal) Record(e vm.Entry) {
	c := run.Syscall{N: e.N, K: e.K, Task: e.Task, Name: e.Name, ArgsHash: e.Hash, Mark: e.Mark, Again: e.Again, Notes: e.Notes}
	if e.Args != nil {
		c.Args = keptList(e.Args)
	}
	for _, s := range e.Steps {
		c.Steps = append(c.Steps, keptList(s))
	}
	if e.Result != nil {
		c.Result = keptList(e.Result)
	}
	if e.Err != nil {
		c.Error = map[string]any{"kind": e.Err.Kind, "message": e.Err.Message, "namespace": e.Err.Namespace, "function": e.Err.Function}
	}
	j.run.Record(c)
}

// Handover implements vm.Journal.
func (j journal) Handover(n int64, task int) { j.run.Handover(n, task) }

// The keys of what stands in the journal for a value without JSON. An object of a
// script's own with one such key stands under keyObject.
const (
	keyBytes  = "$bytes" // a string that is no text, in base64
	keyObject = "$object"
)

// kept is plain for the journal, from which revived gives texts, numbers and tables
// back as they were.
func kept(v vm.Value) any {
	switch x := v.(type) {
	case string:
		if !utf8.ValidString(x) {
			return map[string]any{keyBytes: base64.StdEncoding.EncodeToString([]byte(x))}
		}
	case []any:
		return keptList(x)
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = kept(e)
			if strings.HasPrefix(k, "$") && len(x) == 1 {
				return map[string]any{keyObject: out}
			}
		}
		return out
	}
	return plain(v)
}

func keptList(list []any) []any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = kept(e)
	}
	return out
}

// revived gives a value of the journal as it was.
func revived(v any) vm.Value {
	switch x := v.(type) {
	case []any:
		return revivedList(x)
	case map[string]any:
		if len(x) == 1 {
			if text, ok := x[keyBytes].(string); ok {
				if b, err := base64.StdEncoding.DecodeString(text); err == nil {
					return string(b)
				}
			}
			if m, ok := x[keyObject].(map[string]any); ok {
				x = m
			}
		}
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = revived(e)
		}
		return out
	}
	return v
}

func revivedList(list []any) []any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = revived(e)
	}
	return out
}

// plain gives a value without what has no JSON: a function, a handle and a script's
// own value are named by what they are.
func plain(v vm.Value) any {
	switch x := v.(type) {
	case *vm.Func:
		return map[string]any{"$function": x.Name}
	case *vm.Object:
		if p, ok := x.Data.(*logjson.Packed); ok {
			return "$packed " + hex.EncodeToString(p.Hash[:])
		}
		m := map[string]any{"$handle": x.Class.Name}
		if named, ok := x.Data.(interface{ ID() string }); ok {
			m["id"] = named.ID()
		}
		return m
	case *vm.Ref:
		return map[string]any{"$ref": true}
	case []any:
		return plainList(x)
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			out[k] = plain(e)
		}
		return out
	}
	return v
}

func plainList(list []any) []any {
	out := make([]any, len(list))
	for i, e := range list {
		out[i] = plain(e)
	}
	return out
}

// digest hashes arguments that the journal does not keep.
func (w *Workspace) digest(args []vm.Value) string {
	b := w.comparable(keptList(args))
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// comparable gives arguments, as kept has them, in the form in which those of a run and
// of its replay are the same: without secrets, which a replay does not have, whether the
// redactor knew them already or not. nil is what has no JSON.
func (w *Workspace) comparable(args []any) []byte {
	b, err := logjson.Marshal(masked(args))
	if err != nil {
		return nil
	}
	return w.redact.Bytes(b)
}

// masked is a copy of a value without what stands under the name of a credential.
func masked(v any) any {
	switch x := v.(type) {
	case []any:
		out := make([]any, len(x))
		for i, e := range x {
			out[i] = masked(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, e := range x {
			if out[k] = masked(e); redact.CredentialName(k) {
				out[k] = "[masked]"
			}
		}
		return out
	}
	return v
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
