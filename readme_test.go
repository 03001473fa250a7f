package ashlar_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/stdlib/llm/llmtest"
)

// block is one fenced block of the README: its language, whether it needs a model,
// and its text.
type block struct {
	lang, text string
	live       bool
	line       int
}

func blocks(t *testing.T) []block {
	t.Helper()
	f, err := os.Open("README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []block
	var open *block
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		n++
		switch fence, ok := strings.CutPrefix(s.Text(), "```"); {
		case ok && open == nil:
			lang, rest, _ := strings.Cut(fence, " ")
			open = &block{lang: lang, live: rest == "live", line: n}
		case ok:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += s.Text() + "\n"
		}
	}
	return all
}

// savedAs finds the name that the text before a Lua block gives its file.
var savedAs = regexp.MustCompile("`([a-z]+\\.lua)`[^`]*$")

// TestTheReadmeWorksAsTyped executes every fenced block of the README in a copy of
// its world: Lua blocks are saved under the names that the text gives them, shell
// blocks are run; those marked live talk to a scripted server in place of the
// provider or the local one.
func TestTheReadmeWorksAsTyped(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"blocks", "testdata", "Makefile"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "bin", "ashlar"), "./cmd/ashlar").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	model := llmtest.New(t, llmtest.Func(func(request map[string]any) llmtest.Reply {
		messages, _ := request["messages"].([]any)
		last, _ := messages[len(messages)-1].(map[string]any)
		tools, _ := request["tools"].([]any)
		if last["role"] == "tool" || len(tools) == 0 {
			return llmtest.Text("Done.")
		}
		fn, _ := tools[0].(map[string]any)["function"].(map[string]any)
		if fn["name"] == "get_weather" {
			return llmtest.Calls(llmtest.Call{Name: "get_weather", Args: `{"city":"Paris"}`})
		}
		return llmtest.Calls(llmtest.Call{Name: "read_file", Args: `{"path":"notes.txt"}`})
	}))
	text := string(readme)
	for _, b := range blocks(t) {
		switch b.lang {
		case "lua":
			before := text[:strings.Index(text, b.text)]
			name := savedAs.FindStringSubmatch(strings.TrimSuffix(before, "```lua\n"))
			if name == nil {
				t.Errorf("README.md:%d: the text before a Lua block must name its file", b.line)
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, name[1]), []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
		case "sh":
			run(t, dir, b, model.URL())
		default:
			t.Errorf("README.md:%d: a block of language %q is not executed", b.line, b.lang)
		}
	}
}

// run executes a shell block. The two make targets are this test's own surroundings:
// demo is run as it is with the binary at hand, test is what runs right now.
func run(t *testing.T, dir string, b block, model string) {
	t.Helper()
	script := b.text
	if strings.TrimSpace(script) == "make test" {
		return
	}
	script = strings.ReplaceAll(script, "make demo", "make -o bin/ashlar demo")
	if b.live {
		script = strings.ReplaceAll(script, "http://127.0.0.1:8080/v1", model)
		if strings.Contains(script, "OPENAI_API_KEY") {
			script = "export ASHLAR_BASE_URL=" + model + "\n" + script
		}
	}
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = append(withoutKeys(os.Environ()), "ASHLAR_HOME="+filepath.Join(dir, "home"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("README.md:%d: %v\n%s\n%s", b.line, err, script, out)
	}
	if b.live && !strings.Contains(string(out), "Done.") {
		t.Errorf("README.md:%d: the answer is missing\n%s", b.line, out)
	}
}

func withoutKeys(environ []string) []string {
	var out []string
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !strings.HasSuffix(name, "_API_KEY") && !strings.HasPrefix(name, "ASHLAR_") {
			out = append(out, kv)
		}
	}
	return out
}
