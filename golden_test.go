package ashlar_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar"
	"ashlar/kernel/store/sqlite"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// golden holds text to a file of testdata/golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the events differ from %s (go test -update . writes it anew)\ngot\n%s\nwant\n%s", path, got, want)
	}
}

// The event sequences of the reference's §3.12a that concern one session, with two
// commits for a beat, settlements, and tool calls that are reserved one by one.
// Each script works on s and gives its id.
func TestEventSequences(t *testing.T) {
	t.Parallel()
	const (
		tools = `local tools = { t = { description = "d", handler = function(i) return "ran " .. tostring(i.n) end }, boom = { handler = function() error("broke", 0) end } }; `
		user  = `s:append({ kind = "msg_user", data = { content = "go" } }); `
		two   = `call({ "a", "t", { n = 1 } }, { "b", "t", { n = 2 } })`
	)
	for name, script := range map[string]string{
		"open_and_close":      `local s = knl.open() s:close()`,
		"open_with_grant":     `local s = knl.open({ owner = "me", meta = { job = "x" }, budget = { amount = 2, tag = "beats", desc = "two" } }) s:close()`,
		"beat":                `local s = knl.open({ budget = { beats = 2 } }) ` + user + `knl.beat(s, knl.device({ system = "sys", llm = function() return say("hi") end })) s:close()`,
		"beat_without_grant":  `local s = knl.open() ` + user + `knl.beat(s, knl.device({ llm = function() return say("hi") end })) s:close()`,
		"beat_two_tools":      tools + `local s = knl.open({ budget = { beats = 2, tool_calls = 5 } }) ` + user + `knl.beat(s, knl.device({ tools = tools, llm = function() return ` + two + ` end })) s:close()`,
		"beat_settled":        `local s = knl.open({ budget = { beats = 2, tokens = 1000 } }) ` + user + `knl.beat(s, knl.device({ llm = function(r) eq(r.max_tokens ~= nil, true) return say("hi") end })) s:close()`,
		"call_failed":         `local s = knl.open({ budget = { beats = 2, tokens = 1000 } }) ` + user + `knl.beat(s, knl.device({ llm = function() return nil, { kind = "overloaded", message = "busy", status = 529, retry_after = 2 } end })) s:close()`,
		"quota_short":         `local s = knl.open({ budget = { beats = 0 } }) ` + user + `knl.beat(s, knl.device({ llm = function() return say("hi") end })) s:close()`,
		"quota_short_second":  `local s = knl.open({ budget = { beats = 3, tokens = 5 } }) ` + user + `knl.beat(s, knl.device({ llm = function() return say("hi") end })) s:close()`,
		"tool_calls_short":    tools + `local s = knl.open({ budget = { tool_calls = 1 } }) ` + user + `knl.beat(s, knl.device({ tools = tools, llm = function() return ` + two + ` end })) s:close()`,
		"policy_denied":       tools + `local s = knl.open() ` + user + `knl.beat(s, knl.device({ tools = tools, tool_policy = function(b) if b.id == "a" then return "deny", "no" end end, llm = function() return ` + two + ` end })) s:close()`,
		"policy_garbage":      tools + `local s = knl.open() ` + user + `knl.beat(s, knl.device({ tools = tools, tool_policy = function() return 5 end, llm = function() return ` + two + ` end })) s:close()`,
		"tool_raised_unknown": tools + `local s = knl.open() ` + user + `knl.beat(s, knl.device({ tools = tools, llm = function() return call({ "a", "boom" }, { "b", "nobody" }) end })) s:close()`,
		"refused":             `local s = knl.open() ` + user + `knl.beat(s, knl.device({ llm = function() return { status = "refused", refusal = { kind = "model", detail = "no" }, content = { { type = "text", text = "no" } }, usage = { input_tokens = 1, output_tokens = 1 } } end })) s:close()`,
		"body_raised":         `local s pcall(knl.session, {}, function(x) s = x error("the body broke", 0) end)`,
		"left_open":           `local s = knl.open()`,
		"resume_with_grant":   `local s = knl.open({ budget = { beats = 1 } }) s:reserve(1) local h = knl.resume({ session = s:id(), budget = { beats = 4 } }) h:close()`,
		"two_closers":         `local s = knl.open() local h = knl.resume({ session = s:id() }) s:close("closed", "first") h:close()`,
		"spend_and_window":    `local s = knl.open({ budget = { beats = 9, apples = 3 } }) s:spend(2) s:spend({ apples = 9 }) knl.beat(s, knl.device({ cost = function() return 4 end, fold = function(events, d) return knl.fold(events, d), { dropped = {}, kept = 1, seed_kept = true } end, llm = function() return say("hi") end })) s:close()`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			res := r.ok(script + " return s:id()")
			golden(t, name, lines(r.events(res.Value.(string))))
		})
	}
}

// A crash after the reply: the resume says what is known of the effects.
func TestEventSequenceOfACrash(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(r.dir, "crashed.db")
	st, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	id := crashed(t, st, 2)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	r.ok(`local s = knl.resume({ session = "` + id + `", store = { sqlite = "` + path + `" } }) s:close()`)
	if st, err = sqlite.Open(context.Background(), path, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	golden(t, "crash_resumed", lines(readAll(t, st, id)))
}

// A run's own stream: what its pool gave, without the journal.
func TestEventSequenceOfAPool(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`
local tools = { t = { description = "d", handler = function(i) return "ok" end } }
local s = knl.open({ budget = { beats = 5 } })
local d = knl.device({ tools = tools, llm = function() return call({ "a", "t" }, { "b", "t" }) end })
eq(knl.beat(s, d).status, "ok") eq(knl.beat(s, d).status, "ok")
s:close() return s:id()`, bounds(ashlar.Bounds{Beats: 2, Tokens: 10_000, ToolCalls: 3}))
	if res.StoppedBy != "tool_calls" {
		t.Errorf("stopped by %q", res.StoppedBy)
	}
	var own []string
	for _, l := range strings.SplitAfter(lines(r.events("run:"+res.Run)), "\n") {
		if f := strings.Fields(l); len(f) > 1 && strings.HasPrefix(f[1], "budget_") {
			own = append(own, l[strings.Index(l, " ")+1:]) // the journal moves the seqs
		}
	}
	golden(t, "pool_run", strings.Join(own, ""))
	golden(t, "pool_session", lines(r.events(res.Value.(string))))
}
