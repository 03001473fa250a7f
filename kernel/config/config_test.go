package config_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ashlar/kernel"
	"ashlar/kernel/config"
)

var (
	limits  = map[string]int64{"heap": 2_000_000_000, "sh_timeout": 30}
	presets = []string{"anthropic", "openai"}
)

// load writes the two files, "" for one that does not exist.
func load(t *testing.T, user, project string) (*config.Config, error) {
	t.Helper()
	dir := t.TempDir()
	files := []config.File{{Path: filepath.Join(dir, "user.toml")}, {Path: filepath.Join(dir, "project.toml"), Project: true}}
	for i, text := range []string{user, project} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(files[i].Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config.Load(files, limits, presets)
}

func TestWhatTheFilesSayTogether(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
[provider.mine]
kind = "openai"
base_url = "https://models.example/v1"
api_key_env = "MINE_KEY"

[provider.openai]
api_key_env = "OTHER_KEY"

[model."openai/gpt-4o"]
context_window = 128_000
max_output = 16384
price.input = 2.5
price.output = 10
price.cache_read = 1.25

[run]
beats = 50
cost = 1.5
deadline = "10m"
model = "mine/a/b"

[limits]
heap = 1_000_000
`, `
run.beats = 80
run.tokens = 9000
run.deadline = 60
[model]
"openai/gpt-4o" = { price = { input = 0.01, output = 0.01 }, context_window = 64000 }
"mine/a/b" = { price = { input = 1, output = 2 } }
[limits]
heap = 2_000_000
sh_timeout = 5
`)
	if err != nil {
		t.Fatal(err)
	}
	wantProviders := map[string]config.Provider{
		"mine":   {Kind: "openai", BaseURL: "https://models.example/v1", KeyEnv: "MINE_KEY"},
		"openai": {KeyEnv: "OTHER_KEY"},
	}
	if !reflect.DeepEqual(c.Providers, wantProviders) {
		t.Errorf("providers %+v", c.Providers)
	}
	wantRun := config.Run{Beats: 50, Tokens: 9000, Cost: 1_500_000, Deadline: time.Minute, Model: "mine/a/b"}
	if c.Run != wantRun {
		t.Errorf("run %+v, want %+v: a project narrows and never widens", c.Run, wantRun)
	}
	gpt := c.Model("openai", "gpt-4o")
	if gpt.ContextWindow != 64000 || gpt.MaxOutput != 16384 || *gpt.Price != (config.Price{Input: 2.5, Output: 10, CacheRead: 1.25, CacheWrite: 3.125}) {
		t.Errorf("gpt-4o %+v %+v: a project does not make a priced model cheaper", gpt, gpt.Price)
	}
	if m := c.Model("mine", "a/b"); m.Price == nil || m.Price.Output != 2 {
		t.Errorf("mine/a/b %+v", m)
	}
	if !reflect.DeepEqual(c.Limits, map[string]int64{"heap": 1_000_000, "sh_timeout": 5}) {
		t.Errorf("limits %v", c.Limits)
	}
	got := map[string]string{}
	for _, s := range c.Settings() {
		got[s.Key] = s.Value + " " + filepath.Base(s.Source)
	}
	want := map[string]string{
		"provider.mine.kind":                 "openai user.toml:3",
		"provider.mine.base_url":             "https://models.example/v1 user.toml:4",
		"provider.mine.api_key_env":          "MINE_KEY user.toml:5",
		"provider.openai.api_key_env":        "OTHER_KEY user.toml:8",
		"model.openai/gpt-4o.context_window": "64000 project.toml:6",
		"model.openai/gpt-4o.max_output":     "16384 user.toml:12",
		"model.openai/gpt-4o.price":          "input 2.5, output 10, cache_read 1.25, cache_write 3.125 USD a million tokens user.toml:13",
		"run.beats":                          "50 user.toml:18",
		"run.tokens":                         "9000 project.toml:3",
		"run.cost":                           "1.5 USD user.toml:19",
		"run.deadline":                       "1m0s project.toml:4",
		"run.model":                          "mine/a/b user.toml:21",
		"limits.heap":                        "1000000 user.toml:24",
		"limits.sh_timeout":                  "5 project.toml:10",
	}
	for key, value := range want {
		if got[key] != value && key != "model.mine/a/b.price" {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
	if len(got) != len(want)+1 {
		t.Errorf("settings %v", got)
	}
}

func TestWhatCannotStandInAFile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, user, project, says string }{
		{"unknown key", "[run]\nbeats = 1\nbeets = 2\n", "", "user.toml:3: unknown key run.beets"},
		{"unknown table", "[provider.openai]\napi_key = \"sk-canary\"\n", "", "user.toml:2: unknown key provider.openai.api_key"},
		{"no TOML", "a = \n", "", "user.toml:1: "},
		{"wrong type", "[run]\nbeats = \"many\"\n", "", "user.toml:2: "},
		{"not UTF-8", "[run]\nmodel = \"\xff\"\n", "", "user.toml is not UTF-8 text"},
		{"zero", "[run]\ntokens = 0\n", "", "user.toml:2: run.tokens is 0; it must be at least 1"},
		{"cost of nothing", "[run]\ncost = 0\n", "", "run.cost is 0"},
		{"negative money", "[run]\ncost = -1.0\n", "", "run.cost is -1; it is an amount of USD"},
		{"nan", "[run]\ncost = nan\n", "", "run.cost is NaN"},
		{"no duration", "[run]\ndeadline = \"soon\"\n", "", "user.toml:2: run.deadline is no duration"},
		{"half a price", "[model.\"a/b\"]\nprice.input = 1\n", "", "a price has input and output"},
		{"a model without provider", "[model.gpt]\nmax_output = 1\n", "", `model "gpt": a model is named "PROVIDER/MODEL"`},
		{"a new provider without place", "[provider.mine]\nkind = \"openai\"\n", "", "provider mine is new: it needs kind and base_url"},
		{"an unknown wire", "[provider.openai]\nkind = \"grpc\"\n", "", "user.toml:2: provider.openai.kind is \"grpc\""},
		{"no address", "[provider.openai]\nbase_url = \"example.com\"\n", "", "is no http or https address"},
		{"a key in the address", "[provider.openai]\nbase_url = \"https://k:secret@example.com\"\n", "", "holds a user"},
		{"a key for a variable", "[provider.openai]\napi_key_env = \"sk-canary\"\n", "", "never the key"},
		{"unknown limit", "[limits]\nstack = 9\n", "", "user.toml:2: limits.stack cannot be set; these can: heap, sh_timeout"},
		{"text for a limit", "[limits]\nheap = \"2 GB\"\n", "", "limits.heap must be a whole number"},
		{"a profile of later", "[run]\nprofile = \"god\"\n", "", "run.profile is \"god\""},
		{"a project's address", "", "[provider.openai]\nbase_url = \"https://evil.example/v1\"\n",
			"project.toml:2: provider.openai.base_url is not taken from a project: move `[provider.openai] base_url = \"https://evil.example/v1\"` to the config.toml in your own"},
		{"a project's key variable", "", "[provider.openai]\napi_key_env = \"AWS_SECRET_ACCESS_KEY\"\n", "provider.openai.api_key_env is not taken from a project"},
		{"a project's profile", "", "[run]\nprofile = \"dev\"\n", "project.toml:2: run.profile is not taken from a project"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.user, c.project)
			if kernel.KindOf(err) != kernel.Validation || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("%v repeats what may be a secret", err)
			}
		})
	}
}

