package llm

import (
	"net/url"
	"strings"
)

// Presets lists the providers that need no configuration, in the order in which
// they are looked for.
func Presets() []Provider {
	return []Provider{
		{Name: "anthropic", Kind: "anthropic", BaseURL: "https://api.anthropic.com", KeyEnv: "ANTHROPIC_API_KEY", Model: "claude-sonnet-5-5"},
		{Name: "openai", Kind: "openai", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY", Model: "gpt-4o-mini"},
		{Name: "gemini", Kind: "openai", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", KeyEnv: "GEMINI_API_KEY", Model: "gemini-2.5-flash"},
		{Name: "openrouter", Kind: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		{Name: "ollama", Kind: "openai", BaseURL: "http://127.0.0.1:11434/v1", Local: true},
		{Name: "lmstudio", Kind: "openai", BaseURL: "http://127.0.0.1:1234/v1", Local: true},
		{Name: "llamacpp", Kind: "openai", BaseURL: "http://127.0.0.1:8080/v1"},
		{Name: "vllm", Kind: "openai", BaseURL: "http://127.0.0.1:8000/v1"},
	}
}

func presetDialect(provider string) string {
	switch provider {
	case "ollama", "vllm", "llamacpp":
		return provider
	case "lmstudio":
		return "llamacpp"
	case "gemini", "openrouter":
		return "openai" // reasoning_effort is theirs too; they know no template of a chat
	}
	return ""
}

// dialect guesses a server's dialect from its URL where none is named. The Messages
// API has one.
func dialect(kind, named, base string) string {
	if kind == "anthropic" {
		return kind
	}
	switch named {
	case "compat":
		return "vllm"
	case "":
	default:
		return named
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || base == "", u.Hostname() == "api.openai.com":
		return "openai"
	case u.Port() == "11434", strings.Contains(base, "ollama"):
		return "ollama"
	}
	return "vllm"
}
