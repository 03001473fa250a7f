package ashlar_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// randomRuns is how many random scripts are recorded and replayed.
const randomRuns = 104

// pieces are what a random script is made of: each appends to out what it learned. S is
// a session, URL the server's address, %d a number of the piece's own.
func pieces() []string {
	return []string{
		`out[#out + 1] = { std.time.now(), os.time(), os.clock(), math.random(1000), std.crypto.uuid(), std.env.get("PATH"), os.getenv("NONE") }`,
		`out[#out + 1] = (std.time.measure(function() return std.time.millis() end))`,
		`std.fs.write("f%d.txt", "n " .. std.time.millis()) out[#out + 1] = std.fs.read("f%[1]d.txt") out[#out + 1] = pcall(std.fs.read, "none%[1]d")`,
		`local f = io.open("g%d.bin", "wb") f:write("a\nb\255\n", 7) f:close() for l in io.lines("g%[1]d.bin") do out[#out + 1] = #l end
		 local g = io.open("g%[1]d.bin") out[#out + 1] = #g:read("*a") g:seek("set", 2) out[#out + 1] = g:read(1) g:close() os.remove("g%[1]d.bin")`,
		`out[#out + 1] = sh.exec("echo %d $$; date +%%N; exit " .. math.random(0, 3))`,
		`out[#out + 1] = sh.exec({ "sh", "-c", "printf 'x\\377'; echo e >&2; sleep 5" }, { timeout = 0.05 })`,
		`out[#out + 1] = http.request(URL .. "/x%d", { method = "POST", body = tostring(std.time.millis()) })`,
		`http.request(URL .. "/stream", { stream = true, on_data = function(d) out[#out + 1] = d .. math.random(9) end })`,
		`out[#out + 1] = tostring(select(2, pcall(http.request, URL .. "/stream", { stream = true, on_data = function() error("enough %d " .. math.random(99)) end })))`,
		`out[#out + 1] = tostring(select(2, pcall(http.request, "http://127.0.0.1:1/")))`,
		`S:append{ kind = "x", meta = { n = %d }, data = { at = std.time.now(), big = ("y"):rep(math.random(600)) } } out[#out + 1] = S:len()`,
		`local ok, tag = S:reserve(1) out[#out + 1] = { ok, tag, S:remaining(), S:exhausted(), S:view("tail", { n = 2 }) }`,
		`out[#out + 1] = pcall(S.reserve, S, { tokens = 10 }) S:spend{ tokens = math.random(5) } out[#out + 1] = #S:events(2)`,
		`knl.session({ parent = S, budget = { from_parent = 1 } }, function(c) c:append{ kind = "child", data = { n = %d } } end)`,
		`out[#out + 1] = tostring(select(2, pcall(knl.open, { parent = S, budget = { from_parent = 100 } })))`,
		`local c = knl.open{ store = "mem" } c:append{ kind = "m", data = { n = c:len() } } c:close()`,
		`out[#out + 1] = tostring(select(2, pcall(function() local x = nil; return x.y end)))`,
		`tool.register("t%d", { description = "d" }, function(a) std.task.sleep(1) return sh.exec("echo " .. a.v).stdout end) out[#out + 1] = tool.call("t%[1]d", { v = math.random(50) })`,
		`out[#out + 1] = tostring(select(2, pcall(tool.call, "none%d", {})))`,
		`S:append{ kind = "msg_user", data = { content = "go %d" } }
		 local texts = {} local o = knl.beat(S, knl.device{ llm = llm_of{ max_tokens = 40 }, on_delta = function(t) texts[#texts + 1] = t .. math.random(9) end,
			tools = { look = { description = "l", input_schema = { type = "object" }, read_only = true, handler = function(a) std.task.sleep(math.random(3)) return std.time.millis() end } } })
		 out[#out + 1] = { o.status, texts }`,
		`out[#out + 1] = knl.beat(S, knl.device{ llm = llm_of{} }).status`,
		`local r = llm.send({ model = "scripted-1", messages = { { role = "user", content = "hi" } }, max_tokens = 9 }, {}) out[#out + 1] = r.status`,
		`out[#out + 1] = tostring(select(2, pcall(std.task.with_timeout, 15, function() std.task.sleep(1e6) end, { grace_ms = 5000 })))`,
		`std.task.scope(function(s) for i = 1, math.random(4) do s:spawn(function() std.task.sleep(math.random(3)) S:append{ kind = "t", data = { i = i, now = std.time.now() } }
			std.task.yield() out[#out + 1] = { i, #S:events(), S:remaining("beats") } end) end end)`,
		`local hs = {} for i = 1, 3 do hs[i] = std.task.spawn(function() if i == 2 then error({ code = math.random(9) }) end return std.crypto.random_hex(4), i end) end
		 for i = 1, 3 do out[#out + 1] = { pcall(hs[i].join, hs[i]) } if type(out[#out][2]) == "table" then out[#out] = out[#out][2].code end end`,
		`std.task.scope(function(s) local h = s:spawn(function() out[#out + 1] = tostring(select(2, pcall(std.task.sleep, 1e6))) end) std.task.sleep(2) s:cancel() pcall(h.join, h) end)`,
		`local h = std.task.spawn(function() pcall(std.task.sleep, 1e6) return S:len() end) std.task.sleep(2) h:abort() out[#out + 1] = tostring(select(2, pcall(h.join, h)))`,
	}
}

