package config

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"ashlar/kernel"
)

// Load reads files that exist, in the order in which they are to count: the user's,
// then the project's. limits are what [limits] may set, with the values that hold where no
// file sets them; presets are the
// providers that are known without a file. Errors are of kind validation, with file and
// line, or permission and limit for a file that cannot be read.
func Load(files []File, limits map[string]int64, presets []string) (*Config, error) {
	c := &Config{
		Providers: map[string]Provider{}, Models: map[string]Model{}, Limits: map[string]int64{}, settings: map[string]Setting{},
	}
	for _, f := range files {
		s, err := read(f)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		for _, step := range []func(*source) error{
			func(s *source) error { return c.providers(s, presets) },
			c.models,
			c.run,
			func(s *source) error { return c.limits(s, limits) },
		} {
			if err := step(s); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *Config) set(s *source, table, key string, value any) {
	name := table + "." + key
	c.settings[name] = Setting{Key: name, Value: fmt.Sprint(value), Source: s.at(table, key)}
}

// declared refuses what a repository may only declare.
func (s *source) declared(table, key, value string) error {
	if !s.Project || value == "" {
		return nil
	}
	return s.refuse(table, key, "is not taken from a project: move `[%s] %s = %q` to the config.toml in your own $ASHLAR_HOME", table, key, value)
}

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (c *Config) providers(s *source, presets []string) error {
	for _, name := range slices.Sorted(maps.Keys(s.doc.Provider)) {
		t := s.doc.Provider[name]
		table := "provider." + name
		if !providerName.MatchString(name) {
			return kernel.Errorf(op, kernel.Validation, "%s: provider %q: a name is small letters, digits, - and _", s.Path, name)
		}
		for _, err := range []error{s.declared(table, "base_url", t.BaseURL), s.declared(table, "api_key_env", t.APIKeyEnv)} {
			if err != nil {
				return err
			}
		}
		if t.Kind != "" && t.Kind != "openai" && t.Kind != "anthropic" {
			return s.refuse(table, "kind", "is %q; it is \"openai\" or \"anthropic\"", t.Kind)
		}
		if t.APIKeyEnv != "" && !variableName.MatchString(t.APIKeyEnv) {
			return s.refuse(table, "api_key_env", "names no variable: it is the variable's name, never the key")
		}
		if err := s.base(table, t.BaseURL); err != nil {
			return err
		}
		p := c.Providers[name]
		if p.Kind == "" && !slices.Contains(presets, name) && (t.Kind == "" || t.BaseURL == "") {
			return kernel.Errorf(op, kernel.Validation, "%s: provider %s is new: it needs kind and base_url", s.Path, name)
		}
		for _, f := range []struct {
			key, value string
			to         *string
		}{{"kind", t.Kind, &p.Kind}, {"base_url", t.BaseURL, &p.BaseURL}, {"api_key_env", t.APIKeyEnv, &p.KeyEnv}} {
			if f.value != "" {
				*f.to = f.value
				c.set(s, table, f.key, f.value)
			}
		}
		c.Providers[name] = p
	}
	return nil
}

// base checks a base URL. What it holds beside host and path is never repeated.
func (s *source) base(table, raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return s.refuse(table, "base_url", "is no http or https address")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return s.refuse(table, "base_url", "holds a user, a query or a fragment; keys come from api_key_env")
	}
	return nil
}

func (c *Config) models(s *source) error {
	for _, name := range slices.Sorted(maps.Keys(s.doc.Model)) {
		t := s.doc.Model[name]
		table := "model." + name
		if head, rest, ok := strings.Cut(name, "/"); !ok || head == "" || rest == "" {
			return kernel.Errorf(op, kernel.Validation, "%s: model %q: a model is named \"PROVIDER/MODEL\"", s.Path, name)
		}
		m := c.Models[name]
		for _, f := range []struct {
			key string
			v   *int64
			to  *int64
		}{{"context_window", t.ContextWindow, &m.ContextWindow}, {"max_output", t.MaxOutput, &m.MaxOutput}} {
			n, err := s.count(table, f.key, f.v)
			if err != nil {
				return err
			}
			if n > 0 {
				*f.to = n
				c.set(s, table, f.key, n)
			}
		}
		p, err := s.price(table, t.Price)
		if err != nil {
			return err
		}
		if p != nil && (m.Price == nil || !s.Project) { // a repository does not make a priced model cheaper
			m.Price = p
			c.settings[table+".price"] = Setting{Key: table + ".price", Value: p.String(), Source: s.at(table, "input")}
		}
		c.Models[name] = m
	}
	return nil
}

// price gives nil for a model without one.
func (s *source) price(table string, t priceTable) (*Price, error) {
	if t == (priceTable{}) {
		return nil, nil
	}
	if t.Input == nil || t.Output == nil {
		return nil, kernel.Errorf(op, kernel.Validation, "%s: %s.price: a price has input and output, in USD for a million tokens", s.Path, table)
	}
	var p Price
	for _, f := range []struct {
		key string
		v   *float64
		to  *float64
	}{{"input", t.Input, &p.Input}, {"output", t.Output, &p.Output}, {"cache_read", t.CacheRead, &p.CacheRead}, {"cache_write", t.CacheWrite, &p.CacheWrite}} {
		if f.v == nil {
			v := *t.Input
			if f.key == "cache_write" {
				v *= cacheWriteFactor
			}
			f.v = &v
		}
		n, err := s.money(table, f.key, f.v)
		if err != nil {
			return nil, err
		}
		*f.to = n
	}
	return &p, nil
}

// cacheWriteFactor is what writing to a cache costs, against the price of input, where
// a file does not say: what providers that ask for it do ask.
const cacheWriteFactor = 1.25

func (c *Config) run(s *source) error {
	const table = "run"
	t := s.doc.Run
	if err := s.declared(table, "profile", t.Profile); err != nil {
		return err
	}
	if t.Profile != "" && t.Profile != "dev" {
		return s.refuse(table, "profile", "is %q; this build has the profile dev alone", t.Profile)
	}
	for _, f := range []struct {
		key string
		v   *int64
		to  *int64
	}{{"beats", t.Beats, &c.Run.Beats}, {"tokens", t.Tokens, &c.Run.Tokens}, {"tool_calls", t.ToolCalls, &c.Run.ToolCalls}} {
		n, err := s.count(table, f.key, f.v)
		if err != nil {
			return err
		}
		if narrow(s, f.to, n) {
			c.set(s, table, f.key, n)
		}
	}
	usd, err := s.money(table, "cost", t.Cost)
	if err != nil {
		return err
	}
	if t.Cost != nil && usd == 0 {
		return s.refuse(table, "cost", "is 0; it must be more")
	}
	if narrow(s, &c.Run.Cost, int64(math.Ceil(usd*1e6-1e-6))) {
		c.set(s, table, "cost", fmt.Sprintf("%g USD", usd))
	}
	d, err := s.duration(table, "deadline", t.Deadline)
	if err != nil {
		return err
	}
	if narrow(s, &c.Run.Deadline, d) {
		c.set(s, table, "deadline", d)
	}
	if t.Model != "" {
		c.Run.Model = t.Model
		c.set(s, table, "model", t.Model)
	}
	return nil
}

// narrow sets a bound: the user's file as it likes, a project's only to less.
func narrow[T ~int64](s *source, to *T, n T) bool {
	if n == 0 || s.Project && *to != 0 && n >= *to {
		return false
	}
	*to = n
	return true
}

func (c *Config) limits(s *source, known map[string]int64) error {
	const table = "limits"
	for _, name := range slices.Sorted(maps.Keys(s.doc.Limits)) {
		old, ok := known[name]
		if !ok {
			return s.refuse(table, name, "cannot be set; these can: %s", strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		n, ok := s.doc.Limits[name].(int64)
		if !ok || n < 1 {
			return s.refuse(table, name, "must be a whole number of at least 1, in the unit that `ashlar api limits` prints")
		}
		if set, ok := c.Limits[name]; ok {
			old = set
		}
		if narrow(s, &old, n) {
			c.Limits[name] = n
			c.set(s, table, name, n)
		}
	}
	return nil
}
