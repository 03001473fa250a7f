-- policy.log: what policies read of a session.
--
--   log.read(of) -> {events, beats, steps}    of a session, or of a list of events
--     events  to the end, without the bodies of requests
--     beats   {id, seq, last, content, answered?, failed?, calls = {{id, name, args}}, results =
--             {{call_id, ok, result}}} in order
--     steps   calls and results in order: {call, result?}
--   log.events(of)  log.beats(of)  log.forget(id)  log.is_session(v)
--   log.canonical(v) -> text     equal for equal values: keys sorted, 8 levels deep, functions
--                                by their type
--   log.signature(beat) -> text  of a beat's calls, or of its text where it called nothing
--   log.called(call) -> text     of one call
--
-- What was read of a session is kept and only what is new is read again. It is what reading
-- the whole log would give, so it may be dropped at any time. The events are those that the
-- beat folds, read once for both: they are to be read, not changed.

local beat = require("knl.beat")

local M = { is_session = beat.native.is_session }

local DEPTH = 8
local MAX_KEPT = 16 -- sessions of each half: those that were not asked for since it filled go

local function fresh() return { events = {}, beats = {}, steps = {}, by = {}, from = 1 } end

local function beat_of(state, event)
  local id = event.meta and event.meta.beat
  if id == nil then return nil end
  local one = state.by[id]
  if not one then
    one = { id = id, seq = event.seq, content = {}, calls = {}, results = {}, named = {} }
    state.by[id] = one
    state.beats[#state.beats + 1] = one
  end
  one.last = event.seq
  return one
end

local STEPS = {
  llm_response = function(_, one, data) one.content, one.answered = data.content, true end,
  llm_call_failed = function(_, one, data) one.failed = data end,
  tool_call = function(state, one, data)
    local call = { id = data.call_id, name = data.name, args = data.args }
    one.calls[#one.calls + 1], one.named[tostring(data.call_id)] = call, call
    one.signature = nil
    state.steps[#state.steps + 1] = { call = call }
  end,
  tool_result = function(state, one, data)
    local result = { call_id = data.call_id, ok = data.ok, result = data.result }
    one.results[#one.results + 1] = result
    local call = one.named[tostring(data.call_id)]
    if call then state.steps[#state.steps + 1] = { call = call, result = result } end
  end,
}

local function step(state, event)
  local one, of = beat_of(state, event), STEPS[event.kind]
  if one and of then of(state, one, event.data or {}) end
end

local kept, older, count = {}, {}, 0

local function state_of(id)
  if kept[id] then return kept[id] end
  if count >= MAX_KEPT then
    for gone in pairs(older) do beat.unshare(gone) end
    kept, older, count = {}, kept, 0
  end
  local state = older[id]
  if not state then
    state = fresh()
    state.events = beat.share(id)
  end
  kept[id], older[id], count = state, nil, count + 1
  return state
end

function M.read(of)
  if not M.is_session(of) then
    if type(of) ~= "table" then error("policy: log: validation: takes a session or a list of events, got a " .. type(of), 0) end
    local state = fresh()
    for i, event in ipairs(of) do
      state.events[i] = event
      step(state, event)
    end
    return state
  end
  local state = state_of(of:id())
  beat.pages(beat.native, of, state.from, function(event)
    -- Another task may have read it while this one was waiting.
    if event.seq < state.from then return end
    state.events[event.seq] = event -- where it is not the beat's own list
    step(state, event)
    state.from = event.seq + 1
  end)
  return state
end

-- forget drops what is kept of a session that has ended.
function M.forget(id)
  if kept[id] then count = count - 1 end
  kept[id], older[id] = nil, nil
  beat.unshare(id)
end

function M.events(of) return M.read(of).events end

function M.beats(of) return M.read(of).beats end

local function canonical(v, depth)
  if type(v) == "string" then return ("%q"):format(v) end
  if type(v) ~= "table" then return type(v) == "function" and "function" or tostring(v) end
  if depth >= DEPTH then return "table" end
  local keys, parts = {}, {}
  for key in pairs(v) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) < type(b) end
    if type(a) == "number" or type(a) == "string" then return a < b end
    return tostring(a) < tostring(b)
  end)
  for i, key in ipairs(keys) do
    parts[i] = canonical(key, depth + 1) .. "=" .. canonical(v[key], depth + 1)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function M.canonical(v) return canonical(v, 0) end

function M.text(content)
  if type(content) == "string" then return content end
  local parts = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if type(block) == "table" and block.type == "text" and type(block.text) == "string" then parts[#parts + 1] = block.text end
  end
  return table.concat(parts, "\n")
end

function M.called(call)
  call.signature = call.signature or M.canonical({ call.name, call.args })
  return call.signature
end

function M.signature(one)
  if #one.calls == 0 then return "text " .. M.canonical(M.text(one.content)) end
  if not one.signature then
    local parts = {}
    for i, call in ipairs(one.calls) do parts[i] = M.called(call) end
    one.signature = "calls " .. table.concat(parts, " ")
  end
  return one.signature
end

return M
