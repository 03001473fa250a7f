-- policy.tools: wrappers around a device's tools.
--
--   result_cap{room}            -> wrap(tools) -> tools
--   require_args{args?}         -> wrap(tools) -> tools
--   beat_cap{room}              -> bind(session) -> wrap(tools) -> tools
--   repeat_cap{max = 2, resets?} -> bind(session) -> wrap(tools) -> tools
--
-- A wrapped handler answers, instead of what it would have, {ok = false, reason, …}:
--   result_too_large {tokens, limit}     beat_budget {tokens, used, limit}
--   repeated {times, max}                argument_missing {missing}
-- and raises as it did. What needs counts reads them in the session's log: nothing is
-- kept here. A tool that tool.register knows cannot be wrapped, since its handler is the
-- registry's; a tool with repeatable = true may be called again and again. resets names the tools that
-- change something (default: all that are not read_only); require_args reads "required" of
-- the input schema, and args = {tool = {names}} beside it.

local log = require("policy.log")
local options = require("policy.options")
local rooms = require("policy.room")

local M = {}

local function wrapped(who, tools, around)
  if type(tools) ~= "table" then options.fail(who, "wraps a map of tools, got a " .. type(tools)) end
  local out = {}
  for name, tool in pairs(tools) do
    if type(tool) ~= "table" then options.fail(who, "tool '" .. tostring(name) .. "' must be a table") end
    if tool.registered then
      options.fail(who, "tool '" .. tostring(name) .. "' is registered, and its handler is the registry's: give the device the function to wrap it")
    end
    if not options.callable(tool.handler) then options.fail(who, "tool '" .. tostring(name) .. "' has no handler function") end
    local copy = {}
    for key, value in pairs(tool) do copy[key] = value end
    copy.handler = around(name, tool, tool.handler)
    out[name] = copy
  end
  return out
end

local function bound(who, session)
  if not log.is_session(session) then options.fail(who, "is bound to a session first: policy." .. who .. "{…}(session)(tools)") end
end

function M.result_cap(given)
  options("result_cap", given, { room = true, port = true, conf = true, share = true })
  given = given or {}
  local room = rooms.of("result_cap", given)
  local limit = room.result_limit
  if given.share ~= nil then
    local share = options.number("result_cap", "share", given.share, 0)
    limit = math.max(math.floor(room.limit * share), 1)
  end
  return function(tools)
    return wrapped("result_cap", tools, function(_, _, handler)
      return function(...)
        local result = handler(...)
        local tokens = room:count_text(result)
        if tokens > limit then return { ok = false, reason = "result_too_large", tokens = tokens, limit = limit } end
        return result
      end
    end)
  end
end

-- spent gives the tokens of the results of the beat that is running.
local function spent(session, room)
  local beats, used = log.beats(session), 0
  for i = #beats, 1, -1 do
    if #beats[i].calls > 0 then
      for _, result in ipairs(beats[i].results) do used = used + room:count_text(result.result) end
      return used
    end
  end
  return used
end

function M.beat_cap(given)
  options("beat_cap", given, { room = true })
  local room = rooms.of("beat_cap", given or {})
  return function(session)
    bound("beat_cap", session)
    return function(tools)
      return wrapped("beat_cap", tools, function(_, _, handler)
        return function(...)
          local result = handler(...)
          local tokens, used = room:count_text(result), spent(session, room)
          if used + tokens > room.beat_budget then
            return { ok = false, reason = "beat_budget", tokens = tokens, used = used, limit = room.beat_budget }
          end
          return result
        end
      end)
    end
  end
end

local function set(who, name, list)
  if type(list) ~= "table" then options.fail(who, name .. " must be a list of names, got a " .. type(list)) end
  local out = {}
  for _, item in ipairs(list) do out[item] = true end
  return out
end

-- times counts how often a call was made since something changed, this one included:
-- from the end of the log back to the last result that changed something.
local function times(steps, signature, resets)
  local n = 0
  for i = #steps, 1, -1 do
    local call, result = steps[i].call, steps[i].result
    if result then
      local value = result.result
      local refused = not result.ok or type(value) == "table" and value.ok == false
      if not refused and resets(call.name) and log.called(call) ~= signature then return n end
    elseif log.called(call) == signature then
      n = n + 1
    end
  end
  return n
end

function M.repeat_cap(given)
  options("repeat_cap", given, { max = true, resets = true })
  given = given or {}
  local max = options.number("repeat_cap", "max", given.max or 2, 1, true)
  local named = given.resets ~= nil and set("repeat_cap", "resets", given.resets)
  return function(session)
    bound("repeat_cap", session)
    return function(tools)
      local function resets(name)
        if named then return named[name] end
        return tools[name] ~= nil and not tools[name].read_only
      end
      return wrapped("repeat_cap", tools, function(name, tool, handler)
        if tool.repeatable then return handler end
        return function(input, ...)
          local n = times(log.read(session).steps, log.canonical({ name, input }), resets)
          if n > max then return { ok = false, reason = "repeated", times = n, max = max } end
          return handler(input, ...)
        end
      end)
    end
  end
end

function M.require_args(given)
  options("require_args", given, { args = true })
  local named = given and given.args or {}
  if type(named) ~= "table" then options.fail("require_args", "args must be a map from tool to a list of names") end
  return function(tools)
    return wrapped("require_args", tools, function(name, tool, handler)
      local needed = {}
      for _, list in ipairs({ (tool.input_schema or {}).required or {}, named[name] or {} }) do
        for _, arg in ipairs(list) do needed[#needed + 1] = arg end
      end
      return function(input, ...)
        local missing = std.json.array()
        for _, arg in ipairs(needed) do
          local value = type(input) == "table" and input[arg]
          if value == nil or value == std.json.null then missing[#missing + 1] = arg end
        end
        if #missing > 0 then return { ok = false, reason = "argument_missing", missing = missing } end
        return handler(input, ...)
      end
    end)
  end
end

return M
