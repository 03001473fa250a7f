-- llm_proto.anthropic_reply: a reply of the Messages API to a neutral result.
--
--   parse(raw, wire) -> {content, usage, stop_reason, finish_reason, refusal?, status} | nil, call_error
--
-- Blocks stay as they are, since they are sent back: thinking with its signature,
-- redacted thinking, uses of the server's own tools. The figures of usage do not overlap
-- on this wire; what is missing is estimated, with a flag. stop_reason pause_turn is the
-- provider's wish that the conversation be sent again as it is.

local failure = require("llm_proto.failure")
local reply = require("llm_proto.reply")

local M = {}

local FINISH = { model_context_window_exceeded = "max_tokens" }

local function copy(block, without)
  local out = {}
  for key, value in pairs(block) do
    if key ~= without then out[key] = value end
  end
  return out
end

local function tool_use(block, n, lost)
  local out, raw = copy(block, "input_json"), block.input_json
  local input, problem
  if type(raw) == "string" and raw ~= "" then
    input, problem = reply.input_of(raw)
    out.input_raw = raw
  else
    input, problem = reply.input_of(block.input)
    if not problem and next(input) == nil and (raw == "" or lost) then problem = "they were cut off" end
  end
  out.id, out.input, out.input_error = reply.id_of(block.id, n), input, problem
  if not problem then out.input_raw = nil end
  return out
end

-- text gives the blocks of a text; servers that imitate the API leave thoughts in it.
local function text(block, content)
  local thought, rest = nil, block.text
  if #content == 0 then thought, rest = reply.split_think(block.text) end
  if thought and thought ~= "" then content[1] = { type = "thinking", thinking = reply.clean(thought) } end
  if rest == "" then return end
  local out = copy(block)
  out.text = reply.clean(rest)
  content[#content + 1] = out
end

local function content_of(body, cut)
  local content, calls = std.json.array(), 0
  local blocks = type(body.content) == "table" and body.content or {}
  for i, block in ipairs(blocks) do
    if type(block) == "table" and type(block.type) == "string" then
      if block.type == "text" then
        if type(block.text) == "string" then text(block, content) end
      elseif block.type == "tool_use" then
        calls = calls + 1
        content[#content + 1] = tool_use(block, calls, cut and i == #blocks)
      elseif block.type == "thinking" and reply.clean(block.thinking) ~= block.thinking then
        -- A signature is over the text as it was.
        content[#content + 1] = { type = "thinking", thinking = reply.clean(block.thinking) }
      else
        content[#content + 1] = block
      end
    end
  end
  return content
end

local function refusal_of(body)
  local details = type(body.stop_details) == "table" and body.stop_details or {}
  if body.stop_reason ~= "refusal" and details.type ~= "refusal" then return nil end
  return { kind = "model", detail = details.explanation or details.category }
end

function M.parse(raw, wire)
  local body = raw.body
  local err = failure.of(raw, function(b) return b.usage and reply.counted(b.usage, "anthropic") end)
  if err then return nil, err end
  if type(body.content) ~= "table" then return nil, failure.unreadable(raw, "the reply holds no content") end
  local finish = body.stop_reason
  local stop = FINISH[finish] or finish
  local content = content_of(body, stop == "max_tokens")
  return {
    content = content, status = raw.status, finish_reason = finish, stop_reason = stop, model = body.model,
    refusal = refusal_of(body),
    usage = reply.usage_of(body.usage, "anthropic", function()
      return raw.notes and raw.notes.request_bytes or #std.json.encode(wire.body), #std.json.encode(content)
    end),
  }
end

return M
