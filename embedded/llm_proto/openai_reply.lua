-- llm_proto.openai_reply: a Chat Completions reply to a neutral result.
--
--   parse(raw, wire) -> {content, usage, stop_reason, finish_reason, refusal?, status} | nil, call_error
--
-- raw is what llm.send gave: body in the provider's non-streamed form, and notes of
-- what was odd. Usage is made disjoint (the provider counts cached tokens inside the
-- prompt, thinking inside the completion) and estimated, with a flag, where it is
-- missing. A reply that ended before its finish is an error, never a result.

local M = {}

local FINISH = { stop = "end_turn", tool_calls = "tool_use", function_call = "tool_use", length = "max_tokens" }
local BYTES_PER_TOKEN = 3.2
local MAX_COUNT = 1e9 -- tokens of one reply; a larger figure is no figure
local MAX_ID = 256 -- bytes of a call's id
local MAX_INPUT_DEPTH = 100 -- of a call's arguments, so that what holds them still has its JSON

local BY_STATUS = {
  [400] = "invalid_request", [404] = "invalid_request", [413] = "invalid_request", [422] = "invalid_request",
  [401] = "auth", [403] = "auth", [408] = "transport", [504] = "transport", [429] = "rate_limited",
  [503] = "overloaded", [529] = "overloaded",
}

local RETRYABLE = { transport = true, rate_limited = true, overloaded = true, server = true }

local BY_TYPE = {
  insufficient_quota = "quota", billing_hard_limit_reached = "quota",
  context_length_exceeded = "context_length", exceed_context_size_error = "context_length",
  rate_limit_exceeded = "rate_limited", rate_limit_error = "rate_limited",
  overloaded_error = "overloaded", server_error = "server", api_error = "server",
  authentication_error = "auth", permission_error = "auth", invalid_api_key = "auth",
  invalid_request_error = "invalid_request",
}

-- told reports whether an answer says when to ask again.
local function told(err, headers)
  if headers and headers["retry-after"] then return true end
  for _, detail in ipairs(type(err.details) == "table" and err.details or {}) do
    local kind = type(detail) == "table" and detail["@type"]
    if type(kind) == "string" and kind:find("google%.rpc%.RetryInfo$") then return true end
  end
  return false
end

local function kind_of(status, err, headers)
  local by_type = BY_TYPE[err.code] or BY_TYPE[err.type]
  if by_type == "quota" or by_type == "context_length" then return by_type end
  local message = type(err.message) == "string" and err.message:lower() or ""
  -- Some providers call a rate a quota: the text decides only where nothing else does.
  if status == 429 and by_type ~= "rate_limited" and message:find("quota", 1, true) and not told(err, headers) then
    return "quota"
  end
  if status == 400 and (message:find("context length", 1, true) or message:find("context size", 1, true)) then
    return "context_length"
  end
  if status >= 400 then return BY_STATUS[status] or (status >= 500 and "server" or "unknown") end
  return by_type or "server"
end

local function failure(status, err, headers)
  local kind = kind_of(status, err, headers)
  -- An error inside a good status is no error of HTTP.
  local text = status >= 300 and "API error " .. status .. " (" .. kind .. ")" or "the provider reported an error: " .. kind
  -- An authentication error of a provider may repeat a part of the key.
  if kind ~= "auth" and type(err.message) == "string" then text = text .. ": " .. err.message:sub(1, 300) end
  return {
    kind = kind, retryable = RETRYABLE[kind] or false, status = status, message = text,
    retry_after = tonumber(headers and headers["retry-after"]),
  }
end

local function error_of(body)
  if type(body) ~= "table" then return {} end
  local err = body.error
  if type(err) == "string" then return { message = err } end
  if type(err) == "table" then return err end
  if type(body.message) == "string" then return body end
  return {}
end

local function split_think(text)
  local before, thought, after = text:match("^(%s*)<think>(.-)</think>(.*)$")
  if thought then return thought, (after:gsub("^%s+", "")) end
  -- A reply that was cut while it was thinking holds no answer.
  local open = text:match("^%s*<think>(.*)$")
  if open then return open, "" end
  return nil, text, before
end

-- deeper reports whether a value nests deeper than so many levels.
local function deeper(value, levels)
  if type(value) ~= "table" then return false end
  if levels == 0 then return true end
  for _, inner in pairs(value) do
    if deeper(inner, levels - 1) then return true end
  end
  return false
end

-- clean keeps NUL out of what is sent back: providers refuse it for ever after.
local function clean(text)
  if type(text) ~= "string" then return text end
  return (text:gsub("%z", "\239\191\189"))
end

-- Faults of arguments that are JSON and yet have no value here, as std.json says them.
local UNUSABLE = { "beyond float64", "occurs twice", "lone surrogate", "nested deeper" }

local function unusable(raised)
  local message = knl.error(raised).message
  for _, words in ipairs(UNUSABLE) do
    if message:find(words, 1, true) then return message end
  end
  return "not valid JSON, they do not parse"
end

