package ashlar

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ashlar/kernel/config"
	"ashlar/stdlib/llm"
)

// settable gives the limits that config.toml may set, as Limits has them. The others are
// what the parts of the house agree on, and fixed.
func settable() map[string]int64 {
	names := []string{"heap", "http_body", "http_timeout", "llm_progress", "llm_retries", "llm_timeout", "sh_output", "sh_timeout"}
	limits := make(map[string]int64, len(names))
	for _, l := range Limits() {
		if slices.Contains(names, l.Name) {
			limits[l.Name] = l.Value
		}
	}
	return limits
}

// readConfig reads the user's config.toml, then the project's.
func (w *Workspace) readConfig() (err error) {
	var presets []string
	for _, p := range llm.Presets() {
		presets = append(presets, p.Name)
	}
	files := []config.File{
		{Path: filepath.Join(w.home, "config.toml")},
		{Path: filepath.Join(w.project, ".ashlar", "config.toml"), Project: true},
	}
	if w.config, err = config.Load(files, settable(), presets); err != nil {
		return err
	}
	for _, p := range w.config.Providers {
		if p.KeyEnv != "" {
			w.redact.Add(p.KeyEnv, w.environ[p.KeyEnv])
		}
	}
	return nil
}

// Settings lists what config.toml sets, each with the file and line that it stands in.
func (w *Workspace) Settings() []config.Setting { return w.config.Settings() }

// Providers lists the places that answer model calls: the presets, as config.toml
// changes them, then those that it adds.
func (w *Workspace) Providers() []llm.Provider {
	all := llm.Presets()
	var names []string
	for name := range w.config.Providers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := w.config.Providers[name]
		i := slices.IndexFunc(all, func(p llm.Provider) bool { return p.Name == name })
		if i < 0 {
			all = append(all, llm.Provider{Name: name})
			i = len(all) - 1
		}
		p := &all[i]
		p.Kind, p.BaseURL, p.KeyEnv = firstOf(c.Kind, p.Kind), firstOf(c.BaseURL, p.BaseURL), firstOf(c.KeyEnv, p.KeyEnv)
	}
	return all
}

// bounded gives a task's bounds, and where it names none those of config.toml.
func (w *Workspace) bounded(b Bounds) Bounds {
	run := w.config.Run
	for _, f := range []struct {
		to   *int64
		from int64
	}{
		{&b.Beats, run.Beats}, {&b.Tokens, run.Tokens}, {&b.ToolCalls, run.ToolCalls}, {&b.Cost, run.Cost},
		{(*int64)(&b.Deadline), int64(run.Deadline)}, {&b.Heap, w.config.Limits["heap"]},
	} {
		if *f.to == 0 {
			*f.to = f.from
		}
	}
	return b
}

// price gives what a model costs; ok is false where config.toml does not say.
func (w *Workspace) price(provider, model string) (p config.Price, ok bool) {
	if m := w.config.Model(provider, model); m.Price != nil {
		return *m.Price, true
	}
	return p, false
}

// tellForeignPrices tells whose word a bound of cost takes: prices that came with a
// repository are as good as the repository.
func (w *Workspace) tellForeignPrices() {
	for _, s := range w.config.Settings() {
		if strings.HasSuffix(s.Key, ".price") && strings.HasPrefix(s.Source, filepath.Join(w.project, ".ashlar")) {
			w.opts.Notice(s.Key + " comes from the project (" + s.Source + "): the bound of cost is as right as it is")
		}
	}
}

// limitMS reads a limit that is given in milliseconds.
func (w *Workspace) limitMS(name string) time.Duration {
	return time.Duration(w.config.Limits[name]) * time.Millisecond
}
