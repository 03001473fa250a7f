package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// File is one config.toml. Project marks the one that came with a repository.
type File struct {
	Path    string
	Project bool
}

// Config is what all files say together. The zero value says nothing.
type Config struct {
	Providers map[string]Provider
	Models    map[string]Model // by PROVIDER/MODEL
	Run       Run
	Limits    map[string]int64 // in the unit that `ashlar api limits` prints

	settings map[string]Setting
}

// Provider is a place that answers model calls. Empty fields leave a preset's as they
// are.
type Provider struct {
	Kind    string // the wire: "openai" or "anthropic"
	BaseURL string
	KeyEnv  string // the variable that holds its key
}

// Model is what is known of one model. 0 is unknown.
type Model struct {
	ContextWindow int64 // tokens
	MaxOutput     int64 // tokens
	Price         *Price
}

// Price is what tokens cost, in USD for a million, which is micro-USD for one.
type Price struct {
	Input, Output         float64
	CacheRead, CacheWrite float64 // left out, reading costs as input does and writing 1.25 times that
}

// Run bounds every run that names no bound of its own. 0 is none.
type Run struct {
	Beats, Tokens, ToolCalls int64
	Cost                     int64 // micro-USD
	Deadline                 time.Duration
	Model                    string // PROVIDER/MODEL or MODEL
}

// Setting is one value and where it stands.
type Setting struct {
	Key, Value, Source string // Source is FILE:LINE
}

// Settings lists every value that counts, sorted by key.
func (c *Config) Settings() []Setting {
	out := make([]Setting, 0, len(c.settings))
	for _, key := range slices.Sorted(maps.Keys(c.settings)) {
		out = append(out, c.settings[key])
	}
	return out
}

// Model gives what is known of a provider's model; the zero value for one that no
// file names.
func (c *Config) Model(provider, model string) Model { return c.Models[provider+"/"+model] }

// Cost is the price of a call in micro-USD, rounded up.
func (p Price) Cost(input, cacheRead, cacheWrite, output int64) int64 {
	return up(float64(input)*p.Input + float64(cacheRead)*p.CacheRead + float64(cacheWrite)*p.CacheWrite + float64(output)*p.Output)
}

// AtMost is what a call of so many tokens costs when each of its input tokens has the
// highest price, in micro-USD.
func (p Price) AtMost(input, output int64) int64 {
	return up(float64(input)*max(p.Input, p.CacheRead, p.CacheWrite) + float64(output)*p.Output)
}

// Reply is the longest reply, in tokens, that an amount of micro-USD covers after an
// input at its highest price; less than 1 where it does not cover any.
func (p Price) Reply(input, left int64) int64 {
	rest := float64(left - p.AtMost(input, 0))
	switch {
	case rest < 0:
		return 0
	case p.Output == 0:
		return maxReply
	}
	return int64(min(rest/p.Output, maxReply))
}

// maxReply stands for a reply of any length.
const maxReply = 1 << 40

// maxCost is a trillion USD: a sum that no bound holds and no integer overflows at.
const maxCost = 1e18

// up rounds up. A sum that is whole but for the error of binary fractions stays.
func up(micros float64) int64 { return int64(math.Ceil(min(micros, maxCost) - 1e-6)) }

func (p Price) String() string {
	return fmt.Sprintf("input %g, output %g, cache_read %g, cache_write %g USD a million tokens", p.Input, p.Output, p.CacheRead, p.CacheWrite)
}
