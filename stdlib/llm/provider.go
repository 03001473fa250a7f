package llm

import (
	"net/url"
	"sort"
	"strings"
	"sync"
	"unicode"

	"ashlar/kernel"
)

// Provider is one place that answers model calls.
type Provider struct {
	Name    string
	Kind    string // the wire: "openai" or "anthropic"
	BaseURL string
	KeyEnv  string // the variable that holds its key; "" for a server that needs none
	Model   string // the model when none is named; "" asks the server
	Local   bool   // runs on this machine: found by asking it for its models
}

// Ask is what a caller (a block's option, a flag, the environment) says of where
// a call goes; empty fields say nothing.
type Ask struct {
	Provider, Model, BaseURL string
	Key, KeyEnv              string // the key itself, or the variable that holds it
	Dialect                  string
}

// Target is where one call goes.
type Target struct {
	Provider, Kind, Model, BaseURL, Dialect string
	key                                     string
}

// Directory knows the providers and what the run was told of them. Its fields are
// set before the first call.
type Directory struct {
	Providers []Provider
	Run       Ask                                 // flags, then environment, then config
	Env       func(name string) (string, bool)    // the run's environment
	Models    func(base string) (string, error)   // asks a server for its first model
	Facts     func(provider, model string) Window // what is configured of a model; may be nil
	Replay    *Ask                                // set when a recording answers: no key, no detection
	Learn     func(name, value string)            // teaches the redactor a key that is going to be used; may be nil

	mu    sync.Mutex
	first map[string]string // the first model of each server that was asked
}

// find gives a provider by name.
func (d *Directory) find(name string) (Provider, bool) {
	for _, p := range d.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}

