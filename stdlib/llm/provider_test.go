package llm_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"ashlar/kernel"
	"ashlar/stdlib/llm"
	"ashlar/stdlib/llm/llmtest"
)

func TestWhereACallGoes(t *testing.T) {
	t.Parallel()
	const (
		openai = "https://api.openai.com/v1"
		gemini = "https://generativelanguage.googleapis.com/v1beta/openai"
		mine   = "http://127.0.0.1:9999/v1"
		theirs = "http://127.0.0.1:8888/v1"
	)
	for name, c := range map[string]struct {
		block, run llm.Ask
		env        string // names of set variables
		local      string // the base URL that answers for its models
		want       string // provider model base_url key-variable dialect
		kind       kernel.Kind
	}{
		"a key that is set":                   {env: "OPENAI_API_KEY", want: "openai gpt-4o-mini " + openai + " OPENAI_API_KEY openai"},
		"the order of keys":                   {env: "OPENROUTER_API_KEY GEMINI_API_KEY", want: "gemini gemini-2.5-flash " + gemini + " GEMINI_API_KEY openai"},
		"a key before a local server":         {env: "GEMINI_API_KEY", local: "http://127.0.0.1:11434/v1", want: "gemini gemini-2.5-flash " + gemini + " GEMINI_API_KEY openai"},
		"a local server":                      {local: "http://127.0.0.1:11434/v1", want: "ollama listed http://127.0.0.1:11434/v1 - ollama"},
		"a port that others use too":          {local: "http://127.0.0.1:8080/v1", kind: kernel.NotFound},
		"nothing":                             {kind: kernel.NotFound},
		"Anthropic's key":                     {env: "ANTHROPIC_API_KEY OPENAI_API_KEY", want: "anthropic claude-sonnet-5-5 https://api.anthropic.com ANTHROPIC_API_KEY anthropic"},
		"Anthropic's wire elsewhere":          {run: llm.Ask{Model: "anthropic/org/m", BaseURL: mine}, env: "ANTHROPIC_API_KEY", want: "anthropic org/m " + mine + " ANTHROPIC_API_KEY anthropic"},
		"our key before Anthropic's, there":   {block: llm.Ask{Provider: "anthropic", Model: "m", BaseURL: mine}, env: "ASHLAR_API_KEY ANTHROPIC_API_KEY", want: "anthropic m " + mine + " ASHLAR_API_KEY anthropic"},
		"a URL alone gets no key of theirs":   {block: llm.Ask{BaseURL: mine, Model: "m"}, env: "ANTHROPIC_API_KEY", want: "openai m " + mine + " - vllm"},
		"Anthropic's wire without a model":    {block: llm.Ask{Provider: "anthropic", BaseURL: mine}, local: mine, kind: kernel.Validation},
		"block before run":                    {block: llm.Ask{Model: "b"}, run: llm.Ask{Model: "r"}, env: "OPENAI_API_KEY", want: "openai b " + openai + " OPENAI_API_KEY openai"},
		"run before detection":                {run: llm.Ask{BaseURL: mine, Model: "r"}, env: "GEMINI_API_KEY", want: "openai r " + mine + " - vllm"},
		"the block's base URL":                {block: llm.Ask{BaseURL: mine}, run: llm.Ask{BaseURL: theirs, Model: "r"}, want: "openai r " + mine + " - vllm"},
		"our key, with an explicit base URL":  {run: llm.Ask{BaseURL: mine, Model: "r"}, env: "ASHLAR_API_KEY OPENAI_API_KEY", want: "openai r " + mine + " ASHLAR_API_KEY vllm"},
		"our key, without one":                {env: "ASHLAR_API_KEY OPENAI_API_KEY", want: "openai gpt-4o-mini " + openai + " OPENAI_API_KEY openai"},
		"our key alone is no provider":        {env: "ASHLAR_API_KEY", kind: kernel.NotFound},
		"provider before the first slash":     {run: llm.Ask{Model: "gemini/models/x"}, env: "GEMINI_API_KEY OPENAI_API_KEY", want: "gemini models/x " + gemini + " GEMINI_API_KEY openai"},
		"a slash of the model's own":          {run: llm.Ask{Model: "org/model", BaseURL: mine}, want: "openai org/model " + mine + " - vllm"},
		"a provider of its own with a slash":  {run: llm.Ask{Provider: "openrouter", Model: "openai/gpt-4o"}, env: "OPENROUTER_API_KEY", want: "openrouter openai/gpt-4o https://openrouter.ai/api/v1 OPENROUTER_API_KEY openai"},
		"a named provider without its key":    {block: llm.Ask{Provider: "gemini"}, env: "OPENAI_API_KEY", want: "gemini gemini-2.5-flash " + gemini + " - openai"},
		"a named one is not replaced":         {block: llm.Ask{Provider: "gemini"}, run: llm.Ask{BaseURL: mine, Model: "r"}, env: "GEMINI_API_KEY", want: "gemini gemini-2.5-flash " + gemini + " GEMINI_API_KEY openai"},
		"nor by another provider":             {block: llm.Ask{Provider: "openai"}, run: llm.Ask{Provider: "gemini", Model: "g"}, env: "OPENAI_API_KEY", want: "openai gpt-4o-mini " + openai + " OPENAI_API_KEY openai"},
		"the same one takes the run's URL":    {block: llm.Ask{Provider: "openai"}, run: llm.Ask{BaseURL: mine, Model: "r"}, env: "OPENAI_API_KEY", want: "openai r " + mine + " OPENAI_API_KEY vllm"},
		"a run's model for a block's place":   {block: llm.Ask{Provider: "gemini"}, run: llm.Ask{Model: "r"}, env: "GEMINI_API_KEY", want: "gemini r " + gemini + " GEMINI_API_KEY openai"},
		"unknown":                             {block: llm.Ask{Provider: "nobody"}, kind: kernel.Validation},
		"no URL":                              {block: llm.Ask{BaseURL: "ftp://x"}, kind: kernel.Validation},
		"a URL with a password":               {block: llm.Ask{BaseURL: "http://u:" + canary + "@h/v1"}, kind: kernel.Validation},
		"a key variable of the block's":       {block: llm.Ask{BaseURL: mine, Model: "m", KeyEnv: "MINE"}, env: "MINE ASHLAR_API_KEY", want: "openai m " + mine + " MINE vllm"},
		"one that is not set":                 {block: llm.Ask{BaseURL: mine, Model: "m", KeyEnv: "MINE"}, env: "ASHLAR_API_KEY", kind: kernel.NotFound},
		"the run's key variable and dialect":  {run: llm.Ask{BaseURL: mine, Model: "m", KeyEnv: "MINE", Dialect: "llamacpp"}, env: "MINE", want: "openai m " + mine + " MINE llamacpp"},
		"never for the block's place":         {block: llm.Ask{BaseURL: theirs}, run: llm.Ask{BaseURL: mine, Model: "m", KeyEnv: "MINE"}, env: "MINE", want: "openai m " + theirs + " - vllm"},
		"a server is asked for its model":     {run: llm.Ask{BaseURL: mine}, local: mine, want: "openai listed " + mine + " - vllm"},
		"one that lists none":                 {run: llm.Ask{BaseURL: mine}, kind: kernel.NotFound},
		"a paid service is not asked for one": {run: llm.Ask{Provider: "openrouter"}, env: "OPENROUTER_API_KEY", local: "https://openrouter.ai/api/v1", kind: kernel.Validation},
		"a service that needs no key":         {block: llm.Ask{Provider: "vllm"}, local: "http://127.0.0.1:8000/v1", want: "vllm listed http://127.0.0.1:8000/v1 - vllm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := map[string]string{}
			for _, v := range strings.Fields(c.env) {
				set[v] = "value of " + v + "\n"
			}
			learnt := ""
			d := &llm.Directory{
				Providers: llm.Presets(), Run: c.run,
				Env: func(n string) (string, bool) { v, ok := set[n]; return v, ok },
				Models: func(base string) (string, error) {
					if base == c.local {
						return "listed", nil
					}
					return "", errors.New("no answer")
				},
				Learn: func(name, value string) { learnt = name + "=" + value },
			}
			got, err := d.Resolve(c.block)
			if c.kind != "" {
				if kernel.KindOf(err) != c.kind || strings.Contains(err.Error(), canary) {
					t.Errorf("got %v, want kind %s", err, c.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			w := strings.Fields(c.want)
			if say := strings.Join([]string{got.Provider, got.Model, got.BaseURL, w[3], got.Dialect}, " "); say != c.want {
				t.Errorf("got  %s\nwant %s", say, c.want)
			}
			if want := w[3] + "=value of " + w[3]; w[3] == "-" && learnt != "" || w[3] != "-" && learnt != want {
				t.Errorf("learnt %q, want %q", learnt, want)
			}
		})
	}
}

func TestARecordingNeedsNoKeyAndNoServer(t *testing.T) {
	t.Parallel()
	d := &llm.Directory{
		Providers: llm.Presets(), Replay: &llm.Ask{Provider: "gemini", Model: "recorded"},
		Env:    func(string) (string, bool) { t.Error("a key was looked up"); return "", false },
		Models: func(string) (string, error) { t.Error("a server was asked"); return "", nil },
	}
	got, err := d.Resolve(llm.Ask{})
	if err != nil || got.Provider != "gemini" || got.Model != "recorded" {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err = d.Resolve(llm.Ask{Model: "other"}); err != nil || got.Model != "other" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTheServerListsItsModels(t *testing.T) {
	t.Parallel()
	srv := llmtest.New(t)
	for path, want := range map[string]int{"/models": 200, "/../health": 200, "/nothing": 404} {
		res, err := http.Get(srv.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
