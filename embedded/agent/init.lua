-- agent: a plain loop of beats until the model answers without calling a tool.
-- Made to be copied: `ashlar vendor agent` will write it into a project.
--
--   agent.run(opts) -> {ok, content, usage, num_turns, messages, session, error?, error_kind?, stopped_by?}
--
-- It never raises. ok is true only for a finished answer, or when on_turn said stop.
-- error_kind is one of the call errors, or validation, or limit; with limit,
-- stopped_by says which: max_iterations, tokens, or the bound of the run.
--
-- Options: prompt (required), system, provider, model, base_url, api_key, api_key_env,
-- max_tokens, max_iterations = 20 (false: none, the run's bounds decide), timeout = 120,
-- progress_timeout, max_tokens_budget, extra_tools, tool_groups, history, on_turn, on_delta,
-- store, budget. Any other key goes to the port (temperature, thinking, …); a tool_choice
-- that forces a call holds until the first call was answered.

local knl = require("knl")
local adapter = require("knl_adapter")
local proto = require("llm_proto")
local trusted = require("knl.trusted")
local check = require("agent.options")
local tools_of = require("agent.tools")

local M = {}

local DEFAULT_ITERATIONS = 20
local DEFAULT_TIMEOUT = 120
local OWNER = "agent"

-- Ids of the caller's that the prompt's event carries where the environment has them.
local CORRELATION = { "trace_id", "run_id", "agent_id", "agent_name" }

-- So many turns in a row may bring nothing but calls whose arguments do not parse.
local MAX_BROKEN_TURNS = 3

-- Options of the loop itself; the rest is the port's.
local OWN = {
  prompt = true, system = true, max_iterations = true, max_tokens_budget = true, extra_tools = true,
  tool_groups = true, history = true, on_turn = true, on_delta = true, store = true, budget = true,
}

local function zero() return { input_tokens = 0, output_tokens = 0, total_tokens = 0, thinking_tokens = 0 } end

local function failed(kind, message, state)
  state = state or {}
  return {
    ok = false, error = message, error_kind = kind, stopped_by = state.stopped_by, content = state.content or "",
    usage = state.usage or zero(), num_turns = state.turns or 0, messages = state.messages or std.json.array(),
    session = state.session,
  }
end

-- Kinds of a raised error that are the caller's to mend.
local OURS = { validation = true, not_found = true, unsupported = true, permission = true }

local function port_conf(opts)
  local conf = { timeout = DEFAULT_TIMEOUT }
  for key, value in pairs(opts) do
    if not OWN[key] then conf[key] = value end
  end
  return conf
end

-- forces reports whether a tool_choice leaves the model no way to answer.
local function forces(choice) return choice ~= nil and choice ~= "auto" and choice ~= "none" end

-- caller opens the port. A forced tool_choice holds until the first call was answered:
-- a model that must call a tool at every beat could never end.
local function caller(conf)
  local port = adapter.port(conf)
  local forced = port:open(conf)
  if not forces(conf.tool_choice) then return forced end
  local rest = {}
  for key, value in pairs(conf) do rest[key] = value end
  rest.tool_choice = nil
  local free = port:open(rest)
  return trusted.add(function(request, ctx)
    local last = request.messages[#request.messages]
    local answered = type(last.content) == "table" and last.content[1] and last.content[1].type == "tool_result"
    return (answered and free or forced)(request, ctx)
  end, { max_tokens = conf.max_tokens })
end

local function seed(session, opts)
  for _, message in ipairs(opts.history or {}) do
    local content = message.content
    if message.role == "assistant" then
      if type(content) == "string" then content = { { type = "text", text = content } } end
      session:append({ kind = "llm_response", data = { content = content, usage = { input_tokens = 0, output_tokens = 0 } } })
    else
      local rest = std.json.array()
      for _, block in ipairs(type(content) == "table" and content or {}) do
        if block.type == "tool_result" then
          session:append({ kind = "tool_result", data = {
            call_id = block.tool_use_id, ok = not block.is_error, result = block.content or "",
          } })
        else
          rest[#rest + 1] = block
        end
      end
      if type(content) == "string" then rest = content end
      if type(rest) == "string" or #rest > 0 then session:append({ kind = "msg_user", data = { content = rest } }) end
    end
  end
  local meta = { label = "prompt" }
  for _, name in ipairs(CORRELATION) do
    local value = std.env.get("ASHLAR_" .. name:upper())
    if value and value ~= "" then meta[name] = value end
  end
  session:append({ kind = "msg_user", meta = meta, data = { content = opts.prompt } })
end

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

-- verdict looks at one finished beat: nil to go on, else the loop's result fields.
local function verdict(opts, state, out)
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
  if #calls > 0 or out.stop_reason == "pause_turn" then return nil end
  if out.stop_reason == "max_tokens" then
    return { kind = "truncated", message = "the reply was cut at max_tokens and holds no tool call" }
  end
  return { ok = true }
end

local function stopped(opts, state, outcome)
  local tag = outcome.tag
  if outcome.bound ~= "run" and tag == "beats" and state.limit then
    state.stopped_by = "max_iterations"
    return failed("limit", ("max_iterations (%s) reached"):format(tostring(state.limit)), state)
  end
  state.stopped_by = tag
  return failed("limit", "the budget of " .. tostring(tag) .. " is used up", state)
end

local function loop(session, device, opts, state)
  while true do
    local o = knl.beat(session, device)
    if o.status == "stopped" then return stopped(opts, state, o) end
    if o.status == "refused" then
      state.content = text_of(o.detail.content)
      add(state.usage, o.detail.usage)
      state.turns = state.turns + 1
      return failed("unknown", "the model refused (" .. o.reason .. ")", state)
    end
    if o.status == "error" then
      local d = o.detail
      local kind = o.kind == "call" and d.kind or "validation"
      return failed(kind, type(d) == "table" and d.message or tostring(d), state)
    end
    local v = verdict(opts, state, o.out)
    if v and v.ok then return { ok = true } end
    if v then return failed(v.kind, v.message, state) end
  end
end

local AMOUNT = { amount = true, tag = true, desc = true }

-- by_tag gives a budget as amounts by tag; {amount, tag?} names one, beats by default.
local function by_tag(given)
  local budget = {}
  if given.amount == nil then
    for tag, amount in pairs(given) do budget[tag] = amount end
    return budget
  end
  for key in pairs(given) do
    if not AMOUNT[key] then error("agent: run: validation: budget: unknown key '" .. tostring(key) .. "' beside amount", 0) end
  end
  local tag = given.tag == nil and "beats" or given.tag
  if type(tag) ~= "string" then error("agent: run: validation: budget: tag must be a string, got a " .. type(tag), 0) end
  budget[tag] = given.amount
  return budget
end

-- budget_of joins the caller's budget and the loop's own limit. Second it gives the
-- limit where that is what bounds the beats, nil where the caller's amount does: of two
-- that were both given the smaller one.
local function budget_of(opts, limit)
  if limit and not opts.budget then return { amount = limit, tag = "beats", desc = "max_iterations" }, limit end
  local budget = by_tag(opts.budget or {})
  if not limit and opts.budget and opts.budget.amount ~= nil then
    return { amount = opts.budget.amount, tag = opts.budget.tag or "beats", desc = opts.budget.desc }
  end
  local beats = budget.beats
  if limit and (beats == nil or opts.max_iterations and type(beats) == "number" and beats > limit and beats == math.floor(beats)) then
    budget.beats = limit
    return budget, limit
  end
  return next(budget) and budget or nil
end

local function converse(opts, device, limit)
  local budget
  budget, limit = budget_of(opts, limit)
  return knl.session({ owner = OWNER, store = opts.store, budget = budget }, function(session)
    local state = { usage = zero(), turns = 0, limit = limit, session = session:id(), content = "" }
    seed(session, opts)
    local result = loop(session, device, opts, state)
    local messages = M.messages(session)
    if not result.ok then
      result.messages = messages
      return result
    end
    return {
      ok = true, content = state.content, usage = state.usage, num_turns = state.turns,
      messages = messages, session = state.session,
    }
  end)
end

-- messages folds a session's log into the conversation that a provider would see.
function M.messages(session)
  local folder = knl.fold.new()
  require("knl.beat").pages(_G.knl, session, 1, function(event) folder:step(event) end)
  return folder:messages()
end

function M.run(opts)
  local problem = check(opts)
  if problem then return failed("validation", problem) end
  local limit = opts.max_iterations
  if limit == nil then limit = DEFAULT_ITERATIONS end
  local good, result = pcall(function()
    local tools, clash = tools_of(opts)
    if not tools then return failed("validation", clash) end
    local conf = port_conf(opts)
    local device = knl.device({
      llm = caller(conf), model = proto.target(conf).model, tools = tools, system = opts.system, on_delta = opts.on_delta,
    })
    return converse(opts, device, limit)
  end)
  if good then return result end
  local e = knl.error(result)
  return failed(OURS[e.kind] and "validation" or "unknown", e.message)
end

return M
