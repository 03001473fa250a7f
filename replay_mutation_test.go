package ashlar_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/stdlib/llm/llmtest"
)

// changing gives a change of the first event among the run's own whose data contain a
// text: every place of it becomes another one.
func changing(kind, from, to string) func(ashlar.Recording) int64 {
	return func(r ashlar.Recording) int64 {
		for i, e := range *r.Own() {
			if e.Kind == kind && bytes.Contains(e.Data, []byte(from)) {
				(*r.Own())[i].Data = bytes.Replace(e.Data, []byte(from), []byte(to), 1)
				return e.Seq
			}
		}
		return -1
	}
}

// A record that was changed anywhere is named at the event that was changed, or at the
// first one that what was changed leads to.
func TestAChangedRecordIsNamedAtItsEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("hello"))
	res := r.ok(`local T, s, out = std.task, knl.open{ budget = { beats = 5 } }, {}
		s:append{ kind = "msg_user", data = { content = std.fs.exists("none") and "yes" or "no" } }
		local d = knl.device{ llm = llm_of{ max_tokens = 9 } }
		out[1] = knl.beat(s, d).status
		s:append{ kind = "env", data = { v = std.env.get("ASHLAR_MODEL") } }
		s:append{ kind = "a", data = { v = sh.exec("echo out").stdout } }
		s:append{ kind = "b", data = { v = 1 } }
		s:append{ kind = "c", data = { v = 2 } }
		T.scope(function(sc) for i = 1, 3 do sc:spawn(function() T.yield() out[#out + 1] = i T.yield() s:append{ kind = "turn", data = { order = #out, i = i } } end) end end)
		return { out, std.time.millis() }`, bounds(ashlar.Bounds{Beats: 4}))
	session := r.only(res)
	for name, c := range map[string]struct {
		change func(ashlar.Recording) int64 // gives the seq that is to be named, 0 for any
		stream string                       // "" is the run's own
		kind   string
	}{
		"a result of a command": {func(r ashlar.Recording) int64 { changing(event.Syscall, `out\n`, `tuo\n`)(r); return 0 }, session, ashlar.DiffersEvent},
		"a name of a call":      {changing(event.Syscall, `"std.env.get"`, `"std.env.nix"`), "", ashlar.DiffersCall},
		"an argument":           {changing(event.Syscall, `echo out`, `echo in`), "", ashlar.DiffersCall},
		"a hash of arguments": {func(r ashlar.Recording) int64 {
			return changing(event.Syscall, `"args_hash":"`, `"args_hash":"0`)(r)
		}, "", ashlar.DiffersCall},
		"a reply of the model": {func(r ashlar.Recording) int64 {
			changing(event.Syscall, `hello`, `hallo`)(r)
			return seqOf(r.Stream(session), event.LLMResponse)
		}, session, ashlar.DiffersEvent},
		"an event of a session": {func(r ashlar.Recording) int64 {
			list := slices.Clone(r.Stream(session))
			i := slices.IndexFunc(list, func(e event.Event) bool { return e.Kind == "b" })
			list[i].Data, list[i].Hash = []byte(`{"v":7}`), event.Hash{}
			r.SetStream(session, list)
			return list[i].Seq
		}, session, ashlar.DiffersEvent},
		"a dropped event": {func(r ashlar.Recording) int64 {
			list := slices.Clone(r.Stream(session))
			i := slices.IndexFunc(list, func(e event.Event) bool { return e.Kind == "b" })
			seq := list[i].Seq
			r.SetStream(session, slices.Delete(list, i, i+1))
			return seq
		}, session, ashlar.DiffersEvent},
		"two events in another order": {func(r ashlar.Recording) int64 {
			list := slices.Clone(r.Stream(session))
			i := slices.IndexFunc(list, func(e event.Event) bool { return e.Kind == "b" })
			list[i], list[i+1] = list[i+1], list[i]
			r.SetStream(session, list)
			return list[i+1].Seq
		}, session, ashlar.DiffersEvent},
		"an added event": {func(r ashlar.Recording) int64 {
			list := slices.Clone(r.Stream(session))
			more := list[len(list)-1]
			more.Seq++
			more.Position++
			r.SetStream(session, append(list, more))
			return more.Seq
		}, session, ashlar.DiffersEvent},
		"a dropped call": {func(r ashlar.Recording) int64 {
			own := r.Own()
			i := slices.IndexFunc(*own, func(e event.Event) bool { return e.Kind == event.Syscall && bytes.Contains(e.Data, []byte(`llm.send`)) })
			*own = slices.Delete(slices.Clone(*own), i, i+1)
			return 0
		}, "", ashlar.DiffersCall},
		"a move of the pool": {func(r ashlar.Recording) int64 {
			id := "run:" + res.Run
			list := slices.Clone(r.Stream(id))
			i := slices.IndexFunc(list, func(e event.Event) bool { return e.Kind == event.BudgetReserved })
			list[i].Data = bytes.Replace(list[i].Data, []byte(`"amount":1`), []byte(`"amount":2`), 1)
			r.SetStream(id, list)
			return list[i].Seq
		}, "", ashlar.DiffersEvent},
		"a hand-over": {func(r ashlar.Recording) int64 {
			return changing(event.Handover, `"tasks":[1,`, `"tasks":[9,`)(r)
		}, "", ashlar.DiffersOrder},
		"the result of the run": {func(r ashlar.Recording) int64 {
			id := "run:" + res.Run
			list := slices.Clone(r.Stream(id))
			last := &list[len(list)-1]
			last.Data = bytes.Replace(last.Data, []byte(`"completed"`), []byte(`"failed"`), 1)
			r.SetStream(id, list)
			return last.Seq
		}, "", ashlar.DiffersEvent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := int64(-1)
			rep, err := r.ws.Replay(context.Background(), res.Run, ashlar.Mutated(2*time.Second, func(rec ashlar.Recording) { want = c.change(rec) }))
			if err != nil {
				t.Fatal(err)
			}
			d := rep.Difference
			if d == nil || rep.Equal || want < 0 {
				t.Fatalf("the change at %d was not seen: %+v", want, rep)
			}
			stream := c.stream
			if stream == "" {
				stream = "run:" + res.Run
			}
			if d.Stream != stream || d.Kind != c.kind || want > 0 && d.Seq != want {
				t.Errorf("named as %s at %s:%d, want %s at %s:%d\nrecorded %s\nreplayed %s", d.Kind, d.Stream, d.Seq, c.kind, stream, want, d.Recorded, d.Replayed)
			}
			if d.Recorded == "" && d.Replayed == "" {
				t.Error("neither side is shown")
			}
			if d.Kind == ashlar.DiffersCall && !strings.Contains(d.Position, ":") {
				t.Errorf("no position in the script: %+v", d)
			}
		})
	}
}