local function input_of(call)
  local raw = (call["function"] or {}).arguments
  if type(raw) == "table" then return raw end
  if raw == nil or raw == "" then return {} end
  local good, value = pcall(std.json.decode, raw, { null = "keep" })
  if good and type(value) == "table" and (next(value) == nil or #value == 0) then
    if deeper(value, MAX_INPUT_DEPTH) then return {}, "nested deeper than " .. MAX_INPUT_DEPTH, raw end
    return next(value) == nil and {} or value
  end
  return {}, good and "no JSON object" or unusable(value), raw
end

-- id_of gives a call's id; what no provider takes back gets one that is made here.
local function id_of(call, i)
  local id = call.id
  if type(id) == "string" and id ~= "" and #id <= MAX_ID and not id:find("%c") then return id end
  return ("tc%07d"):format(i)
end

local function text_parts(content)
  if type(content) == "string" then return content end
  local parts = {}
  for _, part in ipairs(type(content) == "table" and content or {}) do
    parts[#parts + 1] = part.text or part.refusal
  end
  return table.concat(parts, "")
end

-- content_of gives a reply's blocks. A last call without arguments in a reply that
-- was cut has lost them.
local function content_of(message, cut)
  local content = std.json.array()
  local thought = message.reasoning_content or message.reasoning
  local inline, text = split_think(text_parts(message.content))
  if type(thought) ~= "string" or thought == "" then thought = inline end
  if thought and thought ~= "" then content[1] = { type = "thinking", thinking = clean(thought) } end
  if text ~= "" then content[#content + 1] = { type = "text", text = clean(text) } end
  local calls = type(message.tool_calls) == "table" and message.tool_calls or {}
  for i, call in ipairs(calls) do
    local input, problem, raw = input_of(call)
    if cut and i == #calls and not problem and next(input) == nil then problem = "they were cut off" end
    content[#content + 1] = {
      type = "tool_use", id = id_of(call, i), name = (call["function"] or {}).name,
      input = input, input_error = problem, input_raw = raw,
    }
  end
  return content
end

-- count reads a usage figure; nil for what no provider means: text, a negative, a
-- number beyond any reply.
local function count(v)
  if type(v) == "number" and v >= 0 and v == math.floor(v) and v < MAX_COUNT then return v end
end

local function estimated(raw, wire, content)
  local sent = raw.notes and raw.notes.request_bytes or #std.json.encode(wire.body)
  local got = #std.json.encode(content)
  return {
    input_tokens = math.ceil(sent / BYTES_PER_TOKEN), output_tokens = math.ceil(got / BYTES_PER_TOKEN),
    thinking_tokens = 0, cache_read_input_tokens = 0, cache_creation_input_tokens = 0, estimated = true,
  }
end

local function usage_of(body, raw, wire, content)
  local u = type(body.usage) == "table" and body.usage or {}
  local prompt, completion = count(u.prompt_tokens), count(u.completion_tokens)
  if not prompt or not completion then return estimated(raw, wire, content) end
  local cached = count((type(u.prompt_tokens_details) == "table" and u.prompt_tokens_details or {}).cached_tokens) or 0
  if cached > prompt then cached = prompt end
  local details = type(u.completion_tokens_details) == "table" and u.completion_tokens_details or {}
  return {
    input_tokens = prompt - cached, cache_read_input_tokens = cached, cache_creation_input_tokens = 0,
    output_tokens = completion, thinking_tokens = count(details.reasoning_tokens) or 0,
  }
end

function M.parse(raw, wire)
  local body = raw.body
  if raw.status >= 400 then return nil, failure(raw.status, error_of(body), raw.headers) end
  if type(body) ~= "table" then
    return nil, { kind = "server", retryable = false, status = raw.status, message = "the reply is no JSON object" }
  end
  if raw.notes and raw.notes.not_json and raw.status < 300 then
    return nil, { kind = "server", retryable = false, status = raw.status, message = "the reply is no JSON" }
  end
  if body.error then
    local err = failure(raw.status, error_of(body), raw.headers)
    err.usage = body.usage and usage_of(body, raw, wire, {}) or nil
    return nil, err
  end
  if raw.notes and raw.notes.incomplete then
    return nil, {
      kind = "transport", retryable = true, status = raw.status,
      message = "the reply ended before it was finished (" .. tostring(raw.notes.incomplete) .. ")",
      usage = body.usage and usage_of(body, raw, wire, {}) or nil,
    }
  end
  local choice = type(body.choices) == "table" and body.choices[1]
  if type(choice) ~= "table" or type(choice.message) ~= "table" then
    return nil, { kind = "server", retryable = false, status = raw.status, message = "the reply holds no choice" }
  end
  local finish = choice.finish_reason
  local content = content_of(choice.message, finish == "length")
  local refusal = choice.message.refusal
  local result = {
    content = content, usage = usage_of(body, raw, wire, content), status = raw.status,
    finish_reason = finish, stop_reason = FINISH[finish] or finish, model = body.model,
  }
  if type(refusal) == "string" and refusal ~= "" then
    result.stop_reason, result.refusal = "refusal", refusal
  end
  return result
end

return M
