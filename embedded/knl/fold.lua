-- knl.fold: the default fold, from a session's events to the messages of a request.
--
--   fold(events, device) -> request     pure and deterministic
--   fold.new()           -> folder      the same, one event at a time
--     folder:step(event)                events in order of seq
--     folder:messages()                 the messages so far, a fresh list
--     folder.list                       those that are final: it only ever grows
--   fold.tools(device)   -> list        declarations sorted by name, without handlers
--   fold.request(messages, device)      messages with the device's system, model and tools
--
-- Every tool_use of an assistant message is answered by exactly one tool_result,
-- in the order of the calls, before the next message: results that came in another
-- order are put back, and a call without one (a crash came between) is answered
-- with an error that says so. The log itself is not touched.

local array = std.json.array

local fold = {}

local INTERRUPTED = "tool execution was interrupted before a result was recorded"

local function text_of(result)
  if type(result) == "string" then return result end
  if result == nil then return "" end
  return std.json.encode(result)
end

local function result_block(id, data)
  local block = { type = "tool_result", tool_use_id = id, content = text_of(data.result) }
  if not data.ok then block.is_error = true end
  return block
end

-- open_calls lists the ids of a reply's calls, each once.
local function open_calls(content)
  local ids, seen
  if type(content) ~= "table" then return nil end
  for _, block in ipairs(content) do
    if type(block) == "table" and block.type == "tool_use" and type(block.id) == "string" then
      ids, seen = ids or {}, seen or {}
      if not seen[block.id] then ids[#ids + 1] = block.id end
      seen[block.id] = true
    end
  end
  return ids, seen
end

local Folder = {}
Folder.__index = Folder

-- answer closes the calls of the last assistant message with one user message.
local function answer(self)
  local content = array()
  for i, id in ipairs(self.calls) do
    content[i] = self.results[id]
      or { type = "tool_result", tool_use_id = id, content = INTERRUPTED, is_error = true }
  end
  return { role = "user", content = content }
end

local function settle(self)
  if self.calls then
    self.list[#self.list + 1] = answer(self)
    self.calls, self.asked, self.results = nil, nil, nil
  end
end

local STEPS = {
  msg_user = function(self, data)
    settle(self)
    self.list[#self.list + 1] = { role = "user", content = data.content }
  end,
  llm_response = function(self, data)
    settle(self)
    local content = data.content
    -- A reply without any block cannot be sent back: providers refuse it.
    if type(content) == "table" and #content == 0 then return end
    self.list[#self.list + 1] = { role = "assistant", content = content }
    self.calls, self.asked = open_calls(content)
    if self.calls then self.results, self.open = {}, #self.calls end
  end,
  tool_result = function(self, data)
    -- A result that answers no open call has nothing to stand behind: skipped.
    local id = data.call_id
    if not self.calls or not self.asked[id] or self.results[id] then return end
    self.results[id] = result_block(id, data)
    self.open = self.open - 1
    if self.open == 0 then settle(self) end
  end,
}

function Folder:step(event)
  local step = STEPS[event.kind]
  if step then step(self, event.data) end
end

function Folder:messages()
  local out = array()
  for i, message in ipairs(self.list) do out[i] = message end
  if self.calls then out[#out + 1] = answer(self) end
  return out
end

function fold.new() return setmetatable({ list = {} }, Folder) end

function fold.tools(device)
  local names, list, offered = {}, array(), device.tools or {}
  for name in pairs(offered) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    local tool = offered[name]
    list[i] = { name = name, description = tool.description, input_schema = tool.input_schema }
  end
  return list
end

function fold.request(messages, device)
  local request = { messages = messages }
  if device.system ~= nil then request.system = device.system end
  if device.model ~= nil then request.model = device.model end
  local tools = fold.tools(device)
  if #tools > 0 then request.tools = tools end
  return request
end

return setmetatable(fold, {
  __call = function(_, events, device)
    local folder = fold.new()
    for _, event in ipairs(events) do folder:step(event) end
    return fold.request(folder:messages(), device)
  end,
})
