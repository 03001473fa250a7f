-- llm_proto.anthropic: Anthropic's Messages API.
--
--   build(request, conf, target, kept?) -> wire | nil, call_error     as llm_proto.openai's
--   parse(raw, wire)                    -> result | nil, call_error
--   DEFAULT_MAX_TOKENS                  what a reply may hold where nobody says it
--
-- Cache markers go on the last tool and on the system text (cache_control = false: none;
-- a table: that marker), old tool uses are cleared by the server once the context is long
-- (context_management = false: not; context_management_config replaces the edits whole).
-- A field that a model is known to refuse is left out with a warning; a combination that
-- cannot work is refused here. The caller's tables are never changed.

local messages_of = require("llm_proto.anthropic_messages")
local reply_of = require("llm_proto.anthropic_reply")
local fields = require("llm_proto.fields")
local pick, refuse, dropped = fields.pick, fields.refuse, fields.dropped

local M = { DEFAULT_MAX_TOKENS = 8192 }

local MIN_BUDGET = 1024 -- tokens of thinking, by the provider's rule
local BUDGETS = { minimal = 1024, low = 1024, medium = 4096, high = 16384, xhigh = 32768, max = 32768 }

local BETA_CONTEXT = "context-management-2025-06-27"
local BETA_STRUCTURED = "structured-outputs-2025-11-13"

-- Fields of the other wire that this one has no word for.
local FOREIGN = {
  "seed", "presence_penalty", "frequency_penalty", "logprobs", "n", "prompt_cache_key", "strict_alternation", "text_tool_calls",
}

-- version gives a model's version as major * 100 + minor: the newest for a Claude that
-- says none, nil for what is no Claude.
local function version(model)
  local rest = model:match("claude%-(.*)$")
  if not rest then return nil end
  local major, minor = rest:match("^%a+%-(%d+)[%-%.](%d+)")
  if not major then major, minor = rest:match("^(%d+)[%-%.](%d+)") end
  if not major then major = rest:match("^%a+%-(%d+)") or rest:match("^(%d+)") end
  if not major then return 9900 end
  if minor and #minor > 2 then minor = nil end -- a date
  return tonumber(major) * 100 + (tonumber(minor) or 0)
end

local function after(model, than)
  local v = version(model)
  return v ~= nil and v > than
end

-- set_thinking writes how the model is to think; manual says that its tokens are bounded
-- by a number of their own.
local function set_thinking(body, thinking, max_tokens)
  if thinking == nil then return false end
  local how, adaptive = type(thinking) == "table" and thinking or {}, after(body.model, 406)
  if thinking == false then
    if adaptive then body.thinking = { type = "disabled" } end
    return false
  end
  if adaptive then
    body.thinking = { type = "adaptive" }
    if how.effort then body.output_config = { effort = how.effort } end
    if how.budget_tokens then dropped(body.model, "thinking.budget_tokens", "and decides itself") end
    return false
  end
  local budget = how.budget_tokens
  if budget and budget < MIN_BUDGET then
    return nil, ("thinking.budget_tokens is %s; it is at least %d"):format(tostring(budget), MIN_BUDGET)
  end
  -- Where only an effort was named, at least half of the reply is left for the answer.
  budget = budget or math.max(MIN_BUDGET, math.min(BUDGETS[how.effort] or BUDGETS.medium, math.floor(max_tokens / 2)))
  if budget >= max_tokens then
    return nil, ("the thinking budget of %d tokens leaves nothing of max_tokens = %d"):format(budget, max_tokens)
  end
  body.thinking = { type = "enabled", budget_tokens = budget }
  return true
end

-- set_sampling: models after Opus 4.6 take the defaults alone, and so does thinking.
local function set_sampling(body, request, conf, manual)
  for _, key in ipairs({ "temperature", "top_p", "top_k" }) do
    local value = pick(request, conf, key)
    if value ~= nil and after(body.model, 406) and not (key == "temperature" and value == 1) then
      dropped(body.model, key, "but its default")
    elseif value ~= nil and manual and key ~= "top_p" and not (key == "temperature" and value == 1) then
      dropped("thinking", key, "beside it")
    else
      body[key] = value
    end
  end
end

local function marker(request, conf)
  local mark = pick(request, conf, "cache_control")
  if mark == false then return nil end
  return type(mark) == "table" and mark or { type = "ephemeral" }
end

