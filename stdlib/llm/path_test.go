package llm

import "testing"

func TestAPathStaysBelowTheBaseURL(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"chat/completions": true, "v1/messages": true, "responses?x=1": true, "a/../b": true, "models/a%2Fb": true,
		"http://evil.example/v1/messages": false, "//evil.example/x": false, "/v1/messages": false, "../admin": false, "a/../../b": false,
		"@evil.example:80/x": false, "https:evil": false, `\\evil\x`: false, "%2e%2e/admin": false, "..": false, ":": false,
	} {
		if got := below(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
