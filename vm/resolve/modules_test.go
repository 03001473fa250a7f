package resolve

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/vm"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func modules(near, far string) *Modules {
	return &Modules{
		Tiers:  []Tier{{Name: "project", Dir: near}, {Name: "user", Dir: far}},
		Sealed: func(name string) bool { return name == "knl" },
		Embedded: func(name string) ([]byte, bool) {
			if name == "agent" || name == "knl" {
				return []byte("embedded"), true
			}
			return nil, false
		},
	}
}

func TestTheNearestTierWins(t *testing.T) {
	t.Parallel()
	near, far := t.TempDir(), t.TempDir()
	write(t, near, "both.lua", "near")
	write(t, far, "both.lua", "far")
	write(t, far, "only/init.lua", "far init")
	write(t, far, "deep/sub.lua", "sub")
	write(t, near, "agent.lua", "mine")
	write(t, near, "embedded/agent.lua", "impostor")
	m := modules(near, far)
	for name, want := range map[string]string{
		"both": "near", "only": "far init", "deep.sub": "sub", "agent": "mine", "embedded.agent": "embedded", "knl": "embedded",
	} {
		c, err := m.Load(context.Background(), name)
		if err != nil || string(c.Source) != want {
			t.Errorf("%s: %q %v, want %q", name, c.Source, err, want)
		}
	}
}

func TestWhatCannotBeLoadedSaysWhy(t *testing.T) {
	t.Parallel()
	near, far, out := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, out, "secret.lua", "secret")
	if err := os.Symlink(filepath.Join(out, "secret.lua"), filepath.Join(near, "escape.lua")); err != nil {
		t.Fatal(err)
	}
	write(t, near, "huge.lua", strings.Repeat("-", vm.MaxSourceBytes+1))
	m := modules(near, far)
	for name, kind := range map[string]string{
		"nowhere": "not_found", "escape": "permission", "huge": "limit", "../x": "validation", "a..b": "validation",
		"/etc/passwd": "validation", "": "validation", "embedded.nowhere": "not_found",
	} {
		_, err := m.Load(context.Background(), name)
		var e *vm.Error
		if !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%q: %v, want kind %s", name, err, kind)
		}
	}
	_, err := m.Load(context.Background(), "nowhere")
	if !strings.Contains(err.Error(), filepath.Join(far, "nowhere", "init.lua")) {
		t.Errorf("the message does not say where it looked: %v", err)
	}
}

func TestAFileThatBearsASealIsNamed(t *testing.T) {
	t.Parallel()
	near, far := t.TempDir(), t.TempDir()
	m := modules(near, far)
	if got := m.Shadowed([]string{"knl", "agent"}); len(got) != 0 {
		t.Errorf("nothing shadows, got %v", got)
	}
	write(t, near, "agent.lua", "")
	write(t, far, "knl/init.lua", "")
	got := m.Shadowed([]string{"knl", "agent"})
	if len(got) != 1 || !strings.Contains(got[0], filepath.Join(far, "knl")) {
		t.Errorf("got %v", got)
	}
}
