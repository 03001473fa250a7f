package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"ashlar"
	"ashlar/kernel/event"
	"ashlar/kernel/logjson"
	"ashlar/kernel/store"
)

const toolTurns = 200

// toolsBlock is the agent with one tool, which gives the value of an expression.
const toolsBlock = `
local r = require("agent").run({ prompt = "go on", max_iterations = 1000, extra_tools = {
  { name = "look", description = "Looks.", read_only = true, handler = function(input) return %s end },
} })
if not r.ok then error(r.error) end
return r.num_turns`

// toolBeats measures what lies between a reply's end and the next request: two
// commits, the tool, the fold, the request.
func toolBeats(p place) ([]figure, error) {
	m, err := startModel(func(n int) (string, string, string) {
		if n == toolTurns {
			return "done", "", ""
		}
		return "", "look", fmt.Sprintf(`{"n":%d}`, n)
	})
	if err != nil {
		return nil, err
	}
	defer m.close()
	dir, err := p.sub("tools")
	if err != nil {
		return nil, err
	}
	_, ws, err := block(dir, m.url, fmt.Sprintf(toolsBlock, `"seen " .. input.n`))
	if err != nil {
		return nil, err
	}
	if err := ws.Close(); err != nil {
		return nil, err
	}
	if len(m.came) != toolTurns+1 {
		return nil, fmt.Errorf("%d requests, want %d", len(m.came), toolTurns+1)
	}
	var gaps []time.Duration
	for i := 1; i < len(m.came); i++ {
		gaps = append(gaps, m.came[i].Sub(m.sent[i-1]))
	}
	quarter := len(gaps) / 4
	first := median(append([]time.Duration(nil), gaps[:quarter]...))
	last := median(append([]time.Duration(nil), gaps[len(gaps)-quarter:]...))
	return []figure{
		{what: "200 beats with a tool: between reply and next request, median", asked: 3, measured: ms(median(gaps)), unit: " ms"},
		{what: "the last quarter of them against the first", asked: 1.5, measured: float64(last) / float64(first),
			detail: fmt.Sprintf("%.2f ms against %.2f ms", ms(last), ms(first))},
	}, nil
}

const growthBytes = 2000

// growth compares the log's file with its unique content: each beat adds a result of
// growthBytes that no other has, and what else its events say.
func growth(p place) ([]figure, error) {
	said := 0
	m, err := startModel(func(n int) (string, string, string) {
		if n == toolTurns {
			return "done", "", ""
		}
		args := fmt.Sprintf(`{"n":%d}`, n)
		said += growthBytes + len(args)
		return "", "look", args
	})
	if err != nil {
		return nil, err
	}
	defer m.close()
	dir, err := p.sub("growth")
	if err != nil {
		return nil, err
	}
	_, ws, err := block(dir, m.url, fmt.Sprintf(toolsBlock, fmt.Sprintf("std.crypto.random_hex(%d)", growthBytes/2)))
	if err != nil {
		return nil, err
	}
	unique, err := uniqueBytes(ws)
	if err != nil {
		return nil, err
	}
	if err := ws.Close(); err != nil {
		return nil, err
	}
	st, err := os.Stat(filepath.Join(dir, "home", "kernel.db"))
	if err != nil {
		return nil, err
	}
	return []figure{{what: "the log of 200 beats of 2 KB against its unique content", asked: 2,
		measured: float64(st.Size()) / float64(unique),
		detail:   fmt.Sprintf("%d against %d bytes; the tools' results alone are %d", st.Size(), unique, said)}}, nil
}

// uniqueBytes is what a log says, each thing once: the meta and data of every event of
// the newest run, where a message that a request repeats and a long text count where
// they first stand. It is taken from the exported events and knows nothing of how the
// store keeps them.
func uniqueBytes(ws *ashlar.Workspace) (int, error) {
	ctx := context.Background()
	ledger, err := ws.Runs(ctx)
	if err != nil {
		return 0, err
	}
	runs, err := ledger.List(ctx, "", store.MaxPage)
	if err != nil {
		return 0, err
	}
	last, err := ledger.Get(ctx, runs[len(runs)-1].ID)
	if err != nil {
		return 0, err
	}
	log, err := ws.Log(ctx)
	if err != nil {
		return 0, err
	}
	c := counter{seen: map[string]bool{}}
	for _, stream := range append([]string{last.Stream()}, last.Sessions...) {
		if err := log.Events(ctx, stream, true, c.event); err != nil {
			return 0, err
		}
	}
	return c.bytes, nil
}

const longText = 256

type counter struct {
	seen  map[string]bool
	bytes int
}

func (c *counter) event(e event.Event) error {
	c.bytes += len(e.Meta)
	data, err := logjson.Object(e.Data)
	if err != nil {
		return err
	}
	if r, ok := data["request"].(map[string]any); ok {
		messages, _ := r["messages"].([]any)
		delete(r, "messages")
		for _, m := range messages {
			if err := c.once(m); err != nil {
				return err
			}
		}
	}
	return c.value(data)
}

// once counts a value that was not counted before.
func (c *counter) once(v any) error {
	b, err := logjson.Marshal(v)
	if err != nil || c.seen[string(b)] {
		return err
	}
	c.seen[string(b)] = true
	return c.value(v)
}

func (c *counter) value(v any) error {
	b, err := logjson.Marshal(c.short(v))
	c.bytes += len(b)
	return err
}

// short replaces each long text that was counted before by nothing.
func (c *counter) short(v any) any {
	switch x := v.(type) {
	case string:
		if len(x) > longText {
			if c.seen[x] {
				return ""
			}
			c.seen[x] = true
		}
	case []any:
		for i, e := range x {
			x[i] = c.short(e)
		}
	case map[string]any:
		for k, e := range x {
			x[k] = c.short(e)
		}
	}
	return v
}
