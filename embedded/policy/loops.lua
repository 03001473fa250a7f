-- policy.loops: what a loop asks between two beats.
--
--   stagnation{same = 3, no_progress = 2, signature?, exempt?} -> pred(session) -> nil | reason, n
--     "repeated"     the last `same` beats have equal signatures; signature(beat) -> text | nil
--                    may replace that of the calls, or of the text where nothing was called.
--                    A beat that calls a tool of exempt (a list of names) repeats nothing
--     "no_progress"  the last `no_progress` beats brought neither a call nor text
--   retry{kinds?, max = 3} -> pred(outcome, attempt) -> true[, retry_after] | false
--     for an error that may be sent again, or of the kinds named, as long as attempts are left;
--     the first attempt counts
--   escalate{strong, when?} -> next(device, outcome) -> device
--     the same device, or one with the stronger llm where when(outcome) says so; default: on
--     every outcome that is not ok
--
-- Counts come from the log: a resumed session goes on counting.

local log = require("policy.log")
local options = require("policy.options")

local M = {}

local function repeated(beats, same, signature)
  if #beats < same then return false end
  local first
  for i = #beats - same + 1, #beats do
    local text = signature(beats[i])
    if text == nil or first ~= nil and text ~= first then return false end
    first = text
  end
  return true
end

local function idle(one) return #one.calls == 0 and log.text(one.content) == "" end

function M.stagnation(given)
  options("stagnation", given, { same = true, no_progress = true, signature = true, exempt = true })
  given = given or {}
  local same = options.number("stagnation", "same", given.same or 3, 2, true)
  local still = options.number("stagnation", "no_progress", given.no_progress or 2, 1, true)
  local exempt = {}
  if given.exempt ~= nil and type(given.exempt) ~= "table" then options.fail("stagnation", "exempt must be a list of names") end
  for _, name in ipairs(given.exempt or {}) do exempt[name] = true end
  local of = given.signature == nil and log.signature or options.fn("stagnation", "signature", given.signature)
  local function signature(one)
    for _, call in ipairs(one.calls) do
      if exempt[call.name] then return nil end
    end
    return of(one)
  end
  return function(session)
    local beats, all = {}, log.beats(session)
    local n = math.max(same, still)
    for i = #all, 1, -1 do
      if all[i].answered then table.insert(beats, 1, all[i]) end
      if #beats == n then break end
    end
    if #beats >= still then
      local nothing = true
      for i = #beats - still + 1, #beats do nothing = nothing and idle(beats[i]) end
      if nothing then return "no_progress", still end
    end
    if repeated(beats, same, signature) then return "repeated", same end
    return nil
  end
end

function M.retry(given)
  options("retry", given, { kinds = true, max = true })
  given = given or {}
  local max = options.number("retry", "max", given.max or 3, 1, true)
  local kinds
  if given.kinds ~= nil then
    if type(given.kinds) ~= "table" then options.fail("retry", "kinds must be a list of error kinds, got a " .. type(given.kinds)) end
    kinds = {}
    for _, kind in ipairs(given.kinds) do kinds[kind] = true end
  end
  return function(outcome, attempt)
    if type(outcome) ~= "table" or outcome.status ~= "error" or type(outcome.detail) ~= "table" then return false end
    if attempt >= max then return false end
    local detail = outcome.detail
    local again = kinds and kinds[detail.kind] or not kinds and detail.retryable == true
    if not again then return false end
    return true, detail.retry_after
  end
end

function M.escalate(given)
  options("escalate", given, { strong = true, when = true })
  given = given or {}
  local strong = options.fn("escalate", "strong", given.strong)
  local when = given.when == nil and function(outcome) return outcome.status ~= "ok" end or options.fn("escalate", "when", given.when)
  return function(device, outcome)
    if when(outcome) then return device:with({ llm = strong }) end
    return device
  end
end

return M
