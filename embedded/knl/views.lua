-- knl.views: rows computed from the log, each view one SELECT through session:query.
--
--   views.usage(session, opts?)      -> {{stream, calls, input_tokens, output_tokens, thinking_tokens,
--                                         cache_read_input_tokens, cache_creation_input_tokens, cost}…}, truncated
--   views.ledger(session, opts?)     -> {{seq, kind, amount, tag}…}          one for each budget event
--   views.beats(session, opts?)      -> {{beat, seq_from, seq_to, kinds, dropped?, before?, after?}…}
--   views.tool_pairs(session, opts?) -> {{beat, call_id, name, ok}…}         one for each answered call
--   views.sessions(session, opts?)   -> {{session, meta, parent?, opened_epoch_ms, closed_epoch_ms?}…}
--                                                                            every session of the log, as they began
--   views.tree(session, opts?)       -> {{session, parent, opened_epoch_ms, closed_epoch_ms?, open_children?}…}
--                                                                            what was opened below the session
--
-- opts: sessions (ids; default the session's own), timeout_ms, limit: those of query. A column without a value
-- is absent; meta and open_children are JSON text, dropped is a count, ok is 1 or 0. cost is in micro-USD. usage
-- is what the providers said; it is never reconciled with the ledger. A reply without any counts 0, a failed call
-- is one where a usage came with it. An answer belongs to a call of its own beat. Events of schema version 1 count
-- as what they are today: their old object, {beat, meta, data}, is in the column data.

-- today gives events with the columns that a view wants, whatever version they were stored in.
local function today(columns, where)
  return "SELECT " .. columns .. " FROM events AS e WHERE " .. where
end

local DATA = "CASE WHEN e.schema_version < 2 THEN json_extract(e.data, '$.data') ELSE e.data END"
local BEAT = "CASE WHEN e.schema_version < 2 THEN coalesce(json_extract(e.data, '$.meta.beat'), json_extract(e.data, '$.beat')) ELSE json_extract(e.meta, '$.beat') END"
-- Of a request, the beat alone is wanted; its data would be put together first.
local META = "CASE WHEN e.schema_version < 2 THEN coalesce(json_extract(e.data, '$.meta'), '{}') ELSE e.meta END"

local SQL = {}

SQL.usage = [[
WITH used AS MATERIALIZED (
]] .. today("e.stream AS stream, e.kind AS kind, json_extract(" .. DATA .. ", '$.usage') AS usage",
  "e.stream IN $sessions AND e.kind IN ('llm_response', 'llm_call_failed')") .. [[
),
calls AS (
  SELECT stream, CASE WHEN json_type(usage) = 'object' THEN usage ELSE '{}' END AS usage FROM used
  WHERE kind = 'llm_response' OR json_type(usage) = 'object'
)
SELECT s.value AS stream, count(c.stream) AS calls,
  coalesce(sum(json_extract(c.usage, '$.input_tokens')), 0) AS input_tokens,
  coalesce(sum(json_extract(c.usage, '$.output_tokens')), 0) AS output_tokens,
  coalesce(sum(json_extract(c.usage, '$.thinking_tokens')), 0) AS thinking_tokens,
  coalesce(sum(json_extract(c.usage, '$.cache_read_input_tokens')), 0) AS cache_read_input_tokens,
  coalesce(sum(json_extract(c.usage, '$.cache_creation_input_tokens')), 0) AS cache_creation_input_tokens,
  coalesce(sum(json_extract(c.usage, '$.cost')), 0) AS cost
FROM json_each($sessions) AS s LEFT JOIN calls AS c ON c.stream = s.value
GROUP BY s.key ORDER BY s.key]]

SQL.ledger = [[
WITH moves AS MATERIALIZED (
]] .. today("e.position AS position, e.seq AS seq, e.kind AS kind, " .. DATA .. " AS data",
  "e.stream IN $sessions AND e.kind IN ('budget_granted', 'budget_reserved', 'budget_refused', 'budget_spent', 'budget_settled')") .. [[
)
SELECT seq, kind, coalesce(json_extract(data, '$.amount'), json_extract(data, '$.used')) AS amount, json_extract(data, '$.tag') AS tag
FROM moves ORDER BY position]]

-- The report of the window is beside the request, in the row itself: it is read there, and the request is not
-- put together for it. A report too long for the row is in the whole object alone.
SQL.beats = [[
WITH labelled AS MATERIALIZED (
]] .. today("e.position AS position, e.stream AS stream, e.seq AS seq, e.kind AS kind, " .. BEAT .. " AS beat", "e.stream IN $sessions") .. [[
),
stored AS MATERIALIZED (
  SELECT l.position, substr(b.data, 9) AS rest, b.data AS data, b.schema_version AS version
  FROM labelled AS l JOIN event AS b ON b.position = l.position WHERE l.kind = 'llm_request' AND l.beat IS NOT NULL
),
cut AS (
  SELECT position, version, data, CASE WHEN substr(data, 1, 8) = 'request:' THEN substr(rest, instr(rest, ':') + 1) END AS rest FROM stored
),
reports AS MATERIALIZED (
  SELECT position, CASE
    WHEN version < 2 THEN json_extract(data, '$.data.window')
    WHEN rest IS NULL AND json_valid(data) THEN json_extract(data, '$.window')
    WHEN substr(rest, instr(rest, ':') + 1, 1) = '{' AND instr(rest, char(2)) = 0
      THEN json_extract(replace(substr(rest, instr(rest, ':') + 1), char(3), 'null'), '$.window')
    ELSE (SELECT json_extract(w.data, '$.window') FROM events AS w WHERE w.position = cut.position)
  END AS window FROM cut
)
SELECT l.beat AS beat, min(l.seq) AS seq_from, max(l.seq) AS seq_to, group_concat(l.kind, ',' ORDER BY l.seq) AS kinds,
  max(CASE json_type(r.window, '$.dropped') WHEN 'array' THEN json_array_length(r.window, '$.dropped')
    WHEN 'integer' THEN json_extract(r.window, '$.dropped') END) AS dropped,
  max(json_extract(r.window, '$.before')) AS before, max(json_extract(r.window, '$.after')) AS after
FROM labelled AS l LEFT JOIN reports AS r ON r.position = l.position
WHERE l.beat IS NOT NULL GROUP BY l.stream, l.beat ORDER BY min(l.position)]]

SQL.tool_pairs = [[
WITH said AS MATERIALIZED (
]] .. today("e.position AS position, e.stream AS stream, e.kind AS kind, " .. BEAT .. " AS beat, " .. DATA .. " AS data",
  "e.stream IN $sessions AND e.kind IN ('tool_call', 'tool_result')") .. [[
),
spoken AS MATERIALIZED (
  SELECT position, stream, kind, beat, json_extract(data, '$.call_id') AS call_id,
    json_extract(data, '$.name') AS name, json_extract(data, '$.ok') AS ok FROM said
),
pairs AS (
  SELECT kind, stream, beat, call_id, name, ok, position,
    row_number() OVER (PARTITION BY stream, beat, call_id, kind ORDER BY position) AS nth FROM spoken
),
calls AS MATERIALIZED (SELECT * FROM pairs WHERE kind = 'tool_call'),
results AS MATERIALIZED (SELECT * FROM pairs WHERE kind = 'tool_result')
SELECT c.beat AS beat, c.call_id AS call_id, c.name AS name, r.ok AS ok
FROM calls AS c JOIN results AS r ON r.stream = c.stream AND r.call_id = c.call_id AND r.nth = c.nth AND r.beat IS c.beat
ORDER BY c.position]]

local CLOSED = "(SELECT c.epoch_ms FROM event AS c WHERE c.stream = s.id AND c.kind = 'session_closed' ORDER BY c.seq DESC LIMIT 1)"

-- Row by row in the order of the streams, so that a page of a long log costs a page.
SQL.sessions = [[
SELECT s.stream AS session, ]] .. META .. [[ AS meta, json_extract(]] .. DATA .. [[, '$.parent') AS parent,
  e.epoch_ms AS opened_epoch_ms, ]] .. CLOSED .. [[ AS closed_epoch_ms
FROM stream AS s CROSS JOIN event AS b ON b.stream = s.id AND b.seq = 1 AND b.kind = 'session_opened'
CROSS JOIN events AS e ON e.position = b.position ORDER BY s.id]]

-- A parent records each child that it gives units to, so the tree is walked down from its root.
SQL.tree = [[
WITH RECURSIVE below (session, parent) AS (
  SELECT value, NULL FROM json_each($sessions)
  UNION
  SELECT json_extract(]] .. DATA .. [[, '$.child'), e.stream
  FROM below JOIN events AS e ON e.stream = below.session
  WHERE e.kind = 'budget_reserved' AND json_extract(]] .. DATA .. [[, '$.child') IS NOT NULL
),
found AS MATERIALIZED (
  SELECT b.session AS session, b.parent AS parent, s.id AS id,
    (SELECT o.epoch_ms FROM event AS o WHERE o.stream = s.id AND o.seq = 1) AS opened_epoch_ms,
    (SELECT c.position FROM event AS c WHERE c.stream = s.id AND c.kind = 'session_closed' ORDER BY c.seq DESC LIMIT 1) AS ended
  FROM below AS b JOIN stream AS s ON s.stream = b.session WHERE b.parent IS NOT NULL
)
SELECT f.session AS session, f.parent AS parent, f.opened_epoch_ms AS opened_epoch_ms, e.epoch_ms AS closed_epoch_ms,
  json_extract(]] .. DATA .. [[, '$.open_children') AS open_children
FROM found AS f LEFT JOIN events AS e ON e.position = f.ended ORDER BY f.id]]

local OPTIONS = { sessions = true, timeout_ms = true, limit = true }

return function()
  local views = {}
  for name, sql in pairs(SQL) do
    views[name] = function(session, opts)
      for key in pairs(opts or {}) do
        if not OPTIONS[key] then error("knl: views." .. name .. ": validation: unknown option '" .. tostring(key) .. "'", 2) end
      end
      return session:query(sql, nil, opts)
    end
  end
  return views
end
