-- llm_proto.openai: OpenAI Chat Completions, in four dialects.
--
--   build(request, conf, target, kept?) -> wire | nil, call_error
--     kept = {messages, wire, intact(messages)}: the conversation that the request is
--     made of; its messages keep their wire form in wire from one call to the next
--   parse(raw, wire)             -> result | nil, call_error
--
-- dialect: openai (api.openai.com), vllm, llamacpp, ollama. A field that a model or
-- server is known to refuse is left out with a warning; a combination that cannot
-- work is refused here, before anything is sent. Arguments that are not valid JSON
-- become a call with input_error, which the beat answers without running anything.

local messages_of = require("llm_proto.openai_messages")
local reply_of = require("llm_proto.openai_reply")

local M = {}

-- Fields that go through as they are.
local PLAIN = {
  "temperature", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "response_format",
  "parallel_tool_calls", "user", "logprobs", "n", "metadata", "service_tier", "prompt_cache_key",
}

local function reasoning(model)
  return model:match("^o%d") ~= nil or model:match("^gpt%-5") ~= nil
end

local function refuse(message)
  return nil, { kind = "invalid_request", retryable = false, message = message }
end

local function pick(request, conf, key)
  if request[key] ~= nil then return request[key] end
  return conf[key]
end

local function tool_choice(choice)
  if type(choice) == "table" then
    local name = choice.name or (choice["function"] or {}).name
    if not name then return choice.type == "any" and "required" or choice.type end
    return { type = "function", ["function"] = { name = name } }
  end
  if choice == "any" then return "required" end
  return choice
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
  local effort = type(thinking) == "table" and thinking.effort or nil
  if dialect == "openai" or dialect == "ollama" then
    if effort then body.reasoning_effort = effort elseif thinking == false then body.reasoning_effort = "none" end
    return
  end
  local kwarg = type(thinking) == "table" and thinking.kwarg or "enable_thinking"
  body.chat_template_kwargs = { [kwarg] = thinking ~= false }
  if effort then body.reasoning_effort = effort end
  if dialect == "vllm" and type(thinking) == "table" and thinking.budget_tokens then
    body.thinking_token_budget = thinking.budget_tokens
  end
end

local function set_limits(body, request, conf, model, dialect)
  local max_tokens = pick(request, conf, "max_tokens")
  -- A budget's remainder is a limit, no wish: it never asks for more than conf does.
  if request.capped and conf.max_tokens then max_tokens = math.min(request.max_tokens, conf.max_tokens) end
  if max_tokens then
    body[dialect == "openai" and reasoning(model) and "max_completion_tokens" or "max_tokens"] = max_tokens
  end
  if dialect == "openai" and reasoning(model) and body.temperature ~= nil then
    log.warn("llm_proto: " .. model .. " takes no temperature: left out")
    body.temperature = nil
  end
  local top_k = pick(request, conf, "top_k")
  if top_k ~= nil then
    if dialect == "openai" then
      log.warn("llm_proto: api.openai.com takes no top_k: left out")
    else
      body.top_k = top_k
    end
  end
end

local function set_tools(body, request, conf, dialect)
  if not request.tools or #request.tools == 0 then return end
  body.tools = tools_of(request.tools)
  local choice = pick(request, conf, "tool_choice")
  if choice ~= nil and dialect ~= "ollama" then body.tool_choice = tool_choice(choice) end
end

function M.build(request, conf, target, kept)
  local model, dialect = request.model or target.model, target.dialect
  if not model then return refuse("no model: name one with --model, ASHLAR_MODEL or the option model") end
  local thinking = pick(request, conf, "thinking")
  if request.tools and #request.tools > 0 and thinking and dialect == "openai" and model:match("^gpt%-5%.[6-9]") then
    return refuse(model .. " takes no tools together with reasoning on this endpoint")
  end
  local body = { model = model }
  for _, key in ipairs(PLAIN) do body[key] = pick(request, conf, key) end
  set_limits(body, request, conf, model, dialect)
  set_thinking(body, thinking, dialect)
  set_tools(body, request, conf, dialect)
  if body.parallel_tool_calls ~= nil and not body.tools then body.parallel_tool_calls = nil end
  for _, key in ipairs({ "cache_control", "context_management", "context_management_config" }) do
    if pick(request, conf, key) then log.warn("llm_proto: provider openai takes no " .. key .. ": left out") end
  end
  local alternate = pick(request, conf, "strict_alternation")
  if alternate == nil then alternate = model:lower():find("gemma", 1, true) ~= nil end
  body.messages = messages_of(request, alternate, kept)
  if pick(request, conf, "stream") ~= false then
    body.stream = true
    body.stream_options = { include_usage = true }
  end
  for key, value in pairs(pick(request, conf, "extra_body") or {}) do body[key] = value end
  return {
    provider = target.provider, base_url = conf.base_url, path = "chat/completions", body = body,
    headers = conf.headers, api_key = conf.api_key, api_key_env = conf.api_key_env, dialect = dialect,
  }
end

M.parse = reply_of.parse

return M
