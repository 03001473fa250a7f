package ashlar

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"ashlar/embedded"
	"ashlar/kernel"
	"ashlar/kernel/session/budget"
	"ashlar/vm"
	"ashlar/vm/resolve"
)

// Bounds are the limits of one run, whatever number of sessions and tasks it opens.
// 0 is that of config.toml, and without one none.
type Bounds struct {
	Beats     int64
	Tokens    int64
	ToolCalls int64
	Cost      int64         // micro-USD
	Deadline  time.Duration // of wall time, from the start
	Heap      int64         // bytes of live memory; 0 is vm.DefaultHeap
}

// pool gives the bounds that every reserve takes from.
func (b Bounds) pool() budget.Amounts {
	pool := budget.Amounts{}
	for tag, n := range map[string]int64{budget.Beats: b.Beats, budget.Tokens: b.Tokens, budget.ToolCalls: b.ToolCalls, budget.Cost: b.Cost} {
		if n > 0 {
			pool[tag] = n
		}
	}
	return pool
}

// Task says what to run and how. Exactly one of Script and Agent is given.
type Task struct {
	Script string // a file
	Agent  bool   // the embedded agent
	Prompt *string
	// Context is further text for the block; nil is absent.
	Context *string
	Labels  map[string]any // scalars; in the opening meta of every session
	Globals map[string]any // further globals of the script: neutral values
	Bounds  Bounds
	Model   string // PROVIDER/MODEL or MODEL; "" is ASHLAR_MODEL, then what is found
	BaseURL string
	// NoJournal leaves the script's syscalls out of the log: the run cannot be
	// replayed exactly.
	NoJournal bool
	Record    string // a file to write the model traffic to
	Replay    string // a file to answer model calls from
	Sinks     []Sink
	// Exit ends the process when a script cannot be stopped otherwise and the caller
	// of Execute has not done so shortly after it returned. With it the process is the
	// run's own: its collector and its memory are. nil leaves the VM behind and says so
	// in the result.
	Exit func(code int)
}

// Run is a prepared task. It is executed once.
type Run struct {
	ws     *Workspace
	task   Task
	given  Bounds // the task's own, without those of config.toml
	block  string // name, for the record
	path   string // of the block's file, links resolved; "" for the embedded agent
	digest string
	chunk  vm.Chunk
	loader *resolve.Modules
}

// Bounds are those that hold for the run: the task's, and config.toml's where it named
// none.
func (r *Run) Bounds() Bounds { return r.task.Bounds }

// Digest is the SHA-256 of the block's source, in hexadecimal.
func (r *Run) Digest() string { return r.digest }

// Prepare finds the block and everything that can be wrong before anything is
// recorded. Kinds: validation and not_found for what the caller named.
func (w *Workspace) Prepare(t Task) (*Run, error) {
	const op = "run"
	if (t.Script != "") == t.Agent {
		return nil, kernel.Errorf(op, kernel.Validation, "name one thing to run: a file with -s FILE, or the embedded agent with -a")
	}
	if t.Record != "" && t.Replay != "" {
		return nil, kernel.Errorf(op, kernel.Validation, "--record and --replay exclude each other: one asks a model, the other does not")
	}
	if t.Agent && (t.Prompt == nil || *t.Prompt == "") {
		return nil, kernel.Errorf(op, kernel.Validation, "the agent needs a prompt: ashlar run -a \"PROMPT\"")
	}
	t.Labels = validMap(t.Labels)
	given := t.Bounds
	t.Bounds = w.bounded(given)
	if t.Bounds.Cost > 0 {
		w.tellForeignPrices()
	}
	r := &Run{ws: w, task: t, given: given}
	var tiers []resolve.Tier
	if t.Agent {
		src, _ := embedded.Module("agent.block")
		r.block, r.chunk = "agent", vm.Chunk{Name: "embedded.agent.block", Source: src, Compiled: embedded.Compiled("agent.block")}
	} else {
		src, path, err := readScript(t.Script)
		if err != nil {
			return nil, err
		}
		r.block, r.path, r.chunk = filepath.Base(path), path, vm.Chunk{Name: t.Script, Source: src}
		tiers = append(tiers, resolve.Tier{Name: "script", Dir: filepath.Dir(path)})
	}
	sum := sha256.Sum256(r.chunk.Source)
	r.digest = hex.EncodeToString(sum[:])
	r.loader = w.modules(tiers)
	if found := r.loader.Shadowed(embedded.Roots()); len(found) > 0 {
		if w.environ["ASHLAR_UNSEAL"] != "1" {
			return nil, kernel.Errorf(op, kernel.Validation, "a file would replace a sealed module: %s; rename it (ASHLAR_UNSEAL=1 turns this into a warning)", join(found))
		}
		w.opts.Notice("a file bears the name of a sealed module and is not used: " + join(found))
	}
	return r, nil
}

// modules gives the module tiers of this workspace behind those given.
func (w *Workspace) modules(tiers []resolve.Tier) *resolve.Modules {
	return &resolve.Modules{
		Tiers: append(tiers,
			resolve.Tier{Name: "private", Dir: filepath.Join(w.project, ".ashlar", "lib")},
			resolve.Tier{Name: "project", Dir: filepath.Join(w.project, "lib")},
			resolve.Tier{Name: "user", Dir: filepath.Join(w.home, "lib")}),
		Embedded: embedded.Module,
		Compiled: embedded.Compiled,
		Sealed:   embedded.Sealed,
	}
}

// readScript reads a block's file; the path is absolute, links resolved.
func readScript(name string) ([]byte, string, error) {
	const op = "run"
	path, err := filepath.Abs(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", kernel.Errorf(op, kernel.NotFound, "script %s does not exist", name)
	}
	if err != nil {
		return nil, "", kernel.Errorf(op, kernel.Storage, "script %s: %w", name, err)
	}
	if !utf8.ValidString(filepath.Base(path)) {
		return nil, "", kernel.Errorf(op, kernel.Validation, "script %q: its name is not UTF-8 text, which the log needs it to be; give the file another name", path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, "", kernel.Errorf(op, kernel.Storage, "script %s: %w", name, err)
	}
	if !st.Mode().IsRegular() {
		return nil, "", kernel.Errorf(op, kernel.Validation, "script %s is no regular file", name)
	}
	if st.Size() > vm.MaxSourceBytes {
		return nil, "", kernel.Errorf(op, kernel.Limit, "script %s is larger than %d bytes", name, vm.MaxSourceBytes)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, "", kernel.Errorf(op, kernel.Permission, "script %s: %w", name, err)
	}
	return src, path, nil
}

func join(list []string) string {
	out := ""
	for i, s := range list {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}

// String names the block, for messages.
func (r *Run) String() string { return fmt.Sprintf("%s (%.12s)", r.block, r.digest) }
