-- policy.compact: when a conversation should give way to a summary, and the beat that writes it.
--
--   compact{fold, at = 0.8, min_beats = 2, prompt?} -> c
--     fold                      a policy.window, which knows what fits
--     c:due(session, device?)   nil | "dropped" (beats no longer fit) | "share" (a request takes
--                               more than `at` of its limit)
--     c.fold                    the fold for the one beat that writes the summary: what c's own
--                               fold gives, and prompt behind it; tools are not to be called
--     c:run(session, device)    nil where nothing is due, else "summary", or "skipped" and why
--
-- Events: compact_started before the beat, then summary{content} or compact_skipped{why}, with
-- the beat in meta. why: context (the prompt itself would overflow), empty, truncated, not_smaller,
-- refused, call, budget, failed. It cannot loop: an attempt of either ending waits for min_beats
-- further beats; one session has one attempt at a time; and where none succeeds the fold
-- drops what does not fit, as it does anyway.

local default_device = require("knl.device")
local beats = require("knl.beat")
local window = require("knl.window")
local log = require("policy.log")
local options = require("policy.options")
local windows = require("policy.window")

local KNOWN = { fold = true, at = true, min_beats = true, prompt = true, ledger = true }

local PROMPT = "Write a summary of the work so far, for whoever goes on with it and sees nothing else of it. "
  .. "Say what was asked, what was found and decided, which files and commands mattered, what is done and "
  .. "what is left to do. Answer with the summary alone; do not call a tool."

local ENDED = { summary = true, compact_skipped = true }

-- since counts the replies of the conversation after the last attempt.
local function since(events)
  local n, apart = 0, false
  for _, event in ipairs(events) do
    if event.kind == "compact_started" then
      apart = true
    elseif ENDED[event.kind] then
      n, apart = 0, false
    elseif event.kind == "llm_response" then
      if apart then n, apart = 0, false else n = n + 1 end
    end
  end
  return n
end

local running = {} -- ids of the sessions that an attempt is running for

local function noted(request, prompt)
  local out, messages = {}, std.json.array()
  for key, value in pairs(request) do out[key] = value end
  for i, message in ipairs(request.messages) do messages[i] = message end
  messages[#messages + 1] = { role = "user", content = prompt }
  out.messages = messages
  -- Providers want the tools declared where the conversation has calls.
  if out.tools then out.tool_choice = "none" end
  return out
end

-- summary_fold is the fold of the beat that summarises: it fits with the prompt.
local function summary_fold(fold, prompt)
  return function(events, device)
    local request, report = fold(events, device)
    local asking = noted(request, prompt)
    if not report.limit then return asking, report end
    local fitted, second = window.fit(asking, report.limit, { scale = report.scale, count = fold.room and fold.room.counts and function(r) return fold.room:count(r) end })
    for _, key in ipairs({ "dropped_trips", "dropped_messages", "shortened" }) do second[key] = second[key] + (report[key] or 0) end
    second.before, second.reserve, second.summary_seq = report.before, report.reserve, report.summary_seq
    local last = fitted.messages[#fitted.messages]
    if last.content ~= prompt then second.over = true end
    return fitted, second
  end
end

-- replied gives the beat of the last reply after an event.
local function replied(session, seq)
  local beat
  for _, event in ipairs(session:view("tail", { n = 300 })) do
    if event.seq > seq and event.kind == "llm_response" then beat = event.meta.beat end
  end
  return beat
end

-- outcome_of reads what a beat brought: the summary, or nil and why there is none.
local function outcome_of(outcome)
  if outcome.status == "stopped" then return nil, outcome.reason == "context" and "context" or "budget" end
  if outcome.status == "refused" then return nil, "refused" end
  if outcome.status ~= "ok" then return nil, outcome.kind == "call" and "call" or "failed" end
  local text = log.text(outcome.out.content)
  if not text:find("%S") then return nil, "empty" end
  if outcome.out.stop_reason == "max_tokens" then return nil, "truncated" end
  return text
end

local function new(given)
  options("compact", given, KNOWN)
  given = given or {}
  local fold = given.fold
  if not windows.is(fold) then options.fail("compact", "fold must be what policy.window makes") end
  local at = options.number("compact", "at", given.at or 0.8, 0)
  if at <= 0 or at > 1 then options.fail("compact", "at is a share of the limit, more than 0 and at most 1, got " .. at) end
  local min = options.number("compact", "min_beats", given.min_beats or 2, 1, true)
  local prompt = given.prompt or PROMPT
  if type(prompt) ~= "string" or prompt == "" then options.fail("compact", "prompt must be text") end
  if given.ledger ~= nil then options.fn("compact", "ledger", given.ledger) end

  local c = { fold = summary_fold(fold, prompt) }

  local function due(events, device)
    if since(events) < min then return nil end
    local _, report = fold(events, device or {})
    if report.dropped_trips > 0 or report.shortened > 0 then return "dropped", report end
    if report.limit and report.after >= at * report.limit then return "share", report end
    return nil
  end

  function c.due(_, session, device) return (due(log.events(session), device)) end

  -- smaller reports whether a conversation with the summary leaves room to go on.
  local function smaller(session, device, data, before)
    local events = {}
    for i, event in ipairs(log.events(session)) do events[i] = event end
    events[#events + 1] = { kind = "summary", seq = math.huge, meta = {}, data = data }
    local _, report = fold(events, device)
    if report.before == nil or before == nil then return true end
    return report.before < before and (not report.limit or report.before < at * report.limit)
  end

  function c.run(_, session, device)
    if not default_device.is(device) then options.fail("compact", "run takes a session and its device") end
    local id = session:id()
    if running[id] then return nil end
    running[id] = true
    local good, first, second = pcall(function()
      local events = log.events(session)
      local why, report = due(events, device)
      if not why then return nil end
      local facts = given.ledger and given.ledger(events)
      local seq = session:append({ kind = "compact_started", data = { why = why } })
      local outcome = beats.beat(beats.native, session, device:with({
        fold = c.fold, filters = {}, tool_policy = function() return "deny", "a summary is being written" end,
        on_delta = function() end,
      }))
      local beat = replied(session, seq)
      local text, failure = outcome_of(outcome)
      if text then
        local data = { content = text, ledger = facts }
        if smaller(session, device, data, report.before) then
          session:append({ kind = "summary", meta = { beat = beat }, data = data })
          return "summary"
        end
        failure = "not_smaller"
      end
      session:append({ kind = "compact_skipped", meta = beat and { beat = beat } or nil, data = { why = failure } })
      return "skipped", failure
    end)
    running[id] = nil
    if not good then error(first, 0) end
    return first, second
  end

  return setmetatable({}, {
    __index = c,
    __newindex = function() error("policy: compact: validation: a policy is frozen", 2) end,
  })
end

return new