func seqOf(events []event.Event, kind string) int64 {
	for _, e := range events {
		if e.Kind == kind {
			return e.Seq
		}
	}
	return -1
}

// The script itself is told apart from what differs by itself.
func TestAChangedScriptIsNotReplayed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	write := func(name, text string) {
		r.t.Helper()
		if err := writeFile(r, name, text); err != nil {
			t.Fatal(err)
		}
	}
	write("lib/part.lua", `return { f = function() return std.time.millis() end }`)
	write("x.lua", `local s = knl.open() s:append{ kind = "x", data = { v = require("part").f() } } return s:id()`)
	res := r.execute(ashlar.Task{Script: r.ws.Project() + "/x.lua"})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	r.replay(res)
	write("lib/part.lua", `return { f = function() return std.time.millis() + 1 end }`)
	_, err := r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{})
	if err == nil || !strings.Contains(err.Error(), "validation: changed since") || !strings.Contains(err.Error(), "module part") {
		t.Errorf("got %v", err)
	}
	rep, err := r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{Changed: true})
	if err != nil || rep.Difference == nil || rep.Difference.Stream != r.only(res) || rep.Difference.Seq != 2 || len(rep.Changed) != 1 {
		t.Errorf("got %+v, %v", rep, err)
	}
	write("lib/part.lua", `return { f = function() return std.time.millis() end }`)
	write("x.lua", `return 1`)
	if _, err = r.ws.Replay(t.Context(), res.Run, ashlar.ReplayOptions{}); err == nil || !strings.Contains(err.Error(), "block x.lua") {
		t.Errorf("got %v", err)
	}
}
