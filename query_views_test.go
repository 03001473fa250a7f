package ashlar_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"ashlar/kernel/event"
)

const okFn = `local function ok(v, what) if not v then error(what or "not true", 2) end end; `

// plantV1 puts a row of schema version 1 at the end of a stream, as an older program left it.
func (r *rig) plantV1(stream string, seq int64, kind, data string) {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "home", "kernel.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("INSERT INTO event (stream, seq, epoch_ms, kind, schema_version, meta, data, hash) VALUES ((SELECT id FROM stream WHERE stream = ?), ?, 1, ?, 1, '{}', ?, zeroblob(32))",
		stream, seq, kind, data); err != nil {
		r.t.Fatal(err)
	}
}

// Every view over a log whose numbers are known.
func TestTheSixViewsOfAKnownLog(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(okFn + `
		local s = knl.open({ owner = "me", budget = { beats = 9 }, meta = { job = "j" } })
		local function put(kind, beat, data) s:append({ kind = kind, meta = { beat = beat }, data = data }) end
		local long = string.rep("text ", 200)
		put("msg_user", nil, { content = long })
		put("llm_request", "b1", { request = { messages = { { role = "user", content = long } } }, window = { dropped = { 1, 2 }, before = 900, after = 70 } })
		put("llm_response", "b1", { content = {}, usage = { input_tokens = 5, output_tokens = 2, cost = 11 } })
		put("tool_call", "b1", { call_id = "x", name = "one", args = {} })
		put("tool_result", "b1", { call_id = "x", ok = true, result = long })
		put("llm_request", "b2", { request = { messages = {} }, window = { dropped = 3, note = string.rep("w ", 3000) } })
		put("llm_call_failed", "b2", { error = "e", kind = "server", retryable = true })
		put("llm_request", "b3", { request = "no list" })
		put("llm_response", "b3", { content = {}, usage = { input_tokens = 1, output_tokens = 1, thinking_tokens = 1 } })
		put("tool_call", "b3", { call_id = "x", name = "two", args = {} })
		put("tool_call", "b3", { call_id = "y", name = "open", args = {} })
		put("tool_result", "b3", { call_id = "x", ok = false, result = "no" })
		s:reserve(2); s:spend(1)

		local function enc(v) return std.json.encode(v) end
		eq(enc(knl.views.usage(s)), enc({ { stream = s:id(), calls = 2, input_tokens = 6, output_tokens = 3, thinking_tokens = 1,
			cache_read_input_tokens = 0, cache_creation_input_tokens = 0, cost = 11 } }), "usage")
		local beats = knl.views.beats(s)
		eq(#beats, 3, "beats")
		eq(enc(beats[1]), enc({ beat = "b1", seq_from = 4, seq_to = 7, dropped = 2, before = 900, after = 70,
			kinds = "llm_request,llm_response,tool_call,tool_result" }), "the first beat")
		eq(beats[2].dropped, 3, "a report that is not in the row")
		eq(beats[3].dropped, nil, "no report")
		eq(enc(knl.views.tool_pairs(s)), enc({ { beat = "b1", call_id = "x", name = "one", ok = 1 }, { beat = "b3", call_id = "x", name = "two", ok = 0 } }), "pairs")
		local kinds = {}
		for _, row in ipairs(knl.views.ledger(s)) do kinds[#kinds + 1] = row.kind .. row.amount .. row.tag end
		eq(table.concat(kinds, " "), "budget_granted9beats budget_reserved2beats budget_spent1beats", "ledger")

		local child = knl.open({ parent = s, budget = { from_parent = { beats = 2, tokens = 5 } } })
		local grand = knl.open({ parent = child, budget = { from_parent = 1 } })
		local other = knl.open({ owner = "other" })
		child:close()
		local tree = knl.views.tree(s)
		eq(#tree, 2, "the tree")
		eq(tree[1].session .. tree[1].parent, child:id() .. s:id())
		eq(tree[1].open_children, enc({ grand:id() }))
		ok(tree[1].closed_epoch_ms >= tree[1].opened_epoch_ms, "the child has ended")
		eq(tree[2].session .. tree[2].parent, grand:id() .. child:id())
		eq(tree[2].closed_epoch_ms, nil, "the grandchild is open")
		eq(#knl.views.tree(other), 0, "another tree")

		local all = knl.views.sessions(s)
		eq(#all, 4, "sessions")
		eq(all[1].session, s:id()); eq(std.json.decode(all[1].meta).job, "j"); eq(all[1].parent, nil)
		eq(all[2].parent, s:id())
		local first, more = knl.views.sessions(s, { limit = 1 })
		eq(#first, 1); eq(more, true, "truncated")
		local both = knl.views.usage(s, { sessions = { other:id(), s:id() } })
		eq(both[1].stream .. both[1].calls .. both[2].calls, other:id() .. "02", "usage of two")

		local shapes, check = knl.shapes.views, require("lshape.check")
		for name, view in pairs(knl.views) do
			for _, row in ipairs((view(s))) do ok(check(row, shapes[name]), name .. ": " .. enc(row)) end
		end
		local e = knl.error(select(2, pcall(knl.views.beats, s, { sesions = {} })))
		ok(e.message:find("sesions"), e.message)
	`)
}

