-- knl.shrink: shortens the largest parts of messages until they fit.
--
--   shrink.results(messages, sizes, room) -> messages, sizes, n    tool results
--   shrink.texts(messages, sizes, room)   -> messages, sizes, n    texts, and strings of arguments
--     sizes = estimated tokens of each message; room = those that all may take
--   shrink.LEAST  tokens that no message can be made smaller than by this
--
-- The largest are cut to one common length, so that many small ones stay whole. A cut
-- keeps head and tail. Messages given are not changed; n counts what was shortened.

local estimate = require("knl.estimate")

local M = { LEAST = 120 }

local FLOOR = 240 -- bytes that a part is never cut below
local HALVINGS, REFINEMENTS = 40, 5

-- fields visits the text fields of a message: visit(block, key, text) may give a new one.
local function leaves(value, visit)
  if type(value) == "string" then return visit(value) end
  if type(value) ~= "table" then return value end
  local out, changed = {}, false
  for key, inner in pairs(value) do
    out[key] = leaves(inner, visit)
    changed = changed or out[key] ~= inner
  end
  return changed and setmetatable(out, getmetatable(value)) or value
end

local function blocks(content, visit)
  local out, changed = std.json.array(), false
  for i, block in ipairs(content) do
    out[i] = type(block) == "table" and visit(block) or block
    changed = changed or out[i] ~= block
  end
  return changed and out or content
end

local function replaced(t, key, value)
  if t[key] == value then return t end
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  out[key] = value
  return setmetatable(out, getmetatable(t))
end

local function result(visit)
  local function inner(block)
    if block.type == "text" and type(block.text) == "string" then return replaced(block, "text", visit(block.text)) end
    return block
  end
  return function(block)
    if block.type ~= "tool_result" then return block end
    if type(block.content) == "table" then return replaced(block, "content", blocks(block.content, inner)) end
    if type(block.content) ~= "string" then return block end
    return replaced(block, "content", visit(block.content))
  end
end

local function text(visit)
  return function(block)
    if block.type == "text" and type(block.text) == "string" then return replaced(block, "text", visit(block.text)) end
    if block.type == "tool_use" then return replaced(block, "input", leaves(block.input, visit)) end
    -- A thought that is signed goes back unchanged or not at all.
    if block.type == "thinking" and not block.signature and type(block.thinking) == "string" then
      return replaced(block, "thinking", visit(block.thinking))
    end
    return block
  end
end

local function walk(message, of, visit, plain)
  local content = message.content
  if type(content) == "string" then return plain and replaced(message, "content", visit(content)) or message end
  if type(content) ~= "table" then return message end
  return replaced(message, "content", blocks(content, of(visit)))
end

local function shrunk(messages, sizes, room, of, plain)
  local parts, total, longest = {}, 0, 0
  for i, message in ipairs(messages) do
    total = total + sizes[i]
    walk(message, of, function(s)
      if #s > FLOOR then
        parts[#parts + 1] = { bytes = #s, tokens = estimate.text(s) }
        longest = math.max(longest, #s)
      end
      return s
    end, plain)
  end
  if total <= room or #parts == 0 then return messages, sizes, 0 end
  local function at(level)
    local n = total
    for _, part in ipairs(parts) do
      if part.bytes > level then n = n - part.tokens * (1 - level / part.bytes) end
    end
    return n + #parts -- rounding up of each
  end
  local low, high = longest, longest
  for _ = 1, HALVINGS do
    if at(low) <= room or low <= FLOOR then break end
    low, high = math.max(math.floor(low / 2), FLOOR), low
  end
  for _ = 1, REFINEMENTS do
    local middle = math.floor((low + high) / 2)
    if at(middle) <= room then low = middle else high = middle end
  end
  local out, own, n = std.json.array(), {}, 0
  for i, message in ipairs(messages) do
    out[i] = walk(message, of, function(s)
      if #s <= low or #s <= FLOOR then return s end
      n = n + 1
      return estimate.shorten(s, low)
    end, plain)
    own[i] = out[i] == message and sizes[i] or estimate.message(out[i])
  end
  return out, own, n
end

function M.results(messages, sizes, room) return shrunk(messages, sizes, room, result, false) end

function M.texts(messages, sizes, room) return shrunk(messages, sizes, room, text, true) end

return M
