package ashlar_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar"
)

// observed runs a script in a workspace with further variables, and gives its value and
// what was written to stderr.
func observed(t *testing.T, source string, environ ...string) (value any, stderr string, notices []string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "block.lua")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	out := &buffer{}
	ws, err := ashlar.Open(context.Background(), ashlar.Options{
		Project: dir, Stderr: out, Notice: func(s string) { notices = append(notices, s) },
		Environ: append([]string{"ASHLAR_HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}, environ...),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	run, err := ws.Prepare(ashlar.Task{Script: file})
	if err != nil {
		t.Fatal(err)
	}
	res := run.Execute(context.Background())
	if res.Err != nil {
		t.Fatal(ashlar.Explain(res.Err, true))
	}
	return res.Value, out.String(), notices
}

const watched = `
tool.register("add", { description = "adds", input_schema = { type = "object" } }, function(i) return i.n + 1 end, { group = "math" })
tool.call("add", { n = 1, hidden = "hunter2" })
pcall(tool.call, "absent", {})
local url = std.env.get("URL")
local reply = http.request(url:gsub("http://", "http://me:hunter2@") .. "/x?key=hunter2#hunter2", { headers = { authorization = "hunter2" } })
pcall(http.request, url:gsub(":%d+$", ":1") .. "/y")
return { header = reply.body, child = sh.exec("printf %s \"$ASHLAR_TRACE_ID\"").stdout }
`

// echo answers with the trace id of the request.
func echo(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("x-trace-id")))
	}))
	t.Cleanup(s.Close)
	return "URL=" + s.URL
}

// TestOneTraceIDIsOnEveryLine is scenario 30 of the reference, for http and tool.
func TestOneTraceIDIsOnEveryLine(t *testing.T) {
	t.Parallel()
	value, stderr, _ := observed(t, watched, echo(t), "ASHLAR_LOG=debug",
		"ASHLAR_TRACE_ID=job 17", "ASHLAR_RUN_ID=r-1", "ASHLAR_AGENT_ID=a-1", "ASHLAR_AGENT_NAME=mason")
	const who = ` trace_id="job 17" run_id=r-1 agent_id=a-1 agent_name=mason `
	var events []string
	for line := range strings.Lines(stderr) {
		rest, ok := strings.CutPrefix(line, "debug: prefix=ashlar.obs event=")
		if !ok || !strings.Contains(line, who) {
			t.Errorf("not a line of this trace: %s", line)
		}
		events = append(events, strings.SplitN(rest, who, 2)[0])
	}
	want := "tool_register component=tool, tool_call component=tool, tool_result component=tool, tool_call component=tool, " +
		"tool_result component=tool, http_request component=http, http_response component=http, http_request component=http, http_response component=http"
	if got := strings.Join(events, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, part := range []string{" tool=add group=math\n", " tool=add ok=true duration_ms=", " tool=absent ok=false kind=not_found ",
		" method=GET url=http://127.0.0.1:", "/x status=200 duration_ms=", "/y error=network duration_ms="} {
		contains(t, stderr, part)
	}
	if strings.Contains(stderr, "hunter2") || strings.Contains(stderr, "key=") {
		t.Errorf("a secret, an argument or a query is in:\n%s", stderr)
	}
	m, _ := value.(map[string]any)
	if m["header"] != "job 17" || m["child"] != "job 17" {
		t.Errorf("header and child: %v", m)
	}
}

func TestARunWithoutATraceMakesOne(t *testing.T) {
	t.Parallel()
	value, stderr, _ := observed(t, watched, echo(t), "ASHLAR_LOG=debug")
	m, _ := value.(map[string]any)
	id, _ := m["child"].(string)
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
		t.Errorf("the child's trace id is %q", id)
	}
	if lines, same := strings.Count(stderr, "prefix=ashlar.obs"), strings.Count(stderr, " trace_id="+id+" run_id="); lines != 9 || same != lines {
		t.Errorf("%d of %d lines have the child's trace id %s:\n%s", same, lines, id, stderr)
	}
	if agents := regexp.MustCompile(`agent_id=[0-9a-f-]{36} agent_name="" `).FindAllString(stderr, -1); len(agents) != 9 || agents[0] != agents[8] {
		t.Errorf("agents: %q", agents)
	}
}

func TestATraceparentNamesTheTrace(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	for environ, want := range map[string]string{
		"TRACEPARENT=00-" + id + "-b7ad6b7169203331-01": id,
		"TRACEPARENT=00-" + id + "-b7ad6b7169203331":    "",
	} {
		value, _, _ := observed(t, watched, echo(t), environ)
		m, _ := value.(map[string]any)
		if child, _ := m["child"].(string); (child == id) != (want == id) || len(child) != 32 {
			t.Errorf("%s: the child's trace id is %q", environ, child)
		}
	}
}

func TestLogLevelDecidesWhatIsPrinted(t *testing.T) {
	t.Parallel()
	const source = `tool.register("x", {description = "x"}, function() end)
for _, level in ipairs({ "debug", "info", "warn", "error" }) do log[level]("said") end`
	for level, want := range map[string]string{
		"":      "info warn error",
		"debug": "debug debug info warn error",
		"info":  "info warn error",
		"warn":  "warn error",
		"error": "error",
		"loud":  "info warn error",
	} {
		_, stderr, notices := observed(t, source, "ASHLAR_LOG="+level)
		var got []string
		for line := range strings.Lines(stderr) {
			head, _, _ := strings.Cut(line, ":")
			got = append(got, head)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("ASHLAR_LOG=%s: %v, want %s", level, got, want)
		}
		if said := strings.Join(notices, "\n"); strings.Contains(said, `ASHLAR_LOG is "loud"`) != (level == "loud") {
			t.Errorf("ASHLAR_LOG=%s: notices %q", level, said)
		}
	}
}
