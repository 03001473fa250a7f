-- agent: a plain loop of beats until the model answers without calling a tool.
-- Made to be copied: `ashlar vendor agent` will write it into a project.
--
--   agent.run(opts) -> {ok, content, usage, num_turns, messages, session, error?, error_kind?, stopped_by?}
--
-- It never raises. ok is true only for a finished answer, or when on_turn said stop.
-- error_kind is one of the call errors, or validation, or limit; with limit,
-- stopped_by says which: max_iterations, tokens, repeated (the same calls again and again),
-- no_progress, context (the window is too small for what must be sent), or the bound of the run.
--
-- Options: prompt (required), system, provider, model, base_url, api_key, api_key_env,
-- max_tokens, max_iterations = 20 (false: none, the run's bounds decide), timeout = 120,
-- progress_timeout, max_tokens_budget, extra_tools, tool_groups, history, on_turn, on_delta,
-- store, budget; context_window (tokens; default: what the port knows of the model);
-- max_repeats = 5 (false: no limit; a tool with repeatable = true is exempt); compact = true or
-- {at = 0.8, min_beats = 2, reserve}, which needs context_window, and max_tokens or reserve:
-- then the result has compactions, and each takes one beat of max_iterations. Any other
-- key goes to the port (temperature, thinking, stop, cache_control, context_management,
-- context_management_config, …); a tool_choice that forces a call holds until the first
-- call was answered.

local knl = require("knl")
local beats = require("knl.beat")
local adapter = require("knl_adapter")
local proto = require("llm_proto")
local trusted = require("knl.trusted")
local check = require("agent.options")
local loops = require("agent.loop")
local log = require("policy.log")
local tools_of = require("agent.tools")
local windows = require("policy.window")

local failed, zero = loops.failed, loops.zero

local M = {}

local DEFAULT_ITERATIONS = 20
local DEFAULT_TIMEOUT = 120
local OWNER = "agent"

-- Ids of the caller's that the prompt's event carries where the environment has them.
local CORRELATION = { "trace_id", "run_id", "agent_id", "agent_name" }

-- Options of the loop itself; the rest is the port's.
local OWN = {
  prompt = true, system = true, max_iterations = true, max_tokens_budget = true, extra_tools = true,
  tool_groups = true, history = true, on_turn = true, on_delta = true, store = true, budget = true,
  compact = true, max_repeats = true,
}

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
local function caller(port, conf)
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
  end, trusted.of(forced))
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

-- compaction gives the policy that summarises, and the fold that goes with it.
local function compaction(opts, port, conf)
  if not opts.compact then return nil end
  local policy, given = require("policy"), type(opts.compact) == "table" and opts.compact or {}
  local fold = policy.window({ room = policy.room({ port = port, conf = conf, reserve = given.reserve }) })
  return policy.compact({ fold = fold, at = given.at, min_beats = given.min_beats, ledger = policy.ledger({}) }), fold
end

-- total is the usage of a whole session, summaries included.
local function total(session)
  local usage, row = zero(), knl.views.usage(session)[1]
  usage.input_tokens = row.input_tokens + row.cache_read_input_tokens + row.cache_creation_input_tokens
  usage.output_tokens, usage.thinking_tokens = row.output_tokens, row.thinking_tokens
  usage.total_tokens = usage.input_tokens + usage.output_tokens
  return usage
end

local function converse(opts, device, limit, compact)
  local budget
  budget, limit = budget_of(opts, limit)
  return knl.session({ owner = OWNER, store = opts.store, budget = budget }, function(session)
    local state = {
      usage = zero(), turns = 0, limit = limit, session = session:id(), content = "", compact = compact, compactions = 0,
    }
    seed(session, opts)
    local result = loops.run(session, device, opts, state)
    if result.ok then
      result.content, result.usage, result.num_turns, result.session = state.content, state.usage, state.turns, state.session
    end
    result.messages = M.messages(session)
    log.forget(state.session)
    if compact then result.usage, result.compactions = total(session), state.compactions end
    return result
  end)
end

-- messages folds a session's log into its conversation, without the beats that wrote
-- a summary of it.
function M.messages(session)
  local events, folder = {}, knl.fold.new()
  beats.pages(beats.native, session, 1, function(event) events[#events + 1] = event end)
  local _, apart = windows.marks(events)
  for _, event in ipairs(events) do
    local beat = event.meta and event.meta.beat
    if beat == nil or not apart[beat] or event.kind == "msg_user" then folder:step(event) end
  end
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
    local port = adapter.port(conf)
    local compact, fold = compaction(opts, port, conf)
    local device = knl.device({
      llm = caller(port, conf), model = proto.target(conf).model, tools = tools, system = opts.system, on_delta = opts.on_delta,
      fold = fold, window = opts.context_window and { context_window = opts.context_window, max_output = opts.max_tokens },
    })
    return converse(opts, device, limit, compact)
  end)
  if good then return result end
  local e = knl.error(result)
  return failed(OURS[e.kind] and "validation" or "unknown", e.message)
end

return M
