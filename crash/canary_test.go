package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/stdlib/llm/llmtest"
)

// leaky does with the environment what careless scripts, tools and models do.
const leaky = `
local agent = require("agent")
local function dump()
  local r = sh.exec("env; cat /proc/self/environ; cat /proc/$PPID/environ; tr '\\0' '\\n' < /proc/$(ps -o ppid= -p $PPID | tr -d ' ')/environ; echo $OPENAI_API_KEY >&2")
  return r.stdout .. r.stderr
end
local function given()
  return sh.exec("echo token=$GITHUB_TOKEN; echo $GITHUB_TOKEN | fold -w 7", { env = { GITHUB_TOKEN = std.env.get("GITHUB_TOKEN") } }).stdout
end
local function own() return { key = std.env.get("OPENAI_API_KEY"), list = { std.env.get("DB_PASSWORD") } } end
local function raise() error("failed with " .. std.env.get("ANTHROPIC_API_KEY")) end
std.task.spawn(function() sh.exec("sleep @SLEEP@", { timeout = 20 }) end)
local result = agent.run({ prompt = "go " .. std.env.get("MY_SECRET"), max_tokens = 50, extra_tools = {
  { name = "dump", description = "d", handler = dump }, { name = "given", description = "d", handler = given },
  { name = "own", description = "d", handler = own }, { name = "raise", description = "d", handler = raise },
} })
print("printed " .. std.env.get("OPENAI_API_KEY"))
io.write(std.env.get("DB_PASSWORD"):sub(1, 9)) io.write(std.env.get("DB_PASSWORD"):sub(10), "\n")
io.stderr:write(std.env.get("OPENAI_API_KEY"), "\n")
log.warn("logged " .. std.env.get("GITHUB_TOKEN"))
local s = knl.open({ meta = { key = std.env.get("OPENAI_API_KEY") } })
s:append({ kind = "note", meta = { k = std.env.get("MY_SECRET") }, data = { [std.env.get("DB_PASSWORD")] = std.env.get("OPENAI_API_KEY") } })
pcall(http.request, "http://127.0.0.1:1/?key=" .. std.env.get("OPENAI_API_KEY"), { headers = { authorization = "Bearer " .. std.env.get("OPENAI_API_KEY") } })
std.task.sleep(300)
if _CONTEXT == "raise" then error("raised " .. std.env.get("OPENAI_API_KEY")) end
return result.content .. " " .. std.env.get("OPENAI_API_KEY") .. " " .. std.env.get("ANTHROPIC_API_KEY")
`

func TestNoSecretLeaves(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"text":   {nil, 0},
		"json":   {[]string{"--json"}, 0},
		"events": {[]string{"--events", "-"}, 0},
		"raised": {[]string{"--json", "--context", "raise"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			canaries := map[string]string{
				"OPENAI_API_KEY": "sk-canary-Qx7f0penai42", "ANTHROPIC_API_KEY": "sk-ant-canary-\"q\\uote\"9", "GITHUB_TOKEN": "ghp_canaryGitHub123456",
				"DB_PASSWORD": "canary pass+word/12=", "MY_SECRET": "canary-ünïcode-secret",
			}
			key := canaries["OPENAI_API_KEY"]
			calls := make([]llmtest.Call, 0, 4)
			for i, tool := range []string{"dump", "given", "own", "raise"} {
				calls = append(calls, llmtest.Call{ID: fmt.Sprint("c", i), Name: tool, Args: fmt.Sprintf(`{"why":%q}`, key)})
			}
			srv := llmtest.New(t,
				llmtest.Reasoning("I think "+key, "I saw "+key).WithCalls(calls...),
				llmtest.Error(500, "server_error", "x", "your key "+key+" failed"),
				llmtest.Text("The key is "+key+" and "+canaries["DB_PASSWORD"]))
			p.env = []string{"ASHLAR_BASE_URL=" + srv.URL(), "ASHLAR_MODEL=openai/scripted-1"}
			for name, value := range canaries {
				p.env = append(p.env, name+"="+value)
			}
			token := fmt.Sprintf("7%d.25", os.Getpid())
			args := append([]string{"run", "-s", p.script(strings.ReplaceAll(leaky, "@SLEEP@", token)),
				"--record", "traffic.jsonl", "--result", "answer.txt", "--label", "l=" + key}, c.args...)
			if name != "events" {
				args = append(args, "--events", "events.ndjson")
			}
			cmd := p.command(binary, args...)
			found, over := make(chan []string, 1), make(chan struct{})
			go func() { found <- environments(over, canaries) }()
			e := finish(t, cmd)
			close(over)
			if e.code != c.code {
				t.Errorf("%v", e)
			}
			for _, leak := range <-found {
				t.Error(leak)
			}
			if len(srv.Requests()) != 3 {
				t.Errorf("%d requests: %v", len(srv.Requests()), e)
			}
			for name, value := range canaries {
				for _, form := range forms(value) {
					for what, text := range map[string]string{"stdout": e.stdout, "stderr": e.stderr} {
						if i := strings.Index(text, form); i >= 0 {
							t.Errorf("%s holds %s: …%.200q", what, name, text[max(0, i-100):])
						}
					}
					leaks(t, filepath.Dir(p.home), name, form)
				}
			}
			// What the model is sent is redacted too.
			for _, r := range srv.Requests() {
				for name, value := range canaries {
					for _, form := range forms(value) {
						if i := bytes.Index(r.Raw, []byte(form)); i >= 0 && name != "MY_SECRET" {
							t.Errorf("a request holds %s: …%.200q", name, r.Raw[max(0, i-100):])
						}
					}
				}
			}
			_, s, _ := p.records()
			verify(t, s)
			p.noneLeft(0, token)
		})
	}
}

// forms are a secret as it is, and as JSON writes it.
func forms(value string) []string {
	b, _ := json.Marshal(value)
	if in := string(b[1 : len(b)-1]); in != value {
		return []string{value, in}
	}
	return []string{value}
}

// leaks looks into every file below a folder.
func leaks(t *testing.T, root, name, value string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if i := bytes.Index(b, []byte(value)); i >= 0 {
			t.Errorf("%s holds %s: …%.200q", path, name, b[max(0, i-100):min(len(b), i+100)])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// environments looks at every process that is not the run itself, until over: guard,
// shells and commands.
func environments(over <-chan struct{}, canaries map[string]string) (leaked []string) {
	seen := map[string]bool{}
	for {
		select {
		case <-over:
			return leaked
		case <-time.After(2 * time.Millisecond):
		}
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, dir := range dirs {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
			if pid == os.Getpid() || bytes.HasPrefix(cmdline, []byte(binary+"\x00run")) || seen[dir] {
				continue
			}
			for name, value := range canaries {
				// one command was given its token by name
				if bytes.Contains(environ, []byte(value)) && !(name == "GITHUB_TOKEN" && bytes.Contains(environ, []byte("ASHLAR_PROC="))) {
					leaked = append(leaked, fmt.Sprintf("the environment of %s %q holds %s", dir, cmdline, name))
					seen[dir] = true
				}
			}
		}
	}
}