local function set_tools(body, request, conf, choice, mark)
  if not request.tools or #request.tools == 0 then return end
  local list = std.json.array()
  for i, tool in ipairs(request.tools) do
    list[i] = { name = tool.name, description = tool.description, input_schema = tool.input_schema }
  end
  list[#list].cache_control = mark
  body.tools = list
  if type(choice) == "table" then
    choice = { type = "tool", name = choice.name }
  elseif choice then
    choice = { type = choice == "required" and "any" or choice }
  end
  if pick(request, conf, "parallel_tool_calls") == false and (not choice or choice.type ~= "none") then
    choice = choice or { type = "auto" }
    choice.disable_parallel_tool_use = true
  end
  body.tool_choice = choice
end

local function set_stop(body, request, conf)
  local stop = pick(request, conf, "stop")
  if type(stop) == "string" then stop = { stop } end
  body.stop_sequences = stop
end

local function set_format(body, format, betas)
  if not format or format.type == "text" then return end
  if format.type ~= "json_schema" then
    return "response_format " .. format.type .. " does not exist on this wire: give a json_schema"
  end
  body.output_config = body.output_config or {}
  body.output_config.format = { type = "json_schema", schema = format.schema }
  betas[#betas + 1] = BETA_STRUCTURED
end

local function set_context(body, request, conf, betas)
  local config = pick(request, conf, "context_management_config")
  if pick(request, conf, "context_management") == false then return end
  body.context_management = config or { edits = { {
    type = "clear_tool_uses_20250919",
    trigger = { type = "input_tokens", value = 80000 },
    keep = { type = "tool_uses", value = 3 },
    clear_at_least = { type = "input_tokens", value = 10000 },
  } } }
  betas[#betas + 1] = BETA_CONTEXT
end

local function set_rest(body, request, conf)
  for _, key in ipairs(FOREIGN) do
    if pick(request, conf, key) then dropped("provider anthropic", key) end
  end
  body.service_tier = pick(request, conf, "service_tier")
  body.metadata = pick(request, conf, "metadata")
  local user = pick(request, conf, "user")
  if user ~= nil and body.metadata == nil then body.metadata = { user_id = user } end
  if pick(request, conf, "stream") ~= false then body.stream = true end
  for key, value in pairs(pick(request, conf, "extra_body") or {}) do body[key] = value end
end

-- headers_of joins the caller's headers and the names of betas.
local function headers_of(request, conf, betas)
  local headers, named = {}, pick(request, conf, "betas")
  local all = type(named) == "string" and { named } or {}
  for _, beta in ipairs(type(named) == "table" and named or {}) do all[#all + 1] = beta end
  for key, value in pairs(conf.headers or {}) do
    if key:lower() == "anthropic-beta" then all[#all + 1] = value else headers[key] = value end
  end
  for _, beta in ipairs(betas) do all[#all + 1] = beta end
  if #all > 0 then headers["anthropic-beta"] = table.concat(all, ",") end
  return next(headers) and headers or nil
end

function M.build(request, conf, target, kept)
  local model, betas = request.model or target.model, {}
  if not model then return refuse("no model: name one with --model, ASHLAR_MODEL or the option model") end
  local format, bad_format = fields.format(request, conf)
  if bad_format then return nil, bad_format end
  local choice, bad_choice = fields.choice(request, conf)
  if bad_choice then return nil, bad_choice end
  local max_tokens, defaulted = fields.limit(request, conf, M.DEFAULT_MAX_TOKENS)
  local body, mark = { model = model, max_tokens = max_tokens }, marker(request, conf)
  local manual, problem = set_thinking(body, pick(request, conf, "thinking"), max_tokens)
  if problem then return refuse(problem) end
  if manual and (choice == "required" or type(choice) == "table") then
    return refuse("a forced tool_choice does not go together with a thinking budget on this wire")
  end
  problem = set_format(body, format, betas)
  if problem then return refuse(problem) end
  set_sampling(body, request, conf, manual)
  set_stop(body, request, conf)
  set_tools(body, request, conf, choice, mark)
  set_context(body, request, conf, betas)
  body.system = messages_of.system(request.system, mark)
  body.messages = messages_of.list(request, kept)
  set_rest(body, request, conf)
  return {
    provider = conf.provider, model = conf.model, base_url = conf.base_url, path = "v1/messages", body = body,
    headers = headers_of(request, conf, betas), api_key = conf.api_key, api_key_env = conf.api_key_env,
    defaults = defaulted and { max_tokens = max_tokens } or nil,
  }
end

M.parse = reply_of.parse

return M
