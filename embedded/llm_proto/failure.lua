-- llm_proto.failure: what is wrong with a reply, as a call error.
--
--   of(raw, usage_of) -> call_error | nil     nil for a reply that can be read
--     usage_of(body) -> usage | nil           what the provider counted all the same
--
-- Kinds are those of call errors. A kind is read from the status, then from the type or
-- code of the provider's error; its text decides only where nothing else does. No text
-- of an authentication error goes on, since it may repeat a part of the key.

local M = {}

local MAX_TEXT = 300 -- bytes of a provider's message that go on

local BY_STATUS = {
  [400] = "invalid_request", [404] = "invalid_request", [413] = "invalid_request", [422] = "invalid_request",
  [401] = "auth", [403] = "auth", [402] = "quota", [408] = "transport", [504] = "transport", [429] = "rate_limited",
  [503] = "overloaded", [529] = "overloaded",
}

local RETRYABLE = { transport = true, rate_limited = true, overloaded = true, server = true }

local BY_TYPE = {
  insufficient_quota = "quota", billing_hard_limit_reached = "quota", billing_error = "quota",
  context_length_exceeded = "context_length", exceed_context_size_error = "context_length",
  rate_limit_exceeded = "rate_limited", rate_limit_error = "rate_limited",
  overloaded_error = "overloaded", server_error = "server", api_error = "server", timeout_error = "transport",
  authentication_error = "auth", permission_error = "auth", invalid_api_key = "auth",
  invalid_request_error = "invalid_request", not_found_error = "invalid_request", request_too_large = "invalid_request",
}

-- How providers and servers say that a request is longer than the model's window.
local TOO_LONG = {
  "context length", "context size", "context window", "context limit", "maximum context", "prompt is too long",
  "input token count", "maximum prompt length", "input is too long", "reduce the length of the messages",
}

-- Statuses that say what they mean, whatever the text.
local PLAIN_STATUS = { [401] = true, [402] = true, [403] = true, [404] = true, [429] = true, [503] = true, [529] = true }

local function holds(message, words)
  for _, word in ipairs(words) do
    if message:find(word, 1, true) then return true end
  end
  return false
end

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
  if status == 400 and message:find("credit balance", 1, true) then return "quota" end
  local vague = not by_type or by_type == "invalid_request" or by_type == "server"
  if vague and not PLAIN_STATUS[status] and holds(message, TOO_LONG) then return "context_length" end
  if status >= 400 then return BY_STATUS[status] or (status >= 500 and "server" or "unknown") end
  return by_type or "server"
end

local function failure(status, err, headers)
  local kind = kind_of(status, err, headers)
  -- An error inside a good status is no error of HTTP.
  local text = status >= 300 and "API error " .. status .. " (" .. kind .. ")" or "the provider reported an error: " .. kind
  if kind ~= "auth" and type(err.message) == "string" then text = text .. ": " .. err.message:sub(1, MAX_TEXT) end
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

-- unreadable is the error of a reply that is no answer at all.
function M.unreadable(raw, message)
  return { kind = "server", retryable = false, status = raw.status, message = message }
end

function M.of(raw, usage_of)
  local body, notes = raw.body, raw.notes or {}
  if raw.status >= 400 then return failure(raw.status, error_of(body), raw.headers) end
  if type(body) ~= "table" then return M.unreadable(raw, "the reply is no JSON object") end
  if notes.not_json and raw.status < 300 then return M.unreadable(raw, "the reply is no JSON") end
  if body.error then
    local err = failure(raw.status, error_of(body), raw.headers)
    err.usage = usage_of(body)
    return err
  end
  if notes.incomplete then
    return {
      kind = "transport", retryable = true, status = raw.status, usage = usage_of(body),
      message = "the reply ended before it was finished (" .. tostring(notes.incomplete) .. ")",
    }
  end
end

return M
