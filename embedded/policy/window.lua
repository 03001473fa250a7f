-- policy.window: a fold that keeps a request inside its room.
--
--   window{tail?, keep_seed = true, room?, fit? = {port, conf}, from_summary = true} -> fold
--     fold(events, device) -> request, report       for a device; report as of knl.window,
--                                                   and summary_seq where a summary stands in
--     fold:fits(session, device) -> nil | "context", tokens, limit
--
-- tail is how many beats stay; with a room the rest is trimmed to its limit, without one
-- tail is needed. From the last summary event on, the summary stands for the beats before
-- it. Beats whose reply was a summary, or an attempt at one, are no part of the conversation.

local default_fold = require("knl.fold")
local window = require("knl.window")
local log = require("policy.log")
local options = require("policy.options")
local rooms = require("policy.room")

local OURS = {} -- the key that tells a fold of this module

local KNOWN = { tail = true, keep_seed = true, room = true, fit = true, from_summary = true }
local HEADING = "Summary of the conversation so far, which it replaces:\n\n"

-- marks finds the newest summary and the beats that wrote one or tried to. An attempt
-- that a crash cut off has no ending: its reply is the one after its start.
local function marks(events)
  local summary, apart, open = nil, {}, false
  for i, event in ipairs(events) do
    local kind, beat = event.kind, event.meta and event.meta.beat
    if kind == "compact_started" then
      open = true
    elseif kind == "summary" or kind == "compact_skipped" then
      if kind == "summary" then summary = i end
      if beat ~= nil then apart[beat] = true end
      open = false
    elseif kind == "llm_response" and open then
      if beat ~= nil then apart[beat] = true end
      open = false
    end
  end
  return summary, apart
end

local function summary_text(data)
  local text = HEADING .. (type(data.content) == "string" and data.content or std.json.encode(data.content))
  if data.ledger ~= nil then text = text .. "\n\nFacts from the record: " .. std.json.encode(data.ledger) end
  return text
end

-- conversation leaves out the beats apart, and before the summary everything but the
-- newest prompt and the seed: the user messages before the first reply.
local function conversation(events, keep_seed, from_summary)
  local summary, apart = marks(events)
  if not from_summary then summary = nil end
  local out, seeding, prompt = {}, true, nil
  for i = 1, summary or 0 do
    if events[i].kind == "msg_user" then prompt = i end
  end
  for i, event in ipairs(events) do
    local beat = event.meta and event.meta.beat
    if event.kind == "llm_response" and not apart[beat] then seeding = false end
    if i == summary then
      out[#out + 1] = { kind = "msg_user", seq = event.seq, meta = {}, data = { content = summary_text(event.data) } }
    elseif beat ~= nil and apart[beat] and event.kind ~= "msg_user" then
      -- no part of the conversation
    elseif not summary or i > summary then
      out[#out + 1] = event
    elseif i == prompt or seeding and keep_seed and event.kind == "msg_user" then
      out[#out + 1] = event
    end
  end
  return out, summary and events[summary].seq
end

-- tailed keeps the last n beats, what was said between them, and the seed.
local function tailed(events, n, keep_seed)
  local at, seen = nil, 0
  for i = #events, 1, -1 do
    if events[i].kind == "llm_response" then
      seen = seen + 1
      at = i
      if seen == n then break end
    end
  end
  if seen < n or not at then return events, 0 end
  -- The words that the first of these beats answered belong to it.
  while at > 1 and events[at - 1].kind ~= "tool_result" and events[at - 1].kind ~= "llm_response" do at = at - 1 end
  local out, seeding, dropped = {}, true, 0
  for i, event in ipairs(events) do
    if event.kind == "llm_response" then
      seeding = false
      if i < at then dropped = dropped + 1 end
    end
    if i >= at or seeding and keep_seed and event.kind == "msg_user" then out[#out + 1] = event end
  end
  return out, dropped
end

local function new(given)
  options("window", given, KNOWN)
  given = given or {}
  local tail, room = given.tail, nil
  if tail ~= nil then options.number("window", "tail", tail, 1, true) end
  if given.room ~= nil then
    room = rooms.of("window", given)
  elseif given.fit ~= nil then
    if type(given.fit) ~= "table" then options.fail("window", "fit must be {port, conf}") end
    room = rooms.new({ port = given.fit.port, conf = given.fit.conf })
  end
  if not tail and not room then options.fail("window", "tail is needed where there is no room") end
  local keep_seed, from_summary = given.keep_seed ~= false, given.from_summary ~= false

  local count = room and room.counts and function(r) return room:count(r) end

  local function fold(_, events, device)
    local list, summary_seq = conversation(events, keep_seed, from_summary)
    local dropped = 0
    if tail then list, dropped = tailed(list, tail, keep_seed) end
    local folder = default_fold.new()
    folder:steps(list)
    folder.unscaled = dropped > 0 -- providers counted requests with other beats in them
    local request = default_fold.request(folder:messages(), device)
    local fitted, report = window.apply(folder, {}, request, room and room.limit or window.of(device), count)
    report = report or {
      dropped = std.json.array(), dropped_trips = 0, dropped_messages = 0, shortened = 0, kept = #request.messages, seed_kept = keep_seed,
    }
    report.dropped_trips = report.dropped_trips + dropped
    report.seed_kept = report.seed_kept and keep_seed
    report.summary_seq = summary_seq
    if room then report.reserve = room.held end
    return fitted, report
  end

  local methods = {}

  -- plain_limit is for knl.beat: where the log is folded as it is, limit and counter of the
  -- window, so that the beat need not fold it anew. marked: the log holds events of compact.
  function methods.plain_limit(marked)
    if tail or not keep_seed or marked or not room then return nil end
    return room.limit, count
  end

  -- read_events is for knl.beat, too: the events of a session, of which only the new ones are read.
  methods.read_events = log.events

  function methods.fits(self, session, device)
    local _, report = self(log.events(session), device)
    if report.over then return "context", report.after, report.limit end
    return nil
  end

  return setmetatable({}, {
    __call = fold,
    __index = function(_, key)
      if key == "room" then return room end
      if key == OURS then return true end
      return methods[key]
    end,
    __newindex = function() error("policy: window: validation: a policy is frozen", 2) end,
  })
end

local function is(v) return type(v) == "table" and v[OURS] == true end

return { new = new, is = is, marks = marks }
