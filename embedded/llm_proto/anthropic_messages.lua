-- llm_proto.anthropic_messages: neutral messages to those of the Messages API.
--
--   list(request, kept?) -> messages
--   system(system, mark) -> blocks | nil     mark: the cache marker of the last block
--
-- Blocks go back as they came: thinking with its signature, redacted thinking, and what
-- this runtime has no word for. A thought without a signature was thought by another
-- provider, and stays here. What the API refuses is made good: empty text, ids and names
-- with odd characters, a conversation that begins with the assistant.

local fields = require("llm_proto.fields")
local clean = require("llm_proto.reply").clean

local M = {}

local BEGIN = "(the conversation begins here)"

local function blank(text) return type(text) ~= "string" or not text:find("%S") end

-- id gives a call's id in the characters that the API takes, two ids never the same.
local function id(given)
  given = tostring(given)
  if not given:find("[^%w_%-]") and given ~= "" then return given end
  return "id_" .. given:gsub("[^%w%-]", function(c) return ("_%02x"):format(c:byte()) end)
end

local function text_of(value)
  if type(value) == "string" then return clean(value) end
  if value == nil then return "" end
  return clean(std.json.encode(value))
end

-- image gives a picture of the other wire as this one has it.
local function image(block)
  local url = type(block.image_url) == "table" and block.image_url.url or block.image_url
  if type(url) ~= "string" then return nil end
  local media, data = url:match("^data:([^;,]+);base64,(.*)$")
  if media then return { type = "image", source = { type = "base64", media_type = media, data = data } } end
  return { type = "image", source = { type = "url", url = url } }
end

local function text_block(block)
  if blank(block.text) then return nil end
  if block.text == clean(block.text) then return block end
  local out = {}
  for key, value in pairs(block) do out[key] = value end
  out.text = clean(block.text)
  return out
end

-- parts gives a tool's result as blocks where it is a list of them, else nil.
local function parts(content)
  if type(content) ~= "table" or #content == 0 then return nil end
  local out = std.json.array()
  for _, block in ipairs(content) do
    if type(block) ~= "table" then return nil end
    if block.type == "text" then
      out[#out + 1] = text_block(block)
    elseif block.type == "image_url" then
      out[#out + 1] = image(block)
    elseif block.type == "image" then
      out[#out + 1] = block
    else
      return nil
    end
  end
  return #out > 0 and out or nil
end

local function result(block)
  return {
    type = "tool_result", tool_use_id = id(block.tool_use_id), is_error = block.is_error or nil,
    content = parts(block.content) or text_of(block.content),
  }
end

-- call gives a call back without what this runtime noted about it.
local function call(block, offered)
  local out = {}
  for key, value in pairs(block) do
    if key ~= "input_error" and key ~= "input_raw" then out[key] = value end
  end
  out.id, out.name = id(block.id), fields.named(block.name, offered)
  if type(out.input) ~= "table" or #out.input > 0 or next(out.input) == nil then out.input = {} end
  return out
end

local function assistant_block(block, offered)
  if block.type == "text" then return text_block(block) end
  if block.type == "tool_use" then return call(block, offered) end
  if block.type == "thinking" and not block.signature then return nil end
  return block
end

local function user_block(block)
  if block.type == "text" then return text_block(block) end
  if block.type == "tool_result" then return result(block) end
  if block.type == "image_url" then return image(block) end
  if block.type == "thinking" or block.type == "redacted_thinking" then return nil end
  return block
end

-- content gives a message's blocks, nil where nothing is left that could be sent.
-- Results come first, as the API wants them.
local function content(message, offered)
  local given = message.content
  if type(given) == "string" then return not blank(given) and clean(given) or nil end
  local first, rest = std.json.array(), {}
  for _, block in ipairs(type(given) == "table" and given or {}) do
    local one = (message.role == "assistant" and assistant_block or user_block)(block, offered)
    if one and one.type == "tool_result" then first[#first + 1] = one elseif one then rest[#rest + 1] = one end
  end
  for _, block in ipairs(rest) do first[#first + 1] = block end
  return #first > 0 and first or nil
end

local function translated(message, offered)
  local blocks = content(message, offered)
  if not blocks then return nil end
  return { role = message.role == "assistant" and "assistant" or "user", content = blocks }
end

-- kept_list appends the wire forms of the first n messages, which never change: those that were not
-- sent before are translated and encoded, once.
local function kept_list(kept, n, out, offered)
  kept.wire.anthropic = kept.wire.anthropic or { list = {}, ends = {} }
  local list, ends, messages = kept.wire.anthropic.list, kept.wire.anthropic.ends, kept.messages
  for i = #ends + 1, n do
    local message = translated(messages[i], offered)
    if message then list[#list + 1] = knl.pack(message) end
    ends[i] = #list
  end
  local before = #out
  for i = 1, ends[n] or 0 do out[before + i] = list[i] end
end

function M.list(request, kept)
  local out, offered = std.json.array(), {}
  for _, tool in ipairs(request.tools or {}) do offered[tool.name] = true end
  local first = request.messages[1]
  if first and (first.role == "assistant" or not translated(first, offered)) then
    out[1] = { role = "user", content = BEGIN }
  end
  local same = kept and kept.intact(request.messages) or 0
  if same > 0 then kept_list(kept, same, out, offered) end
  for i = same + 1, #request.messages do out[#out + 1] = translated(request.messages[i], offered) end
  return out
end

function M.system(system, mark)
  if type(system) == "string" then system = { { type = "text", text = system } } end
  local out = std.json.array()
  for _, block in ipairs(type(system) == "table" and system or {}) do
    local one = block.type == "text" and text_block(block)
    if one then out[#out + 1] = one end
  end
  if #out == 0 then return nil end
  local last = {}
  for key, value in pairs(out[#out]) do last[key] = value end
  last.cache_control = last.cache_control or mark
  out[#out] = last
  return out
end

return M
