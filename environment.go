package ashlar

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"

	"github.com/joho/godotenv"

	"ashlar/kernel"
)

// environment is a run's environment: the process's variables and the project's
// .env below an overlay that only this run sees. It implements vm.Environ.
type environment struct {
	base map[string]string

	mu      sync.RWMutex
	overlay map[string]string
}

func newEnvironment(base map[string]string) *environment {
	return &environment{base: base, overlay: map[string]string{}}
}

// Get implements vm.Environ.
func (e *environment) Get(name string) (string, bool) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if v, ok := e.overlay[name]; ok {
		return v, true
	}
	v, ok := e.base[name]
	return v, ok
}

// Set implements vm.Environ.
func (e *environment) Set(name, value string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.overlay[name] = value
}

// list gives the base in the form of os.Environ: what children start from.
func list(base map[string]string) []string {
	out := make([]string, 0, len(base))
	for name, value := range base {
		out = append(out, name+"="+value)
	}
	sort.Strings(out)
	return out
}

func fromList(environ []string) map[string]string {
	base := make(map[string]string, len(environ))
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" {
			if _, have := base[name]; !have {
				base[name] = value
			}
		}
	}
	return base
}

// bounded names what a project's .env may not set, because it would decide over
// the runtime, the loader, the network path or an interpreter of a child.
func bounded(name string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range []string{"ASHLAR_", "LD_", "DYLD_", "SSL_", "GIT_"} {
		if strings.HasPrefix(upper, prefix) {
			return true
		}
	}
	switch upper {
	case "PATH", "HOME", "SHELL", "IFS", "ENV", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "PS4", "PROMPT_COMMAND", "TMPDIR",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
		"NODE_OPTIONS", "NODE_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5OPT", "PERL5LIB", "PERL5DB",
		"RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_INIT", "LUA_PATH", "LUA_CPATH":
		return true
	}
	return false
}

// dotenv adds the project's .env to base: what is set already wins, what is
// bounded is left out with a notice. A missing file is nothing; a malformed one is
// a notice.
func dotenv(project string, base map[string]string) (notices []string) {
	path := filepath.Join(project, ".env")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return []string{fmt.Sprintf("%s cannot be read and is left out: %v", path, bare(err))}
	}
	values, err := godotenv.UnmarshalBytes(b)
	if err != nil {
		// The parser's message would repeat the line, which may hold a secret.
		return []string{path + " is malformed and is left out"}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	var left []string
	for _, name := range names {
		if bounded(name) {
			left = append(left, name)
			continue
		}
		if _, set := base[name]; !set {
			base[name] = values[name]
		}
	}
	if len(left) > 0 {
		notices = append(notices, fmt.Sprintf("%s may not set %s: ignored; set it in your own environment", path, strings.Join(left, ", ")))
	}
	return notices
}

// homeDir decides where the control plane lives.
func homeDir(base map[string]string) (string, error) {
	if h := base["ASHLAR_HOME"]; h != "" {
		abs, err := filepath.Abs(h)
		if err != nil {
			return "", kernel.Errorf("open", kernel.Validation, "ASHLAR_HOME: %w", err)
		}
		return abs, nil
	}
	if h := base["HOME"]; h != "" && filepath.IsAbs(h) {
		return filepath.Join(h, ".ashlar"), nil
	}
	return "", kernel.Errorf("open", kernel.Validation, "neither ASHLAR_HOME nor HOME is set: set ASHLAR_HOME to a directory for the log")
}
