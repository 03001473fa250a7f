package ashlar_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/store/sqlite"
	"ashlar/stdlib/llm/llmtest"
)

func writeFile(r *rig, name, text string) error {
	path := filepath.Join(r.ws.Project(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// A run that a bound cut is replayed up to there, also where its script would never end.
func TestACutRunIsReplayedUpToTheCut(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"in a loop":         `local s = knl.open() s:append{ kind = "x", data = { t = std.time.millis() } } while true do end`,
		"in a wait":         `local s = knl.open() s:append{ kind = "x" } sh.exec("sleep 60") s:append{ kind = "y" }`,
		"in a task":         `local s = knl.open() local h = std.task.spawn(function() s:append{ kind = "x" } std.task.sleep(1e6) end) h:join()`,
		"before any call":   `while true do end`,
		"in a model's call": `local s = knl.open() s:append{ kind = "msg_user", data = { content = "x" } } knl.beat(s, knl.device{ llm = llm_of{} })`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Hang())
			res := r.script(src, bounds(ashlar.Bounds{Deadline: 300 * time.Millisecond}))
			if res.StoppedBy != "deadline" {
				t.Fatalf("ended by %q, %v", res.StoppedBy, res.Err)
			}
			if rep := r.replay(res); rep.Cut != "deadline" {
				t.Errorf("got %+v", rep)
			}
		})
	}
}

// A run that was killed is replayed up to the end of its record.
func TestALostRunIsReplayedToTheEndOfItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`local s = knl.open() for i = 1, 20 do s:append{ kind = "x", data = { t = std.time.millis() } } end return 1`)
	for _, keep := range []int{4, 9, 15} {
		rep, err := r.ws.Replay(context.Background(), res.Run, ashlar.Killed(keep, r.only(res)))
		if err != nil || !rep.Equal || rep.Status != "lost" {
			t.Fatalf("%d: %+v %v", keep, rep, err)
		}
		if rep.Events < keep {
			t.Errorf("of %d events of the session only %d were compared", keep, rep.Events)
		}
	}
}

func TestReplayRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.script(`return std.time.now()`, func(t *ashlar.Task) { t.NoJournal = true })
	if _, err := r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{}); err == nil || !strings.Contains(err.Error(), "unsupported: run "+res.Run+" was made with --no-journal") {
		t.Errorf("got %v", err)
	}
	if _, err := r.ws.Replay(t.Context(), "nobody", ashlar.ReplayOptions{}); err == nil || !strings.Contains(err.Error(), "not_found") {
		t.Errorf("got %v", err)
	}
	res = r.ok(`pcall(std.task.with_timeout, 30, function() while true do end end, { grace_ms = 0 }) return 1`)
	rep, err := r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{})
	if err != nil || rep.Equal || rep.Difference == nil || rep.Difference.Kind != ashlar.DiffersHole || !strings.Contains(rep.Difference.Why, "was cut by a bound of its own") {
		t.Errorf("got %+v %v", rep, err)
	}
	res = r.ok(`return #std.fs.read("big")`, func(*ashlar.Task) {
		if err := writeFile(r, "big", strings.Repeat("x", 9<<20)); err != nil {
			t.Fatal(err)
		}
	})
	rep, err = r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{})
	if err != nil || rep.Equal || rep.Difference == nil || rep.Difference.Kind != ashlar.DiffersHole || len(rep.Holes) != 1 || !strings.Contains(rep.Holes[0], "std.fs.read") {
		t.Errorf("got %+v %v", rep, err)
	}
}

// A replay has no effect; with --live-tools what a tool's handler does is done, and with
// --live-model the model is asked.
func TestAReplayHasNoEffectButWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Calls(llmtest.Call{ID: "c", Name: "touch", Args: "{}"}), llmtest.Calls(llmtest.Call{ID: "c", Name: "touch", Args: "{}"}),
		llmtest.Text("something else"))
	res := r.ok(`std.fs.write("by-block", "x")
		local s = knl.open() s:append{ kind = "msg_user", data = { content = "go" } }
		local o = knl.beat(s, knl.device{ llm = llm_of{}, tools = { touch = { handler = function() std.fs.write("by-tool", "x") return "done" end } } })
		return o.status`)
	gone := func() (there string) {
		for _, name := range []string{"by-block", "by-tool"} {
			if os.Remove(filepath.Join(r.ws.Project(), name)) == nil {
				there += name + " "
			}
		}
		return there
	}
	gone()
	for _, c := range []struct {
		o       ashlar.ReplayOptions
		does    string
		differs string
	}{
		{ashlar.ReplayOptions{}, "", ""},
		{ashlar.ReplayOptions{LiveTools: true}, "by-tool ", ""},
		{ashlar.ReplayOptions{LiveModel: true}, "", ""}, // which says the same again
		{ashlar.ReplayOptions{LiveModel: true}, "", "something else"},
	} {
		rep, err := r.ws.Replay(t.Context(), res.Run, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := gone(); got != c.does {
			t.Errorf("%+v made %q", c.o, got)
		}
		if c.differs == "" != rep.Equal || c.differs != "" && !strings.Contains(rep.Difference.Replayed, c.differs) {
			t.Errorf("%+v: %+v %+v", c.o, rep, rep.Difference)
		}
	}
}

// A session of an earlier run that this one took up is as it was then.
func TestAReplayOfAResumedSession(t *testing.T) {
	t.Parallel()
	for cut := 1; cut <= 3; cut++ {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, llmtest.Text("a"))
			st, err := sqlite.Open(t.Context(), strings.TrimPrefix(r.ws.StoreURL(), "sqlite:"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			id := crashed(t, st, cut)
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			res := r.ok(fmt.Sprintf(`local s = knl.resume{ session = %q, budget = { beats = 2 } } local left = s:remaining()
				s:append{ kind = "msg_user", data = { content = "two" } }
				return { left, knl.beat(s, knl.device{ llm = llm_of{} }).status, #s:events(), (pcall(knl.resume, { session = "nobody" })) }`, id))
			if rep := r.replay(res); rep.Events < 8 {
				t.Errorf("%+v", rep)
			}
		})
	}
}

// BenchmarkReplay200 replays a run of 200 beats; it is to take less than a second.
func BenchmarkReplay200(b *testing.B) {
	r := newRig(b, llmtest.Func(func(map[string]any) llmtest.Reply { return llmtest.Text("an answer of some words") }))
	res := r.ok(`local s, d = knl.open{ budget = { beats = 300 } }, knl.device{ llm = llm_of{ max_tokens = 100 } }
		for i = 1, 200 do s:append{ kind = "msg_user", data = { content = "question " .. i } } knl.beat(s, d) end return 1`)
	for b.Loop() {
		r.replay(res)
	}
}
