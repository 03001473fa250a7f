package ashlar

import (
	"context"
	"encoding/json"
	"path/filepath"
	"time"

	"ashlar/kernel/config"
	"ashlar/kernel/run"
	"ashlar/kernel/store"
	"ashlar/vm"
)

// Names of the facts that a run records beside its calls.
const (
	factModule = "module" // name: the SHA-256 of a module that was loaded
	factPrice  = "price"  // provider, model: what config.toml said, or nothing
)

// input is what a run is made of beside its bounds: what Replay reads back.
func (r *Run) input() map[string]any {
	t := r.task
	in := map[string]any{
		"version": Version, "name": valid(r.chunk.Name), "agent": t.Agent, "journal": !t.NoJournal,
		"given": map[string]any{"beats": r.given.Beats, "tokens": r.given.Tokens, "tool_calls": r.given.ToolCalls, "cost": r.given.Cost},
	}
	for key, v := range map[string]string{"script": r.path, "model": t.Model, "base_url": t.BaseURL} {
		if v != "" {
			in[key] = valid(v)
		}
	}
	for key, v := range map[string]*string{"prompt": t.Prompt, "context": t.Context} {
		if v != nil {
			in[key] = valid(*v)
		}
	}
	if len(t.Globals) > 0 {
		in["globals"] = kept(t.Globals)
	}
	return in
}

// digesting is the run's loader, which records what it loaded.
func (l *live) digesting() vm.Loader { return &digestLoader{Loader: l.loader, fact: l.handle.Fact} }

// digestLoader records the digest of each module.
type digestLoader struct {
	vm.Loader
	fact func(name string, about, is []any)
}

// Load implements vm.Loader.
func (d *digestLoader) Load(ctx context.Context, name string) (vm.Chunk, error) {
	chunk, err := d.Loader.Load(ctx, name)
	if err == nil {
		d.fact(factModule, []any{valid(name)}, []any{sha256Hex(string(chunk.Source))})
	}
	return chunk, err
}

// pricing gives the prices of models, which it records.
func (l *live) pricing() func(provider, model string) (config.Price, bool) {
	return func(provider, model string) (config.Price, bool) {
		p, ok := l.ws.price(provider, model)
		var is []any
		if b, err := json.Marshal(p); ok && err == nil {
			is = []any{string(b)}
		}
		l.handle.Fact(factPrice, []any{valid(provider), valid(model)}, is)
		return p, ok
	}
}

// task is the run's task as it was.
func (rec *recording) task() Task {
	in := vm.Opts(rec.input)
	t := Task{Script: in.Str("script", ""), Agent: in.Bool("agent", false), Labels: rec.row.Labels, Model: in.Str("model", ""), BaseURL: in.Str("base_url", "")}
	for key, to := range map[string]**string{"prompt": &t.Prompt, "context": &t.Context} {
		if text, ok := rec.input[key].(string); ok {
			*to = &text
		}
	}
	if g, ok := revived(rec.input["globals"]).(map[string]any); ok {
		t.Globals = g
	}
	return t
}

// given are the bounds that the run's caller named.
func (rec *recording) given() Bounds {
	m, _ := rec.input["given"].(map[string]any)
	g := vm.Opts(m)
	return Bounds{Beats: g.Int("beats", 0), Tokens: g.Int("tokens", 0), ToolCalls: g.Int("tool_calls", 0), Cost: g.Int("cost", 0)}
}

// changed names what is no longer as it was: the block, and modules that it loaded.
func (rec *recording) changed(ctx context.Context, r *Run) (names []string) {
	if r.digest != rec.row.Digest {
		names = append(names, "block "+r.block)
	}
	for _, f := range rec.journal.Facts {
		if f.Name != factModule || len(f.Args) != 1 || len(f.Result) != 1 {
			continue
		}
		name, _ := f.Args[0].(string)
		chunk, err := r.loader.Load(ctx, name)
		switch {
		case err != nil:
			names = append(names, "module "+name+" (gone)")
		case sha256Hex(string(chunk.Source)) != f.Result[0]:
			names = append(names, "module "+name)
		}
	}
	return names
}

// workspace gives a workspace like this one for the run's project, from which nothing
// leaves.
func (rec *recording) workspace(w *Workspace, o ReplayOptions) *Workspace {
	// Without an environment of its own nothing is exported, and no level of log lines set.
	opts := Options{Project: rec.row.Project, Environ: []string{}, Rand: w.opts.Rand, Clock: w.opts.Clock}.withDefaults()
	if o.LiveModel || o.LiveTools {
		opts.Client = w.opts.Client
	} else {
		opts.Client.Transport = refusing{}
	}
	return &Workspace{opts: opts, home: w.home, project: filepath.Clean(rec.row.Project), environ: w.environ, redact: w.redact,
		ids: w.ids, url: w.url, config: w.config, stores: map[string]store.Store{}}
}

// live makes the run again, over a scratch store.
func (rec *recording) live(ctx context.Context, r *Run, again *replaying) (*live, error) {
	scratch, err := again.open(ctx, rec.url)
	if err != nil {
		return nil, err
	}
	h, err := run.New(scratch, r.ws.ids, r.ws.pid()).Begin(ctx, run.Start{
		ID: rec.id, Block: rec.row.Block, Digest: rec.row.Digest, Project: rec.row.Project, Labels: rec.row.Labels,
		Bounds: rec.row.Bounds, Input: rec.input,
	})
	if err != nil {
		return nil, err
	}
	if err := again.seed(ctx, again.gate); err != nil {
		return nil, err
	}
	again.gate.start()
	l, err := r.live(h, scratch)
	if err != nil {
		return nil, err
	}
	l.again = again
	return l, nil
}

// price gives what config.toml said of a model when the run was made.
func (a *replaying) price(provider, model string) (p config.Price, ok bool) {
	for _, f := range a.rec.journal.Facts {
		if f.Name != factPrice || len(f.Args) != 2 || f.Args[0] != any(provider) || f.Args[1] != any(model) || len(f.Result) != 1 {
			continue
		}
		text, _ := f.Result[0].(string)
		return p, json.Unmarshal([]byte(text), &p) == nil
	}
	return p, false
}

// Now implements vm.Clock: what a script reads of time is in the journal, so the
// machine's own does for the rest.
func (a *replaying) Now() time.Time { return a.clock.Now() }

// Sleep implements vm.Clock: no deadline passes by itself. What passed then is in the
// journal.
func (a *replaying) Sleep(ctx context.Context, _ time.Duration) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// AfterFunc implements vm.Timers, likewise.
func (a *replaying) AfterFunc(time.Duration, func()) (stop func() bool) {
	return func() bool { return true }
}