// names lists the providers for messages.
func (d *Directory) names() string {
	var all []string
	for _, p := range d.Providers {
		all = append(all, p.Name)
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

// split parts PROVIDER/MODEL at the first slash, where its head is a provider.
func (d *Directory) split(a Ask) Ask {
	if head, rest, ok := strings.Cut(a.Model, "/"); ok && a.Provider == "" {
		if _, known := d.find(head); known {
			a.Provider, a.Model = head, rest
		}
	}
	return a
}

// Resolve decides where a call goes: what the block asks, then what the run was
// told, then what is found here. Kinds: validation for an unknown provider,
// not_found where there is nothing to call.
func (d *Directory) Resolve(block Ask) (Target, error) {
	const op = "llm.resolve"
	block, run := d.split(block), d.split(d.Run)
	if d.Replay != nil {
		return d.replayed(block, run), nil
	}
	ask := merge(block, run)
	// A server that was named by its URL alone is nobody's: a provider's key does not
	// go there.
	stranger := ask.Provider == "" && ask.BaseURL != ""
	if stranger {
		ask.Provider = "openai"
	}
	if ask.Provider == "" {
		found, err := d.detect()
		if err != nil {
			return Target{}, err
		}
		ask.Provider, ask.Model = found.Name, first(ask.Model, found.Model)
	}
	p, known := d.find(ask.Provider)
	if !known {
		return Target{}, kernel.Errorf(op, kernel.Validation, "unknown provider '%s' (%s)", ask.Provider, d.names())
	}
	t := Target{Provider: p.Name, Kind: p.Kind, BaseURL: first(ask.BaseURL, p.BaseURL)}
	err := httpURL(t.BaseURL)
	if err != nil {
		return Target{}, err
	}
	t.Dialect = dialect(p.Kind, first(ask.Dialect, presetDialect(p.Name)), t.BaseURL)
	if t.key, err = d.key(ask, p, ask.BaseURL != "", stranger); err != nil {
		return Target{}, err
	}
	t.Model = ask.Model
	if t.Model == "" && ask.BaseURL == "" {
		t.Model = p.Model
	}
	if t.Model == "" && (p.Kind != "openai" || ask.BaseURL == "" && p.KeyEnv != "") {
		// The first of the hundreds that a paid service lists is nobody's choice.
		return Target{}, kernel.Errorf(op, kernel.Validation, "provider %s has no default model: name one with --model, ASHLAR_MODEL or the option model", p.Name)
	}
	if t.Model == "" {
		model, err := d.listed(t.BaseURL)
		if err != nil {
			return Target{}, kernel.Errorf(op, kernel.NotFound,
				"no model is named and %s does not list one (%s): name it with --model, ASHLAR_MODEL or the option model", t.BaseURL, kernel.Message(err))
		}
		t.Model = model
	}
	return t, nil
}

// listed asks a server for its first model, once in a run.
func (d *Directory) listed(base string) (string, error) {
	d.mu.Lock()
	model, have := d.first[base]
	d.mu.Unlock()
	if have {
		return model, nil
	}
	model, err := d.Models(base)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.first == nil {
		d.first = map[string]string{}
	}
	d.first[base] = model
	return model, nil
}

// merge adds to what the block says what the run was told. That holds for the
// block's call unless the block names another provider: one that is named is never
// replaced. A base URL without a provider stands for the provider openai, as in a
// block. Key and dialect belong to the place that they were given for.
func merge(block, run Ask) Ask {
	ask := block
	runs := run.Provider
	if runs == "" && run.BaseURL != "" {
		runs = "openai"
	}
	if block.Provider != "" && runs != "" && block.Provider != runs {
		return ask
	}
	ask.Provider = first(block.Provider, run.Provider)
	ask.Model = first(block.Model, run.Model)
	ask.BaseURL = first(block.BaseURL, run.BaseURL)
	if block.BaseURL == "" || block.BaseURL == run.BaseURL {
		if block.Key == "" && block.KeyEnv == "" {
			ask.Key, ask.KeyEnv = run.Key, run.KeyEnv
		}
		ask.Dialect = first(block.Dialect, run.Dialect)
	}
	return ask
}

// replayed answers from what the recording says of itself, so that a block that
// names nothing asks for what was recorded.
func (d *Directory) replayed(block, run Ask) Target {
	ask := *d.Replay
	t := Target{Kind: "openai"}
	t.Provider = first(block.Provider, run.Provider, ask.Provider, "openai")
	t.Model = first(block.Model, run.Model, ask.Model)
	if p, ok := d.find(t.Provider); ok {
		t.Kind, t.BaseURL = p.Kind, p.BaseURL
	}
	t.BaseURL = first(block.BaseURL, run.BaseURL, t.BaseURL, "http://replay.invalid/v1")
	t.Dialect = dialect(t.Kind, first(block.Dialect, ask.Dialect, presetDialect(t.Provider)), t.BaseURL)
	return t
}

// key finds the key of a call, and has the redactor learn it. ASHLAR_API_KEY goes
// only where a base URL was given explicitly.
func (d *Directory) key(ask Ask, p Provider, explicit, stranger bool) (string, error) {
	const op = "llm.resolve"
	name, value := "api_key", strings.TrimSpace(ask.Key)
	if value == "" {
		vars := []string{ask.KeyEnv}
		if ask.KeyEnv == "" {
			vars = []string{p.KeyEnv}
			if explicit {
				vars = []string{"ASHLAR_API_KEY", p.KeyEnv}
				if stranger {
					vars = vars[:1]
				}
			}
		}
		name, value = d.variable(vars...)
		if value == "" && ask.KeyEnv != "" {
			return "", kernel.Errorf(op, kernel.NotFound, "the variable %s, which is to hold the key for %s, is not set", ask.KeyEnv, p.Name)
		}
	}
	if value == "" {
		return "", nil
	}
	if d.Learn != nil {
		d.Learn(name, value)
	}
	if strings.ContainsFunc(value, unicode.IsControl) {
		return "", kernel.Errorf(op, kernel.Validation, "the key in %s holds a control character", name)
	}
	return value, nil
}

// variable gives the first of some variables that is set to something, without the
// line break that a file may have left at its end.
func (d *Directory) variable(names ...string) (name, value string) {
	for _, name := range names {
		if name == "" {
			continue
		}
		if v, ok := d.Env(name); ok && strings.TrimSpace(v) != "" {
			return name, strings.TrimSpace(v)
		}
	}
	return "", ""
}

// detect takes the first provider whose key is set, then a local server that
// answers for its models. A prompt never goes to a stranger.
func (d *Directory) detect() (Provider, error) {
	for _, p := range d.Providers {
		if p.KeyEnv == "" {
			continue
		}
		if v, ok := d.Env(p.KeyEnv); ok && v != "" {
			return p, nil
		}
	}
	for _, p := range d.Providers {
		if !p.Local {
			continue
		}
		if model, err := d.listed(p.BaseURL); err == nil {
			p.Model = model
			return p, nil
		}
	}
	return Provider{}, kernel.Errorf("llm.resolve", kernel.NotFound,
		"no model to call. Set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY or OPENROUTER_API_KEY; or start a local server (ollama, LM Studio); "+
			"or name one with --base-url URL --model MODEL (or ASHLAR_BASE_URL, ASHLAR_MODEL); or answer from a recording with --replay FILE")
}

func first(all ...string) string {
	for _, s := range all {
		if s != "" {
			return s
		}
	}
	return ""
}

func httpURL(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return kernel.Errorf("llm.resolve", kernel.Validation, "base URL %q is no http or https URL", base)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return kernel.Errorf("llm.resolve", kernel.Validation, "the base URL may hold no user, query or fragment; a key belongs into a variable")
	}
	return nil
}
