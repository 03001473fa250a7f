package llm

import (
	"math"

	"ashlar/kernel/logjson"
)

// Usage is what a reply took: fields that do not overlap, whatever the provider counts
// where. Thinking is inside Output.
type Usage struct {
	Input      int64 // neither read from a cache nor written to one
	CacheRead  int64
	CacheWrite int64
	Output     int64
	Thinking   int64
	Cost       int64 // micro-USD, where the provider says it
	Whole      bool  // the provider counted all of it; else what it counted is here and the rest is 0
}

// tokens is what the tag tokens is settled with.
func (u Usage) tokens() int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// usageOf reads a provider's usage block.
func usageOf(w wire, block map[string]any) Usage {
	if w == "anthropic" {
		return messagesUsage(block)
	}
	return completionsUsage(block)
}

// completionsUsage reads the block of Chat Completions, where the prompt holds what was
// read from a cache and written to one. Thinking is inside the completion, except with
// providers whose total says that it is beside it (Gemini, xAI).
func completionsUsage(block map[string]any) (u Usage) {
	prompt, completion := figure(block["prompt_tokens"]), figure(block["completion_tokens"])
	if prompt < 0 || completion < 0 {
		return u
	}
	in, out := object(block["prompt_tokens_details"]), object(block["completion_tokens_details"])
	u.Whole = true
	u.CacheRead = min(prompt, most(in["cached_tokens"], block["cached_tokens"], block["prompt_cache_hit_tokens"], block["cache_read_input_tokens"]))
	u.CacheWrite = min(prompt-u.CacheRead, most(in["cache_write_tokens"], in["cache_creation_tokens"], block["cache_creation_input_tokens"]))
	u.Input = prompt - u.CacheRead - u.CacheWrite
	u.Output, u.Thinking = completion, most(out["reasoning_tokens"], block["reasoning_tokens"])
	if total := figure(block["total_tokens"]); total > prompt+completion {
		u.Output, u.Thinking = total-prompt, max(u.Thinking, total-prompt-completion)
	}
	u.Thinking = min(u.Thinking, u.Output)
	u.Cost = micros(block["cost"])
	return u
}

// messagesUsage reads the block of the Messages API, whose input holds neither what was
// read from a cache nor what was written to one.
func messagesUsage(block map[string]any) (u Usage) {
	input, output := figure(block["input_tokens"]), figure(block["output_tokens"])
	u.Input = max(0, input)
	u.CacheRead, u.CacheWrite = most(block["cache_read_input_tokens"]), most(block["cache_creation_input_tokens"])
	u.Output = max(0, output)
	u.Thinking = min(u.Output, most(object(block["output_tokens_details"])["thinking_tokens"]))
	u.Whole = input >= 0 && output >= 0
	return u
}

// fields is a usage as the port's result has it.
func (u Usage) fields() map[string]any {
	m := map[string]any{
		"input_tokens": u.Input, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
		"output_tokens": u.Output, "thinking_tokens": u.Thinking,
	}
	if u.Cost > 0 {
		m["cost"] = u.Cost
	}
	return m
}

// completed gives what was not counted an estimate: of the request as it was sent where
// no input is known, of the answer where no output is. sent and said are bytes.
func (u Usage) completed(sent, said int) Usage {
	if u.Whole {
		return u
	}
	if u.Input+u.CacheRead+u.CacheWrite == 0 {
		u.Input = estimate(sent)
	}
	u.Output = max(u.Output, estimate(said))
	return u
}

func estimate(bytes int) int64 { return int64(math.Ceil(float64(bytes) / bytesPerToken)) }

// most is the largest of some figures, 0 where there is none.
func most(values ...any) (n int64) {
	for _, v := range values {
		n = max(n, figure(v))
	}
	return n
}

// figure reads a count of tokens; -1 for what no provider means.
func figure(v any) int64 {
	switch n := v.(type) {
	case int64:
		if n >= 0 && n < maxCount {
			return n
		}
	case float64:
		if n >= 0 && n < maxCount && n == math.Trunc(n) {
			return int64(n)
		}
	}
	return -1
}

// micros reads an amount of USD.
func micros(v any) int64 {
	var usd float64
	switch n := v.(type) {
	case int64:
		usd = float64(n)
	case float64:
		usd = n
	}
	if usd > 0 && usd < maxCount/1e6 {
		return int64(math.Ceil(usd * 1e6))
	}
	return 0
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// bytesOf is the length of a value's JSON; 0 for what has none.
func bytesOf(v any) int {
	if v == nil {
		return 0
	}
	b, err := logjson.Marshal(v)
	if err != nil {
		return 0
	}
	return len(b)
}
