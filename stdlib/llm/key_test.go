package llm

import "testing"

func TestAProvidersKeyDoesNotGoToAServerNamedByItsURLAlone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		ask  Ask
		env  map[string]string
		want string
	}{
		{"only a URL", Ask{BaseURL: "http://127.0.0.1:9/v1", Model: "m"}, map[string]string{"OPENAI_API_KEY": "sk-theirs"}, ""},
		{"a URL and ours", Ask{BaseURL: "http://127.0.0.1:9/v1", Model: "m"}, map[string]string{"OPENAI_API_KEY": "sk-theirs", "ASHLAR_API_KEY": "ours-1"}, "ours-1"},
		{"a provider behind a URL", Ask{BaseURL: "http://127.0.0.1:9/v1", Model: "openai/m"}, map[string]string{"OPENAI_API_KEY": "sk-theirs"}, "sk-theirs"},
		{"ours without a URL", Ask{Model: "openai/m"}, map[string]string{"ASHLAR_API_KEY": "ours-1"}, ""},
	} {
		d := &Directory{Providers: Presets(), Run: row.ask, Env: func(name string) (string, bool) { v, ok := row.env[name]; return v, ok }}
		got, err := d.Resolve(Ask{})
		if err != nil || got.key != row.want {
			t.Errorf("%s: key %q %v, want %q", row.name, got.key, err, row.want)
		}
	}
}