// endings are how a random script ends.
func endings() []string {
	return []string{`return out`, `return out`, `return out`, `S:close() return #out`, `error("the end " .. std.time.millis())`, `os.exit(3)`, `job.defer("no " .. math.random(9))`}
}

// randomScript is made of up to ten pieces, some of them beside one another.
func randomScript(r *rand.Rand, url string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "local URL, out = %q, {}\nlocal S = knl.open{ budget = { beats = %d, tokens = %d, tool_calls = 3 } }\n", url, 1+r.IntN(12), 200+r.IntN(4000))
	all := pieces()
	piece := func() string {
		text := all[r.IntN(len(all))]
		if strings.Contains(text, "%") {
			text = fmt.Sprintf(text, r.IntN(1000))
			text, _, _ = strings.Cut(text, "%!(EXTRA")
		}
		return text
	}
	for range 1 + r.IntN(9) {
		if r.IntN(4) > 0 {
			fmt.Fprintf(&b, "do %s end\n", piece())
			continue
		}
		b.WriteString("std.task.scope(function(sc)\n")
		for range 2 + r.IntN(2) {
			fmt.Fprintf(&b, "sc:spawn(function() %s end)\n", piece())
		}
		b.WriteString("end)\n")
	}
	b.WriteString(endings()[r.IntN(len(endings()))] + "\n")
	return b.String()
}

// What random scripts did with clock, chance, files, commands, the network, models,
// tools, tasks, sessions and budgets is replayed to the event when all of that is gone.
func TestRandomRunsReplayEqual(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasPrefix(q.URL.Path, "/stream") {
			fmt.Fprint(w, "data: one\n\ndata: two\n\ndata: three\n\ndata: [DONE]\n\n")
			return
		}
		fmt.Fprintf(w, "%s %d", q.URL.Path, rand.Int64())
	}))
	answers := llmtest.Func(func(map[string]any) llmtest.Reply {
		switch rand.IntN(6) {
		case 0:
			return llmtest.Calls(llmtest.Call{Name: "look", Args: `{"a":1}`}, llmtest.Call{Name: "look", Args: `{"a":2}`})
		case 1:
			return llmtest.Error(400, "invalid_request_error", "bad", "no such thing")
		case 2:
			return llmtest.CloseEarly("half of it")
		}
		return llmtest.Text(strings.Repeat("word ", 1+rand.IntN(20)))
	})
	r := newRig(t, answers)
	seed := rand.Uint64()
	type recorded struct {
		res    ashlar.Result
		script string
	}
	var runs []recorded
	for i := range uint64(randomRuns) {
		src := randomScript(rand.New(rand.NewPCG(seed, i)), server.URL)
		var change []func(*ashlar.Task)
		if i%4 == 0 {
			change = append(change, bounds(ashlar.Bounds{Beats: 6, Tokens: 3000, ToolCalls: 3}))
		}
		runs = append(runs, recorded{r.script(src, change...), src})
	}
	server.Close()
	r.model.Close()
	files, err := os.ReadDir(r.ws.Project())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "block-") {
			os.RemoveAll(filepath.Join(r.ws.Project(), f.Name()))
		}
	}
	events, calls, failed := 0, 0, 0
	for _, run := range runs {
		rep, err := r.ws.Replay(t.Context(), run.res.Run, ashlar.ReplayOptions{})
		if err != nil {
			t.Fatalf("%v\n%s", err, run.script)
		}
		if d := rep.Difference; d != nil || !rep.Equal {
			if d == nil {
				d = &ashlar.Difference{}
			}
			t.Errorf("seed %d: %v %q\nrecorded %.1500s\nreplayed %.1500s\nat %s\n%s\n%s", seed, d, rep.Holes, d.Recorded, d.Replayed, d.Position, d.Traceback, run.script)
		}
		events, calls = events+rep.Events, calls+rep.Calls
		if run.res.Err != nil {
			failed++
		}
	}
	if events < 10*randomRuns || calls < 5*randomRuns || failed > randomRuns*2/3 {
		t.Errorf("the runs were too small to say anything: %d events, %d calls, %d failed", events, calls, failed)
	}
	t.Logf("%d runs, %d of them failed, %d events, %d calls", len(runs), failed, events, calls)
}
