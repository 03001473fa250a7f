-- llm_proto.openai_messages: neutral messages to those of Chat Completions.
--
--   messages(request, alternate, kept?) -> list
--
-- Each tool_result becomes a message of role tool; text beside it follows as a user
-- message of its own, so that nothing is lost. Thinking is not sent back. alternate
-- joins neighbours of one role, for templates that insist on user and assistant in turn.

local fields = require("llm_proto.fields")
local clean = require("llm_proto.reply").clean
local named, joined = fields.named, fields.joined

local function identified(id)
  return type(id) == "string" and (id:gsub("%c", "_")) or id
end

local function arguments(block)
  local input = block.input
  if input == nil then return "{}" end
  local text = std.json.encode(input)
  return text == "[]" and "{}" or text
end

local function assistant(content, offered)
  if type(content) == "string" then return { role = "assistant", content = clean(content) } end
  local message = { role = "assistant", content = joined(content, "text", "text") }
  local calls
  for _, block in ipairs(content) do
    if block.type == "tool_use" then
      calls = calls or std.json.array()
      calls[#calls + 1] = {
        id = identified(block.id), type = "function",
        ["function"] = { name = named(block.name, offered), arguments = arguments(block) },
      }
    end
  end
  message.tool_calls = calls
  return message
end

local function result_text(content)
  if type(content) == "string" then return clean(content) end
  if content == nil then return "" end
  return std.json.encode(content)
end

local function user(content, out)
  if type(content) == "string" then
    out[#out + 1] = { role = "user", content = clean(content) }
    return
  end
  local parts = std.json.array()
  for _, block in ipairs(content) do
    if block.type == "tool_result" then
      out[#out + 1] = { role = "tool", tool_call_id = identified(block.tool_use_id), content = result_text(block.content) }
    elseif block.type == "text" then
      parts[#parts + 1] = { type = "text", text = clean(block.text) }
    elseif block.type ~= "thinking" and block.type ~= "redacted_thinking" then
      parts[#parts + 1] = block
    end
  end
  if #parts == 1 and parts[1].type == "text" then
    out[#out + 1] = { role = "user", content = parts[1].text }
  elseif #parts > 0 then
    out[#out + 1] = { role = "user", content = parts }
  end
end

local function merge(list)
  local out = std.json.array()
  for _, message in ipairs(list) do
    local last = out[#out]
    if last and last.role == message.role and type(last.content) == "string" and type(message.content) == "string"
      and not last.tool_calls and not message.tool_calls and message.role ~= "tool" then
      out[#out] = { role = last.role, content = last.content .. "\n\n" .. message.content }
    else
      out[#out + 1] = message
    end
  end
  return out
end

local function translated(message, out, offered)
  if message.role == "assistant" then
    out[#out + 1] = assistant(message.content, offered)
  elseif message.role == "user" then
    user(message.content, out)
  else
    out[#out + 1] = message
  end
end

-- kept_messages appends the wire forms of the first n messages that never change: those that
-- were not sent before are translated and encoded, once.
local function kept_messages(kept, n, out, offered)
  local wire, messages = kept.wire, kept.messages
  wire.list, wire.ends = wire.list or {}, wire.ends or {}
  local list, ends = wire.list, wire.ends
  for i = #ends + 1, n do
    local fresh = {}
    translated(messages[i], fresh, offered)
    for _, message in ipairs(fresh) do list[#list + 1] = knl.pack(message) end
    ends[i] = #list
  end
  local before = #out
  for i = 1, ends[n] or 0 do out[before + i] = list[i] end
end

return function(request, alternate, kept)
  local out, offered = std.json.array(), {}
  for _, tool in ipairs(request.tools or {}) do offered[tool.name] = true end
  if request.system and request.system ~= "" then
    local system = request.system
    if type(system) == "table" then system = joined(system, "text", "text") end
    out[1] = { role = "system", content = clean(system) }
  end
  local same = kept and not alternate and kept.intact(request.messages) or 0
  if same > 0 then kept_messages(kept, same, out, offered) end
  for i = same + 1, #request.messages do translated(request.messages[i], out, offered) end
  return alternate and merge(out) or out
end
