package ashlar

import (
	"crypto/sha256"
	"encoding/hex"

	"ashlar/kernel/logjson"
	"ashlar/kernel/run"
	"ashlar/vm"
)

// journal keeps a script's reads and writes in its run's stream. It implements
// vm.Journal over the ledger's handle.
type journal struct{ run *run.Handle }

// Record implements vm.Journal.
func (j journal) Record(e vm.Entry) {
	c := run.Syscall{N: e.N, K: e.K, Task: e.Task, Name: e.Name, ArgsHash: e.Hash, Mark: e.Mark}
	if e.Args != nil {
		c.Args = plainList(e.Args)
	}
	if e.Result != nil {
		c.Result = plainList(e.Result)
	}
	if e.Err != nil {
		c.Error = map[string]any{"kind": e.Err.Kind, "message": e.Err.Message, "namespace": e.Err.Namespace, "function": e.Err.Function}
	}
	j.run.Record(c)
}

// Handover implements vm.Journal.
func (j journal) Handover(n int64, task int) { j.run.Handover(n, task) }

// Answer implements vm.Journal: an attached run is live, nothing is answered.
func (j journal) Answer(int, int64, string) (vm.Entry, bool, error) { return vm.Entry{}, false, nil }

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
		return map[string]any{"$handle": x.Class.Name}
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
func digest(args []vm.Value) string {
	b, err := logjson.Marshal(plainList(args))
	if err != nil {
		return "" // bytes that are no text: the call is in the journal without their hash
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
