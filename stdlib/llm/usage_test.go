package llm

import (
	"testing"

	"ashlar/kernel/logjson"
)

// Usage blocks as providers document them: fields are disjoint, their sum is the
// provider's own total, thinking is inside the output, and what is no count is none.
func TestUsageIsDisjointWhateverTheProviderCountsWhere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wire  wire
		block string
		want  Usage
		total int64
	}{
		"OpenAI": {"openai", `{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":192,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
			Usage{Input: 86, CacheRead: 1920, Output: 300, Thinking: 192, Whole: true}, 2306},
		"Anthropic": {"anthropic", `{"input_tokens":21,"cache_creation_input_tokens":188086,"cache_read_input_tokens":17,"cache_creation":{"ephemeral_5m_input_tokens":188086,"ephemeral_1h_input_tokens":0},"output_tokens":393,"output_tokens_details":{"thinking_tokens":120},"service_tier":"standard","server_tool_use":{"web_search_requests":1}}`,
			Usage{Input: 21, CacheRead: 17, CacheWrite: 188086, Output: 393, Thinking: 120, Whole: true}, 188517},
		"Anthropic with null": {"anthropic", `{"input_tokens":21,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,"output_tokens":3}`,
			Usage{Input: 21, Output: 3, Whole: true}, 24},
		"DeepSeek": {"openai", `{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,"prompt_cache_hit_tokens":896,"prompt_cache_miss_tokens":104,"completion_tokens_details":{"reasoning_tokens":20}}`,
			Usage{Input: 104, CacheRead: 896, Output: 50, Thinking: 20, Whole: true}, 1050},
		"OpenRouter": {"openai", `{"prompt_tokens":194,"completion_tokens":2,"total_tokens":196,"cost":0.95,"cost_details":{"upstream_inference_cost":19},"prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":50,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
			Usage{Input: 44, CacheRead: 100, CacheWrite: 50, Output: 2, Cost: 950000, Whole: true}, 196},
		"Gemini, thinking beside the completion": {"openai", `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115}`,
			Usage{Input: 10, Output: 105, Thinking: 100, Whole: true}, 115},
		"xAI, thinking beside the completion": {"openai", `{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"prompt_tokens_details":{"text_tokens":32,"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":94}}`,
			Usage{Input: 26, CacheRead: 6, Output: 103, Thinking: 94, Whole: true}, 135},
		"llama.cpp": {"openai", `{"completion_tokens":12,"prompt_tokens":57,"total_tokens":69,"prompt_tokens_details":{"cached_tokens":40}}`,
			Usage{Input: 17, CacheRead: 40, Output: 12, Whole: true}, 69},
		"Moonshot":            {"openai", `{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32,"cached_tokens":12}`, Usage{Input: 7, CacheRead: 12, Output: 13, Whole: true}, 32},
		"LiteLLM":             {"openai", `{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"cache_read_input_tokens":30,"cache_creation_input_tokens":60}`, Usage{Input: 10, CacheRead: 30, CacheWrite: 60, Output: 1, Whole: true}, 101},
		"more cached than is": {"openai", `{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":99}}`, Usage{CacheRead: 10, Output: 1, Whole: true}, 11},
		"fractions of 0":      {"openai", `{"prompt_tokens":10.0,"completion_tokens":1.0}`, Usage{Input: 10, Output: 1, Whole: true}, 11},
		"nothing":             {"openai", `{}`, Usage{}, 0},
		"half of it":          {"openai", `{"prompt_tokens":10}`, Usage{}, 0},
		"text":                {"openai", `{"prompt_tokens":"10","completion_tokens":1}`, Usage{}, 0},
		"negative":            {"anthropic", `{"input_tokens":-1,"output_tokens":5}`, Usage{Output: 5}, 5},
		"beyond all":          {"anthropic", `{"input_tokens":4611686018427387904,"output_tokens":5}`, Usage{Output: 5}, 5},
		"a stream that broke": {"anthropic", `{"input_tokens":9,"cache_read_input_tokens":4}`, Usage{Input: 9, CacheRead: 4}, 13},
	} {
		block, err := logjson.Object([]byte(c.block))
		if err != nil {
			t.Fatal(name, err)
		}
		got := usageOf(c.wire, block)
		if got != c.want || got.tokens() != c.total {
			t.Errorf("%s: %+v (%d), want %+v (%d)", name, got, got.tokens(), c.want, c.total)
		}
	}
}

func TestMissingUsageIsEstimated(t *testing.T) {
	t.Parallel()
	if got := (Usage{}).completed(320, 64); got != (Usage{Input: 100, Output: 20}) {
		t.Errorf("nothing known: %+v", got)
	}
	if got := (Usage{Input: 9, CacheRead: 4}).completed(320, 64); got != (Usage{Input: 9, CacheRead: 4, Output: 20}) {
		t.Errorf("the input known: %+v", got)
	}
	if whole := (Usage{Input: 1, Output: 2, Whole: true}); whole.completed(1000, 1000) != whole {
		t.Error("what was counted was changed")
	}
}
