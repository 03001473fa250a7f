-- agent.loop: beats until one is an answer, or something says stop.
--
--   loop.run(session, device, opts, state) -> {ok = true} | a failed result
--     state = {usage, turns, limit?, session, content, compact?}; the loop counts in it
--   loop.failed(kind, message, state?) -> result    loop.zero() -> usage
--
-- What stops it beside an answer: on_turn, a budget, max_tokens_budget, calls that cannot
-- be read, the same call again and again (agent.repeats), turns without a word or a call,
-- a conversation that does not fit the context window. A request that the provider finds
-- too long is folded shorter and sent again, as long as there is something to leave out.

local knl = require("knl")
local repeats = require("agent.repeats")

local M = {}

-- So many turns in a row may bring nothing but calls whose arguments do not parse.
local MAX_BROKEN_TURNS = 3

-- So many turns in a row may bring nothing at all.
local MAX_EMPTY_TURNS = 2

-- So many requests in a row may be found too long.
local MAX_TOO_LONG = 4

local MAX_REPEATS = 5 -- of the same calls, in a row

function M.zero() return { input_tokens = 0, output_tokens = 0, total_tokens = 0, thinking_tokens = 0 } end

function M.failed(kind, message, state)
  state = state or {}
  return {
    ok = false, error = message, error_kind = kind, stopped_by = state.stopped_by, content = state.content or "",
    usage = state.usage or M.zero(), num_turns = state.turns or 0, messages = state.messages or std.json.array(),
    session = state.session,
  }
end

local failed = M.failed

local function text_of(content)
  local parts = {}
  for _, block in ipairs(content or {}) do
    if block.type == "text" then parts[#parts + 1] = block.text end
  end
  return table.concat(parts, "\n")
end

local function calls_of(content)
  local list = std.json.array()
  for _, block in ipairs(content) do
    if block.type == "tool_use" then list[#list + 1] = { id = block.id, name = block.name, input = block.input } end
  end
  return list
end

-- broken reports whether a reply holds calls, and none of them could be read.
local function broken(content, calls)
  if calls == 0 then return false end
  for _, block in ipairs(content) do
    if block.type == "tool_use" and not block.input_error then return false end
  end
  return true
end

-- empty reports whether a reply brought neither text nor anything else to go on from.
local function empty(content)
  for _, block in ipairs(content) do
    if block.type ~= "thinking" and block.type ~= "redacted_thinking" and (block.type ~= "text" or block.text ~= "") then return false end
  end
  return true
end

local function add(usage, turn)
  local input = turn.input_tokens + (turn.cache_read_input_tokens or 0) + (turn.cache_creation_input_tokens or 0)
  usage.input_tokens = usage.input_tokens + input
  usage.output_tokens = usage.output_tokens + turn.output_tokens
  usage.thinking_tokens = usage.thinking_tokens + (turn.thinking_tokens or 0)
  usage.total_tokens = usage.input_tokens + usage.output_tokens
end

local function told(opts, state, out, calls)
  if not opts.on_turn then return true end
  local good, answer = pcall(opts.on_turn, {
    turn_number = state.turns, content = text_of(out.content), tool_calls = calls, usage = out.usage,
  })
  if not good then
    log.warn("agent: on_turn raised: " .. tostring(answer))
    return true
  end
  return answer ~= false
end

-- still looks for turns that lead nowhere: nil, else the loop's result fields.
local function still(session, state, out, calls)
  state.empty = calls == 0 and empty(out.content) and (state.empty or 0) + 1 or 0
  if state.empty >= MAX_EMPTY_TURNS then
    state.stopped_by = "no_progress"
    return { kind = "limit", message = state.empty .. " replies in a row brought neither text nor a call" }
  end
  local message = state.repeats and state.repeats(session, out.content)
  if message then
    state.stopped_by = "repeated"
    return { kind = "limit", message = message }
  end
end

-- verdict looks at one finished beat: nil to go on, else the loop's result fields.
local function verdict(session, opts, state, out)
  local calls = calls_of(out.content)
  state.turns = state.turns + 1
  state.content = text_of(out.content)
  add(state.usage, out.usage)
  if not told(opts, state, out, calls) then return { ok = true } end
  if out.stopped then
    state.stopped_by = out.stopped
    return { kind = "limit", message = "the budget of " .. out.stopped .. " is used up" }
  end
  local budget = opts.max_tokens_budget
  if budget and state.usage.total_tokens > budget then
    state.stopped_by = "tokens"
    return { kind = "limit", message = ("token budget exceeded (%d/%d)"):format(state.usage.total_tokens, budget) }
  end
  if broken(out.content, #calls) then
    state.broken = (state.broken or 0) + 1
    if state.broken >= MAX_BROKEN_TURNS then
      if out.stop_reason == "max_tokens" then
        return { kind = "truncated", message = state.broken .. " replies in a row were cut inside a tool call" }
      end
      state.stopped_by = "repeated"
      return { kind = "limit", message = state.broken .. " replies in a row called tools with arguments that cannot be used" }
    end
    return nil
  end
  state.broken = 0
  if #calls > 0 or out.stop_reason == "pause_turn" then return still(session, state, out, #calls) end
  if out.stop_reason == "max_tokens" then
    return { kind = "truncated", message = "the reply was cut at max_tokens and holds no tool call" }
  end
  return { ok = true }
end

local function stopped(state, outcome)
  local tag = outcome.tag
  if outcome.reason == "context" then
    state.stopped_by = "context"
    return failed("limit", "the conversation does not fit the context window: system, tools and the last message alone take more", state)
  end
  if outcome.bound ~= "run" and tag == "beats" and state.limit then
    state.stopped_by = "max_iterations"
    return failed("limit", ("max_iterations (%s) reached"):format(tostring(state.limit)), state)
  end
  state.stopped_by = tag
  return failed("limit", "the budget of " .. tostring(tag) .. " is used up", state)
end

-- broke gives the result of a beat that failed, nil where it is worth another one.
local function broke(opts, state, outcome)
  local d = outcome.detail
  local kind = outcome.kind == "call" and d.kind or "validation"
  if kind == "context_length" and (state.turns > 0 or #(opts.history or {}) > 0) then
    state.too_long = (state.too_long or 0) + 1
    if state.too_long < MAX_TOO_LONG then return nil end
  end
  return failed(kind, type(d) == "table" and d.message or tostring(d), state)
end

function M.run(session, device, opts, state)
  if opts.max_repeats ~= false then state.repeats = repeats(opts.max_repeats or MAX_REPEATS, device.tools) end
  while true do
    if state.compact and state.compact:run(session, device) == "summary" then state.compactions = state.compactions + 1 end
    local o = knl.beat(session, device)
    if o.status == "stopped" then return stopped(state, o) end
    if o.status == "refused" then
      state.content = text_of(o.detail.content)
      add(state.usage, o.detail.usage)
      state.turns = state.turns + 1
      return failed("unknown", "the model refused (" .. o.reason .. ")", state)
    end
    if o.status == "error" then
      local result = broke(opts, state, o)
      if result then return result end
    else
      state.too_long = 0
      local v = verdict(session, opts, state, o.out)
      if v and v.ok then return { ok = true } end
      if v then return failed(v.kind, v.message, state) end
    end
  end
end

return M
