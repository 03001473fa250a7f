package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
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

// growth compares the log's file with what was said: each beat adds a result of
// growthBytes that no other has.
func growth(p place) ([]figure, error) {
	unique := 0
	m, err := startModel(func(n int) (string, string, string) {
		if n == toolTurns {
			return "done", "", ""
		}
		args := fmt.Sprintf(`{"n":%d}`, n)
		unique += growthBytes + len(args)
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
	if err := ws.Close(); err != nil {
		return nil, err
	}
	st, err := os.Stat(filepath.Join(dir, "home", "kernel.db"))
	if err != nil {
		return nil, err
	}
	return []figure{{what: "the log of 200 beats of 2 KB against what was said in them", asked: 2,
		measured: float64(st.Size()) / float64(unique), detail: fmt.Sprintf("%d against %d bytes", st.Size(), unique)}}, nil
}