// A query that is a mistake says which, by kind, and one that takes too long ends.
func TestQueriesOfAScript(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.ok(okFn + `
		local s, other = knl.open(), knl.open()
		s:append({ kind = "note", data = { n = 1, nested = { deep = { "a" } } } })
		other:append({ kind = "note", data = { n = 2 } })
		local rows, more = s:query("SELECT kind, json_extract(data, '$.nested.deep[0]') AS deep, NULL AS none FROM events WHERE stream = $stream AND kind = :k", { k = "note" })
		eq(#rows, 1); eq(rows[1].deep, "a"); eq(rows[1].none, nil); eq(more, false)
		eq(#s:query("SELECT seq FROM events WHERE stream IN $sessions AND kind = ? AND seq > ?", { "note", 0 }, { sessions = { s:id(), other:id() } }), 2)
		rows, more = s:query("SELECT seq FROM events WHERE stream = $stream; -- all", nil, { limit = 1 })
		eq(#rows, 1); eq(more, true)
		eq(type(s:query("SELECT data FROM events WHERE kind = 'note'")[1].data), "string")
		local function fails(kind, say, ...)
			local fine, err = pcall(s.query, s, ...)
			ok(not fine, "no error: " .. say)
			local e = knl.error(err)
			eq(e.kind, kind, tostring(err)); ok(e.message:find(say, 1, true), tostring(err)); eq(e.method, "query")
		end
		fails("validation", "begins with SELECT or WITH", "DELETE FROM event")
		fails("validation", "one statement", "SELECT 1; SELECT 2")
		fails("validation", "only reads", "WITH x AS (SELECT 1) DELETE FROM event")
		fails("validation", "sql: no such column", "SELECT nosuch FROM events")
		fails("validation", "not used", "SELECT 1", { a = 1 })
		fails("validation", "sessions is empty", "SELECT 1", nil, { sessions = {} })
		fails("validation", "timeout_ms is 0", "SELECT 1", nil, { timeout_ms = 0 })
		fails("validation", "limit is 0", "SELECT 1", nil, { limit = 0 })
		fails("validation", "10000", "SELECT 1", nil, { limit = 1e9 })
		fails("validation", "60000", "SELECT 1", nil, { timeout_ms = 1e12 })
		fails("unsupported", "blob", "SELECT x'00' AS b")
		fails("timeout", "50 ms", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0", nil, { timeout_ms = 50 })

		local schema = knl.api().schema
		eq(schema.table, "events")
		local names = {}
		for i, c in ipairs(schema.columns) do names[i] = c.name end
		local row = s:query("SELECT * FROM events LIMIT 1")[1]
		for _, name in ipairs(names) do ok(row[name] ~= nil, name); row[name] = nil end
		eq(next(row), nil, "a column that is not published")
	`)
}

// What an older version stored counts in the views as it does in events.
func TestViewsReadOldShapes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	res := r.ok(`local s = knl.open(); s:close(); return s:id()`)
	id := res.Value.(string)
	r.plantV1(id, 3, event.LLMRequest, `{"beat":"old","data":{"request":{},"window":{"dropped":4}},"meta":{}}`)
	r.plantV1(id, 4, event.LLMResponse, `{"beat":"old","data":{"content":[],"usage":{"input_tokens":7,"output_tokens":2}},"meta":{}}`)
	r.plantV1(id, 5, event.ToolCall, `{"beat":"old","data":{"args":{},"call_id":"c","name":"n"}}`)
	r.plantV1(id, 6, event.ToolResult, `{"beat":"old","data":{"call_id":"c","ok":true}}`)
	r.plantV1(id, 7, event.BudgetSpent, `{"data":{"amount":3,"tag":"t"},"meta":{}}`)
	r.ok(`
		local id, s = "` + id + `", knl.open()
		local o = { sessions = { id } }
		local b = knl.views.beats(s, o)[1]
		eq(b.beat .. b.kinds .. b.dropped, "oldllm_request,llm_response,tool_call,tool_result4")
		eq(knl.views.usage(s, o)[1].input_tokens, 7)
		local p = knl.views.tool_pairs(s, o)[1]
		eq(p.beat .. p.call_id .. p.name .. p.ok, "oldcn1")
		local l = knl.views.ledger(s, o)[1]
		eq(l.kind .. l.amount .. l.tag, "budget_spent3t")
	`)
}
