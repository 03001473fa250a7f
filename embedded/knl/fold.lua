-- knl.fold: the default fold, from a session's events to the messages of a request.
--
--   fold(events, device) -> request     pure and deterministic
--   fold.new()           -> folder      the same, one event at a time
--     folder:step(event)                events in order of seq; steps(events) takes many
--     folder:messages()                 the messages so far, a fresh list
--     folder.list                       those that are final: it only ever grows
--     folder.at, folder.replies         the events of replies, and how many messages came
--                                       before each
--     folder.marked                     true where the log holds events of policy.compact
--     folder.overflow                   {n, times} where a provider found a request too long
--   fold.tools(device)   -> list        declarations sorted by name, without handlers
--   fold.request(messages, device)      messages with the device's system, model and tools
--
-- Every tool_use of an assistant message is answered by exactly one tool_result,
-- in the order of the calls, before the next message: results that came in another
-- order are put back, and a call without one (a crash came between) is answered
-- with an error that says so. An id that an earlier reply used gets a number behind it,
-- since providers refuse one that comes twice. What providers take for no message at all
-- (no content, empty text) is left out, and a log that begins with a reply gets a user
-- message before it. The log itself is not touched.

local array, type, setmetatable = std.json.array, type, setmetatable
local ARRAY = getmetatable(array())

local THOUGHT = { thinking = true, redacted_thinking = true }

local fold = {}

local INTERRUPTED = "tool execution was interrupted before a result was recorded"
local BEFORE_REPLY = "(the conversation goes on from here)"

-- said reports whether a message's content is anything that can be sent.
local function said(content)
  if content == nil or content == "" then return false end
  if type(content) ~= "table" then return true end
  if #content == 0 then return next(content) ~= nil end
  for i = 1, #content do
    local block = content[i]
    if type(block) ~= "table" or block.type ~= "text" or block.text ~= "" then return true end
  end
  return false
end

-- renamed gives a reply's content, and the ids of its calls, with an id for each call
-- that no call had before. used says by id which event had it first.
local function renamed(used, content, here)
  local out, ids, own = array(), {}, {}
  for i, block in ipairs(content) do
    out[i] = block
    if type(block) == "table" and block.type == "tool_use" and block.id ~= nil then
      local id, n = block.id, 1
      while own[id] or used[id] and (used[id] ~= here or n > 1) do
        n = n + 1
        id = tostring(block.id) .. "_" .. n
      end
      own[id], used[id], ids[#ids + 1] = true, here, id
      if id ~= block.id then
        out[i] = {}
        for key, value in pairs(block) do out[i][key] = value end
        out[i].id = id
      end
    end
  end
  return out, ids
end

-- new makes a folder. Its state is in locals and its steps in one pass each: a session
-- of thousands of events is folded anew whenever it is taken up.
function fold.new()
  local list, used, at, replies = {}, {}, {}, {}
  -- The calls of the last reply that have no answer yet: ids as they are sent, as the log
  -- has them, the results by place, and how many are missing.
  local calls, asked, results, open
  local folder = { list = list, at = at, replies = replies }

  local function answer()
    local content = setmetatable({}, ARRAY)
    for i = 1, #calls do
      content[i] = results and results[i]
        or { type = "tool_result", tool_use_id = calls[i], content = INTERRUPTED, is_error = true }
    end
    return { role = "user", content = content }
  end

  local function settle()
    list[#list + 1] = answer()
    calls = nil
  end

  local steps = {}

  function steps.msg_user(event)
    if calls then settle() end
    local content = event.data.content
    if said(content) then list[#list + 1] = { role = "user", content = content } end
  end

  function steps.llm_response(event)
    if calls then settle() end
    local content, n, k = event.data.content, #list, #at + 1
    at[k], replies[k] = n, event
    local ids, twice, sendable
    if type(content) == "table" then
      for i = 1, #content do
        local block = content[i]
        local kind = type(block) == "table" and block.type
        if kind == "tool_use" then
          local id = block.id
          sendable = true
          if id ~= nil then
            if ids then ids[#ids + 1] = id else ids = { id } end
            if used[id] then twice = true else used[id] = event end
          end
        elseif kind == "text" and block.text ~= "" or kind ~= "text" and not THOUGHT[kind] then
          sendable = true
        end
      end
    else
      sendable = said(content)
    end
    -- A reply without any block but thoughts cannot be sent back: providers refuse it.
    if not sendable then return end
    if n == 0 then
      n = 1
      list[1] = { role = "user", content = BEFORE_REPLY }
    end
    if ids then
      calls, asked, results, open = ids, ids, nil, #ids
      if twice then content, calls = renamed(used, content, event) end
    end
    list[n + 1] = { role = "assistant", content = content }
  end

  function steps.tool_result(event)
    -- A result that answers no open call has nothing to stand behind: skipped.
    if not calls then return end
    local data = event.data
    local id, place = data.call_id, 1
    while asked[place] ~= id or results and results[place] do
      place = place + 1
      if place > #asked then return end
    end
    local text = data.result
    if type(text) ~= "string" then text = text == nil and "" or std.json.encode(text) end
    local block = { type = "tool_result", tool_use_id = calls[place], content = text }
    if not data.ok then block.is_error = true end
    if #asked == 1 then
      list[#list + 1], calls = { role = "user", content = setmetatable({ block }, ARRAY) }, nil
      return
    end
    results = results or {}
    results[place], open = block, open - 1
    if open == 0 then settle() end
  end

  function steps.llm_call_failed(event)
    if event.data.kind ~= "context_length" then return end
    folder.overflow = folder.overflow or { n = #list, times = 0 }
    folder.overflow.times = folder.overflow.times + 1
  end

  -- Kinds of policy.compact: the conversation is then no longer all that was said.
  local function marked() folder.marked = true end
  steps.compact_started, steps.summary, steps.compact_skipped = marked, marked, marked

  function folder:step(event)
    local step = steps[event.kind]
    if step then step(event) end
  end

  function folder:steps(events)
    for i = 1, #events do
      local event = events[i]
      local step = steps[event.kind]
      if step then step(event) end
    end
  end

  function folder:messages()
    local out = array()
    for i = 1, #list do out[i] = list[i] end
    if calls then out[#out + 1] = answer() end
    return out
  end

  return folder
end

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
    folder:steps(events)
    return fold.request(folder:messages(), device)
  end,
})
