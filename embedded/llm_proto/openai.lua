-- llm_proto.openai: OpenAI Chat Completions, in four dialects.
--
--   build(request, conf, target, kept?) -> wire | nil, call_error
--     kept = {messages, wire, intact(messages) -> n}: the conversation that the request is
--     made of; its messages keep their wire form in wire from one call to the next
--   parse(raw, wire)             -> result | nil, call_error
--
-- dialect: openai (api.openai.com), vllm, llamacpp, ollama. A field that a model or
-- server is known to refuse is left out with a warning; a combination that cannot
-- work is refused here, before anything is sent. Arguments that are not valid JSON
-- become a call with input_error, which the beat answers without running anything.

local messages_of = require("llm_proto.openai_messages")
local reply_of = require("llm_proto.openai_reply")
local fields = require("llm_proto.fields")
local pick, refuse, dropped = fields.pick, fields.refuse, fields.dropped

local M = {}

local function set(list)
  local out = {}
  for _, key in ipairs(list) do out[key] = true end
  return out
end

-- Fields that go through as they are.
local PLAIN = set({
  "temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty",
  "parallel_tool_calls", "user", "logprobs", "n", "metadata", "service_tier", "prompt_cache_key",
})

-- Fields of the other wire.
local FOREIGN = set({ "cache_control", "context_management", "context_management_config", "betas" })

-- take puts the plain fields of request or conf into a body. It goes along what is
-- there, which is little, and not along all that there could be.
local function take(body, from, foreign)
  for key, value in pairs(from) do
    if PLAIN[key] then body[key] = value elseif FOREIGN[key] then foreign[key] = value end
  end
end

local function reasoning(model)
  return model:match("^o%d") ~= nil or model:match("^gpt%-5") ~= nil
end

-- alone reports whether a model takes no tools beside reasoning: gpt-5.6 and later.
local function alone(model)
  local major, minor = model:match("^gpt%-(%d+)%.?(%d*)")
  major, minor = tonumber(major) or 0, tonumber(minor) or 0
  return major > 5 or major == 5 and minor >= 6
end

local function tools_of(tools)
  local list = std.json.array()
  for i, tool in ipairs(tools) do
    list[i] = {
      type = "function",
      ["function"] = { name = tool.name, description = tool.description, parameters = tool.input_schema },
    }
  end
  return list
end

local function set_thinking(body, thinking, dialect)
  if thinking == nil then return end
  local how = type(thinking) == "table" and thinking or {}
  if dialect == "openai" or dialect == "ollama" then
    if how.effort then body.reasoning_effort = how.effort elseif thinking == false then body.reasoning_effort = "none" end
    if how.budget_tokens then dropped(dialect, "thinking.budget_tokens") end
    return
  end
  body.chat_template_kwargs = { [how.kwarg or "enable_thinking"] = thinking ~= false }
  if how.effort then body.reasoning_effort = how.effort end
  if not how.budget_tokens then return end
  if dialect == "vllm" then body.thinking_token_budget = how.budget_tokens else dropped(dialect, "thinking.budget_tokens") end
end

local function set_limits(body, request, conf, target)
  local model, dialect = body.model, target.dialect
  local max_tokens = fields.limit(request, conf)
  if max_tokens then
    body[dialect == "openai" and reasoning(model) and "max_completion_tokens" or "max_tokens"] = max_tokens
  end
  if dialect == "openai" and reasoning(model) and body.temperature ~= nil then
    dropped(model, "temperature")
    body.temperature = nil
  end
  local top_k = pick(request, conf, "top_k")
  if top_k == nil then return max_tokens end
  if dialect == "openai" and target.provider ~= "openrouter" then
    dropped(target.provider or "openai", "top_k")
  else
    body.top_k = top_k
  end
  return max_tokens
end

