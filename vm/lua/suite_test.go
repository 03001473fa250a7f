package lua_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/vm"
)

// suites are the language tests that come with gopher-lua, and the line at which
// each of them reaches for what the sandbox leaves out; "" is a pass to the end.
var suites = map[string]string{
	"_glua-tests/base.lua":         "test.lua:4", // dofile
	"_glua-tests/coroutine.lua":    "",
	"_glua-tests/db.lua":           "test.lua:8", // debug.setfenv
	"_glua-tests/goto.lua":         "",
	"_glua-tests/issues.lua":       "test.lua:83", // the exact text of a traceback
	"_glua-tests/math.lua":         "",
	"_glua-tests/os.lua":           "test.lua:9", // os.execute
	"_glua-tests/strings.lua":      "test.lua:5", // the text of string.dump's refusal
	"_glua-tests/table.lua":        "",
	"_glua-tests/vm.lua":           "",
	"_lua5.1-tests/attrib.lua":     "test.lua:13",                                // package.path
	"_lua5.1-tests/calls.lua":      "test.lua:241",                               // debug.getinfo
	"_lua5.1-tests/closure.lua":    "test.lua:277",                               // debug.getinfo
	"_lua5.1-tests/constructs.lua": "test.lua:189",                               // debug.getinfo
	"_lua5.1-tests/events.lua":     "test.lua:332",                               // debug.setmetatable
	"_lua5.1-tests/literals.lua":   `[string "a = 1        -- a comment..."]:11`, // debug.getinfo
	"_lua5.1-tests/locals.lua":     "",
	"_lua5.1-tests/math.lua":       "test.lua:126", // io.tmpfile
	"_lua5.1-tests/nextvar.lua":    "test.lua:174", // table.foreach, which gopher-lua lacks too
	"_lua5.1-tests/pm.lua":         "",
	"_lua5.1-tests/sort.lua":       "",
	"_lua5.1-tests/strings.lua":    "test.lua:147", // os.setlocale
	"_lua5.1-tests/vararg.lua":     "",
}

func TestSuitesOfOthers(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/yuin/gopher-lua").Output()
	if err != nil {
		t.Skip("the sources of gopher-lua are not here:", err)
	}
	for name, stop := range suites {
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
			if err != nil {
				t.Skip(err)
			}
			host, _ := testHost(t)
			_, err = run(t.Context(), t, host, string(src))
			at := ""
			if script := (*vm.Error)(nil); errors.As(err, &script) {
				at = script.Position
			}
			if at != stop || (err == nil) != (stop == "") {
				t.Errorf("stopped at %q, want %q: %v", at, stop, err)
			}
		})
	}
}
