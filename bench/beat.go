package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	_ "modernc.org/sqlite" // the baseline writes with the same engine

	"ashlar/kernel/store/sqlite"
)

const beats = 300

// beatBlock opens a session for each beat and gives the time of each knl.beat.
const beatBlock = `
local knl, adapter = require("knl"), require("knl_adapter")
local dev = knl.device({ llm = adapter.port({}):open({}) })
local times = std.json.array()
for i = 1, %d do
  local s = knl.open({})
  s:append({ kind = "msg_user", data = { content = "hello" } })
  local before = std.time.now()
  local o = %s
  times[i] = std.time.now() - before
  if o.status ~= "ok" then error(std.json.encode(o)) end
  s:close()
end
return times`

// rounds is how often beats, calls and commits take turns: a machine that is slower for a
// second is so for all three.
const rounds = 4

// beat compares knl.beat with the provider's SDK streaming from the same server and
// two bare commits. What a beat commits is what the same block commits less without it.
func beat(p place) ([]figure, error) {
	m, err := startModel(func(int) (string, string, string) { return "hello yourself", "", "" })
	if err != nil {
		return nil, err
	}
	defer m.close()
	dir, err := p.sub("beat")
	if err != nil {
		return nil, err
	}
	_, without, err := timedBeats(dir, m.url, `{ status = "ok" }`)
	if err != nil {
		return nil, err
	}
	var all, calls, commits []time.Duration
	var made int64
	for round := range rounds {
		times, with, err := timedBeats(dir, m.url, `knl.beat(s, dev)`)
		if err != nil {
			return nil, err
		}
		all, made = append(all, times[len(times)/10:]...), with-without
		if times, err = bareCalls(m.url); err != nil {
			return nil, err
		}
		calls = append(calls, times[len(times)/10:]...)
		if times, err = bareCommits(filepath.Join(dir, fmt.Sprint("bare", round, ".db"))); err != nil {
			return nil, err
		}
		commits = append(commits, times[len(times)/10:]...)
	}
	got, call, commit := median(all), median(calls), median(commits)
	return []figure{
		{what: "a beat against the SDK's call and two commits", asked: 1.5, measured: float64(got) / float64(call+2*commit),
			detail: fmt.Sprintf("%.2f ms against %.2f + 2 × %.2f ms", ms(got), ms(call), ms(commit))},
		{what: "commits of a beat", asked: 2, measured: float64(made) / beats},
	}, nil
}

// timedBeats runs the block and gives the time of each beat, and the commits of the store.
func timedBeats(dir, url, call string) ([]time.Duration, int64, error) {
	v, ws, err := block(dir, url, fmt.Sprintf(beatBlock, beats, call))
	if err != nil {
		return nil, 0, err
	}
	s, err := ws.Store(context.Background())
	if err != nil {
		return nil, 0, err
	}
	commits := s.(*sqlite.Store).Commits()
	if err := ws.Close(); err != nil {
		return nil, 0, err
	}
	var times []time.Duration
	for _, t := range v.([]any) {
		f, ok := t.(float64)
		if !ok {
			n, _ := t.(int64)
			f = float64(n)
		}
		times = append(times, time.Duration(f*float64(time.Second)))
	}
	return times, commits, nil
}

// bareCalls times the SDK's own streaming call.
func bareCalls(url string) ([]time.Duration, error) {
	c := sdk.Client{Options: []option.RequestOption{option.WithBaseURL(url), option.WithAPIKey("sk-bench"), option.WithMaxRetries(0)}}
	c.Chat = sdk.NewChatService(c.Options...)
	var times []time.Duration
	for range beats {
		began := time.Now()
		stream := c.Chat.Completions.NewStreaming(context.Background(), sdk.ChatCompletionNewParams{
			Model: "scripted-1", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hello")},
			StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
		})
		acc := sdk.ChatCompletionAccumulator{}
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil {
			return nil, err
		}
		if len(acc.Choices) == 0 || acc.Choices[0].Message.Content != "hello yourself" {
			return nil, fmt.Errorf("the SDK read %+v", acc.Choices)
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// bareCommits times a commit of one small row, as durable as ours.
func bareCommits(path string) ([]time.Duration, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"PRAGMA page_size = 8192", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
		"PRAGMA wal_autocheckpoint = 500", "CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT)"} {
		if _, err := db.Exec(q); err != nil {
			return nil, err
		}
	}
	insert, err := db.Prepare("INSERT INTO t (body) VALUES (?)")
	if err != nil {
		return nil, err
	}
	defer insert.Close()
	var times []time.Duration
	for range beats {
		began := time.Now()
		tx, err := db.Begin()
		if err != nil {
			return nil, err
		}
		if _, err := tx.Stmt(insert).Exec("a body of some hundred bytes, as an event has, more or less; a body of some hundred bytes"); err != nil {
			return nil, err
		}
		if err := tx.Commit(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}