-- A server of llama.cpp holds a reply to a schema, and to nothing without one.
local function set_format(body, format, dialect)
  if not format then return end
  if format.type == "json_object" and dialect == "llamacpp" then
    format = { type = "json_schema", name = "answer", schema = { type = "object" } }
  end
  if format.type ~= "json_schema" then
    body.response_format = { type = format.type }
    return
  end
  body.response_format = { type = "json_schema", json_schema = {
    name = format.name, schema = format.schema, strict = format.strict, description = format.description,
  } }
end

-- Ollama takes no tool_choice: there, "none" is no tools.
local function set_tools(body, request, choice, dialect)
  if not request.tools or #request.tools == 0 or dialect == "ollama" and choice == "none" then return end
  body.tools = tools_of(request.tools)
  if dialect == "ollama" then
    if choice ~= nil and choice ~= "auto" then dropped(dialect, "tool_choice") end
    return
  end
  if type(choice) == "table" then choice = { type = "function", ["function"] = { name = choice.name } } end
  body.tool_choice = choice
end

-- refused names what cannot work, before anything is sent.
local function refused(request, model, dialect, thinking, max_tokens)
  if request.tools and #request.tools > 0 and thinking and dialect == "openai" and alone(model) then
    return model .. " takes no tools together with reasoning on this endpoint"
  end
  local budget = type(thinking) == "table" and thinking.budget_tokens
  if budget and dialect == "vllm" and max_tokens and budget >= max_tokens then
    return ("the thinking budget of %d tokens leaves nothing of max_tokens = %d"):format(budget, max_tokens)
  end
end

local FORMS = { auto = true, hermes = true, llama = true, mistral = true, qwen = true }

-- text_form gives the form in which a model writes its calls into text, nil for a model
-- that does not.
local function text_form(request, conf)
  local form = pick(request, conf, "text_tool_calls")
  if form == nil or form == false then return nil end
  if form == true then return "auto" end
  if not FORMS[form] then return refuse("text_tool_calls is " .. tostring(form) .. "; it is true, hermes, llama, mistral or qwen") end
  return form
end

local function add_messages(body, request, conf, kept)
  local alternate = pick(request, conf, "strict_alternation")
  if alternate == nil then alternate = body.model:lower():find("gemma", 1, true) ~= nil end
  body.messages = messages_of(request, alternate, kept)
  if pick(request, conf, "stream") ~= false then
    body.stream = true
    body.stream_options = { include_usage = true }
  end
end

function M.build(request, conf, target, kept)
  local model, dialect = request.model or target.model, target.dialect
  if not model then return refuse("no model: name one with --model, ASHLAR_MODEL or the option model") end
  local format, bad_format = fields.format(request, conf)
  if bad_format then return nil, bad_format end
  local choice, bad_choice = fields.choice(request, conf)
  if bad_choice then return nil, bad_choice end
  local form, bad_form = text_form(request, conf)
  if bad_form then return nil, bad_form end
  local thinking = pick(request, conf, "thinking")
  local body = { model = model }
  local foreign = {}
  take(body, conf, foreign)
  take(body, request, foreign)
  local max_tokens = set_limits(body, request, conf, target)
  local problem = refused(request, model, dialect, thinking, max_tokens)
  if problem then return refuse(problem) end
  set_format(body, format, dialect)
  set_thinking(body, thinking, dialect)
  set_tools(body, request, choice, dialect)
  if body.parallel_tool_calls ~= nil and not body.tools then body.parallel_tool_calls = nil end
  for key, value in pairs(foreign) do
    if value then dropped("provider openai", key) end
  end
  add_messages(body, request, conf, kept)
  for key, value in pairs(pick(request, conf, "extra_body") or {}) do body[key] = value end
  return {
    provider = conf.provider, model = conf.model, base_url = conf.base_url, path = "chat/completions", body = body,
    headers = conf.headers, api_key = conf.api_key, api_key_env = conf.api_key_env, dialect = dialect,
    text_tool_calls = form, tools = request.tools,
  }
end

M.parse = reply_of.parse

return M