func TestAProjectDoesNotWidenWhatHoldsWithoutAFile(t *testing.T) {
	t.Parallel()
	c, err := load(t, "", "[limits]\nheap = 90_000_000_000\nsh_timeout = 29\n")
	if err != nil || !reflect.DeepEqual(c.Limits, map[string]int64{"sh_timeout": 29}) {
		t.Errorf("%v %v", c.Limits, err)
	}
	c, err = load(t, "[limits]\nheap = 90_000_000_000\n", "")
	if err != nil || c.Limits["heap"] != 90_000_000_000 {
		t.Errorf("%v %v: the user's file sets what it likes", c.Limits, err)
	}
}

func TestNoFileSaysNothing(t *testing.T) {
	t.Parallel()
	c, err := load(t, "", "")
	if err != nil || len(c.Settings()) != 0 || c.Model("openai", "gpt-4o").Price != nil {
		t.Errorf("%+v %v", c, err)
	}
}

func TestCostIsRoundedUp(t *testing.T) {
	t.Parallel()
	p := config.Price{Input: 2.5, Output: 10, CacheRead: 1.25, CacheWrite: 3.125}
	for _, c := range []struct{ input, read, write, output, want int64 }{
		{0, 0, 0, 0, 0}, {1, 0, 0, 0, 3}, {2, 0, 0, 0, 5}, {1000, 400, 100, 50, 2500 + 500 + 313 + 500}, {1 << 60, 1 << 60, 0, 1 << 60, 1e18},
	} {
		if got := p.Cost(c.input, c.read, c.write, c.output); got != c.want {
			t.Errorf("%+v costs %d", c, got)
		}
	}
	if got := p.AtMost(1000, 10); got != 3125+100 {
		t.Errorf("at most %d", got)
	}
	if got := (config.Price{Input: 0.1, Output: 0.1}).Cost(30, 0, 0, 0); got != 3 {
		t.Errorf("0.1 × 30 is %d", got)
	}
}

// A repository may hold links: what they lead to is read where it is a file, and never
// without an end.
func TestALinkToWhatIsNoFile(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"/dev/zero", t.TempDir()} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.Symlink(to, path); err != nil {
			t.Skip(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := config.Load([]config.File{{Path: path, Project: true}}, limits, presets)
			done <- err
		}()
		select {
		case err := <-done:
			if kernel.KindOf(err) != kernel.Validation || !strings.Contains(err.Error(), "is no regular file") {
				t.Errorf("%s: %v", to, err)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s is being read", to)
		}
	}
}
