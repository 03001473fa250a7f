-- policy.filters: filters of a device, each with a note or a limit for the request.
--
--   carry{max_bytes = 512, failed?}  -> bind(session) -> filter
--     a note on the last beat that failed, at most max_bytes. failed(beat) -> text | nil says
--     what failed of {id, content, calls, results, failed?}; default: a failed call of the
--     model, results that are not ok
--   thinking_cap{room, budget?}      -> filter     where reasoning must stop for the call to fit
--   room_note{room}                  -> filter     one line: what the request took, what is left
--
-- A request that is given is not changed.

local estimate = require("knl.estimate")
local log = require("policy.log")
local options = require("policy.options")
local rooms = require("policy.room")

local M = {}

local ELLIPSIS = "..."

-- trimmed cuts text at a number of bytes, never inside a character.
local function trimmed(text, max)
  if #text <= max then return text end
  local n = max - #ELLIPSIS
  if n < 1 then return ELLIPSIS:sub(1, max) end
  while n > 0 do
    local after = text:byte(n + 1)
    if after < 128 or after >= 192 then break end
    n = n - 1
  end
  return text:sub(1, n) .. ELLIPSIS
end

-- noted gives a request with one more user message.
local function noted(request, text)
  local out, messages = {}, std.json.array()
  for key, value in pairs(request) do out[key] = value end
  for i, message in ipairs(request.messages) do messages[i] = message end
  messages[#messages + 1] = { role = "user", content = text }
  out.messages = messages
  return out
end

local function failure(beat)
  if beat.failed then return "the model call failed: " .. tostring(beat.failed.error or beat.failed.kind) end
  local names, parts = {}, {}
  for _, call in ipairs(beat.calls) do names[call.id] = call.name end
  for _, result in ipairs(beat.results) do
    local value = result.result
    local refused = type(value) == "table" and value.ok == false
    if not result.ok or refused then
      parts[#parts + 1] = tostring(names[result.call_id] or "a tool") .. ": "
        .. (type(value) == "string" and value or std.json.encode(value))
    end
  end
  if #parts > 0 then return table.concat(parts, "; ") end
end

function M.carry(given)
  options("carry", given, { max_bytes = true, failed = true })
  given = given or {}
  local max = options.number("carry", "max_bytes", given.max_bytes or 512, 1, true)
  local failed = given.failed == nil and failure or options.fn("carry", "failed", given.failed)
  return function(session)
    if not log.is_session(session) then options.fail("carry", "is bound to a session: policy.carry{…}(session)") end
    return function(request)
      local beats = log.beats(session)
      local last = beats[#beats]
      local text = last and failed(last)
      if text == nil or text == false then return request end
      return noted(request, trimmed("The last step failed: " .. tostring(text), max))
    end
  end
end

function M.thinking_cap(given)
  options("thinking_cap", given, { room = true, budget = true })
  given = given or {}
  local room = rooms.of("thinking_cap", given)
  if not room.call_reserve then options.fail("thinking_cap", "the room has no call_reserve: it says how much of a reply a call needs") end
  local budget = given.budget
  if budget ~= nil then options.number("thinking_cap", "budget", budget, 1, true) end
  return function(request)
    local stop = room:thinking_stop(request)
    if budget then stop = math.min(stop, budget) end
    local out = {}
    for key, value in pairs(request) do out[key] = value end
    if stop < 1 then
      out.thinking = false
    else
      out.thinking = {}
      for key, value in pairs(type(request.thinking) == "table" and request.thinking or {}) do out.thinking[key] = value end
      out.thinking.budget_tokens = stop
    end
    return out
  end
end

-- The messages of a conversation never change, and are many: each is estimated once as
-- long as it comes again.
local sizes, older, known = {}, {}, 0
local MAX_KNOWN = 4096

local function size_of(message)
  local n = sizes[message]
  if n then return n end
  n = older[message] or estimate.message(message)
  if known >= MAX_KNOWN then sizes, older, known = {}, sizes, 0 end
  sizes[message], known = n, known + 1
  return n
end

local function taken(room, request)
  if room.counts then return room:count(request) end
  local n = estimate.envelope(request)
  for _, message in ipairs(request.messages) do n = n + size_of(message) end
  return n
end

function M.room_note(given)
  options("room_note", given, { room = true })
  local room = rooms.of("room_note", given or {})
  return function(request)
    local took = taken(room, request)
    return noted(request, ("This request takes about %d of %d tokens; %d are left."):format(took, room.limit, math.max(room.limit - took, 0)))
  end
end

return M
