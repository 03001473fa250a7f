-- llm_proto.openai_reply: a Chat Completions reply to a neutral result.
--
--   parse(raw, wire) -> {content, usage, stop_reason, finish_reason, refusal?, status} | nil, call_error
--
-- raw is what llm.send gave: body in the provider's non-streamed form, and notes of
-- what was odd. Usage is made disjoint (the provider counts cached tokens inside the
-- prompt, thinking inside the completion) and estimated, with a flag, where it is
-- missing. A reply that ended before its finish is an error, never a result.

local failure = require("llm_proto.failure")
local reply = require("llm_proto.reply")

local M = {}

local FINISH = { stop = "end_turn", tool_calls = "tool_use", function_call = "tool_use", length = "max_tokens" }

local clean = reply.clean

local function text_parts(content)
  if type(content) == "string" then return content end
  local parts = {}
  for _, part in ipairs(type(content) == "table" and content or {}) do
    parts[#parts + 1] = part.text or part.refusal
  end
  return table.concat(parts, "")
end

-- written gives the calls that a small model wrote into its text, and what is left of
-- the text; conf says in which forms they come.
local function written(text, wire)
  local form = wire.text_tool_calls
  if not form or text == "" or not wire.tools then return text, {} end
  local found = llm.text_calls(text, { form = form, tools = wire.tools })
  return found.text, found.calls
end

-- content_of gives a reply's blocks. A last call without arguments in a reply that
-- was cut has lost them.
local function content_of(message, cut, wire)
  local content = std.json.array()
  local thought = message.reasoning_content or message.reasoning
  local inline, text = reply.split_think(text_parts(message.content))
  if type(thought) ~= "string" or thought == "" then thought = inline end
  if thought and thought ~= "" then content[1] = { type = "thinking", thinking = clean(thought) } end
  local calls = type(message.tool_calls) == "table" and message.tool_calls or {}
  local found = false
  if #calls == 0 then
    text, calls = written(text, wire)
    found = #calls > 0
  end
  if text ~= "" then content[#content + 1] = { type = "text", text = clean(text) } end
  for i, call in ipairs(calls) do
    local fn = type(call["function"]) == "table" and call["function"] or {}
    local input, problem, raw = reply.input_of(fn.arguments)
    if cut and not found and i == #calls and not problem and next(input) == nil then problem = "they were cut off" end
    content[#content + 1] = {
      type = "tool_use", id = reply.id_of(call.id, i), name = fn.name,
      input = input, input_error = problem, input_raw = raw,
    }
  end
  return content, found
end

function M.parse(raw, wire)
  local body = raw.body
  local err = failure.of(raw, function(b) return b.usage and reply.counted(b.usage, "openai") end)
  if err then return nil, err end
  local choice = type(body.choices) == "table" and body.choices[1]
  if type(choice) ~= "table" or type(choice.message) ~= "table" then
    return nil, failure.unreadable(raw, "the reply holds no choice")
  end
  local finish = choice.finish_reason
  if finish == "error" then -- of a router, whose upstream broke off
    err = failure.unreadable(raw, "the provider broke the reply off with an error")
    err.retryable, err.usage = true, body.usage and reply.counted(body.usage, "openai")
    return nil, err
  end
  local content, found = content_of(choice.message, finish == "length", wire)
  local refusal = choice.message.refusal
  local result = {
    content = content, status = raw.status, finish_reason = finish, model = body.model,
    stop_reason = found and finish ~= "length" and "tool_use" or FINISH[finish] or finish,
    usage = reply.usage_of(body.usage, "openai", function()
      return raw.notes and raw.notes.request_bytes or #std.json.encode(wire.body), #std.json.encode(content)
    end),
  }
  if type(refusal) == "string" and refusal ~= "" then
    result.stop_reason, result.refusal = "refusal", refusal
  end
  return result
end

return M
