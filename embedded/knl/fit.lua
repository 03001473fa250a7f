-- knl.fit: makes a request fit into so many tokens, without a model. Pure.
--
--   fit(request, limit, opts?) -> request, report
--     limit   tokens that system, tools and messages may take together
--     opts = {count?(request) -> tokens, sizes? = a list that is filled with the estimates
--             of the messages and may be used again, overhead? = estimate of system and tools,
--             scale? = tokens per estimated token, known? = a table {list = {}, seed = 0, n = 0} that
--             remembers the parts of a conversation that only grows, beat_of?(place of a reply) -> beat}
--     The request given is not changed; the one that comes back shares what it keeps.
--     report = {dropped = beats, the newest 16, dropped_trips, dropped_messages, shortened,
--               kept, seed_kept, before, after, limit, scale, over?}
--     over = true: not even the last message fits beside system and tools.
--
-- In this order: a tool result that alone takes more than half of the room is cut to a
-- quarter of it; the oldest round trips go, an assistant message always with its results;
-- then the largest results are shortened, then long texts; then the seed goes, and at
-- last all but the newest prompt. What is cut moves in quarters of the room, so that
-- the beginning of a request, which providers cache, changes rarely.

local estimate = require("knl.estimate")
local shrink = require("knl.shrink")

local STEPS = 4 -- parts of the room that the cut moves by
local NAMED = 16 -- dropped beats that a report names
local ROUNDS = 12 -- tries with a counter that says more than the estimate
local UNCOUNTED = 0.5 -- of the limit: a request that is estimated smaller is not counted

local array = std.json.array

local function answers(message)
  local content = message.content
  if message.role ~= "user" or type(content) ~= "table" then return false end
  for _, block in ipairs(content) do
    if type(block) == "table" and block.type == "tool_result" then return true end
  end
  return false
end

-- units gives the parts of a conversation that go as one, {first, last, prompt?} each, and
-- how many of them, from the first, are the seed. known is what it gave for the beginning
-- of the same conversation.
local function units(messages, known)
  local list, seed = known.list, known.seed
  for i = known.n + 1, #messages do
    local last, message = list[#list], messages[i]
    if last and not last.prompt and answers(message) then
      last.last, last.own = i, nil
    else
      local prompt = message.role == "user"
      list[#list + 1] = { first = i, last = i, prompt = prompt }
      if prompt and seed == #list - 1 then seed = #list end
    end
  end
  known.seed, known.n = seed, #messages
  return list, seed
end

local function size_of(sizes, unit)
  local n = 0
  for i = unit.first, unit.last do n = n + sizes[i] end
  return n
end

-- chosen marks the units that stay, so that their size is at most room where dropping
-- alone can do it; it gives their size. own says that sizes are the messages' own.
local function chosen(list, seed, sizes, room, own)
  local total, newest_prompt = 0, nil
  for k = 1, #list do
    local unit = list[k]
    local size = own and unit.own or size_of(sizes, unit)
    if own then unit.own = size end
    unit.size, unit.keep, total = size, true, total + size
    if unit.prompt then newest_prompt = k end
  end
  if total <= room then return total end
  local step = math.max(room / STEPS, 1)
  local goal = math.ceil((total - room) / step) * step
  local spare = total - list[#list].size -- what may go at all
  for k = 1, seed do
    if k < #list then spare = spare - list[k].size end
  end
  if newest_prompt and newest_prompt > seed and newest_prompt < #list then spare = spare - list[newest_prompt].size end
  if spare < goal then goal = math.min(spare, total - room) end
  local gone = 0
  for k = seed + 1, #list - 1 do
    if gone >= goal then break end
    if k ~= newest_prompt then
      list[k].keep, gone = false, gone + list[k].size
    end
  end
  return total - gone
end

local function kept_of(messages, list)
  local out, from = array(), {}
  for _, unit in ipairs(list) do
    if unit.keep then
      for i = unit.first, unit.last do
        out[#out + 1] = messages[i]
        from[#from + 1] = i
      end
    end
  end
  return out, from
end

-- last_resort leaves out the seed, then all but the newest prompt, or the last unit
-- where there is no prompt.
local function last_resort(list, seed, room)
  local newest
  for k, unit in ipairs(list) do
    if unit.prompt then newest = k end
  end
  newest = newest or #list
  local total = 0
  for k, unit in ipairs(list) do
    if k <= seed and k ~= newest then unit.keep = false end
    if unit.keep then total = total + math.min(unit.size, shrink.LEAST) end
  end
  if total <= room then return end
  for k, unit in ipairs(list) do unit.keep = k == newest end
end

-- planned gives the messages that fit into room estimated tokens, their estimate, the
-- units, and how many blocks were shortened.
local function planned(messages, sizes, room, known)
  local effective, shortened, heads = sizes, 0, messages
  -- A single result that leaves no room for anything else.
  for i = 1, #messages do
    local message = messages[i]
    if sizes[i] > room / 2 and answers(message) then
      if heads == messages then
        heads, effective = array(), {}
        for k, m in ipairs(messages) do heads[k], effective[k] = m, sizes[k] end
      end
      local n
      heads[i], effective[i], n = shrink.results({ message }, { sizes[i] }, room / 4)
      heads[i], effective[i], shortened = heads[i][1], effective[i][1], shortened + n
    end
  end
  local list, seed = units(messages, known)
  if #list == 0 then return array(), 0, list, 0, 0 end
  local total = chosen(list, seed, effective, room, effective == sizes)
  local out, from = kept_of(heads, list)
  if total <= room then return out, total, list, seed, shortened end
  for attempt = 1, 2 do
    local own, n = {}, 0
    for k, i in ipairs(from) do own[k] = effective[i] end
    for _, cut in ipairs({ shrink.results, shrink.texts }) do
      out, own, n = cut(out, own, room)
      shortened, total = shortened + n, 0
      for _, size in ipairs(own) do total = total + size end
      if total <= room then return out, total, list, seed, shortened end
    end
    if attempt == 2 then break end
    last_resort(list, seed, room)
    out, from = kept_of(heads, list)
  end
  return out, total, list, seed, shortened
end

local function report_of(messages, out, list, seed, beat_of)
  local report = { dropped = array(), dropped_trips = 0, dropped_messages = #messages - #out, kept = #out, seed_kept = true }
  for k = #list, 1, -1 do
    local unit = list[k]
    if not unit.keep then
      if k <= seed then report.seed_kept = false end
      if not unit.prompt then
        report.dropped_trips = report.dropped_trips + 1
        local beat = #report.dropped < NAMED and beat_of and beat_of(unit.first)
        if beat then table.insert(report.dropped, 1, beat) end
      end
    end
  end
  return report
end

local function with_messages(request, messages)
  local out = {}
  for key, value in pairs(request) do out[key] = value end
  out.messages = messages
  return out
end

return function(request, limit, opts)
  opts = opts or {}
  local messages, sizes = request.messages, opts.sizes or {}
  local overhead, scale = opts.overhead or estimate.envelope(request), opts.scale or 1
  local sum = overhead
  for i, message in ipairs(messages) do
    sizes[i] = sizes[i] or estimate.message(message)
    sum = sum + sizes[i]
  end
  local count, before = opts.count, math.ceil(sum * scale)
  -- Counting may cost a call of its own: it is for requests that come near the limit.
  if count and before > limit * UNCOUNTED then before = count(request) end
  if before <= limit then
    return request, {
      dropped = array(), dropped_trips = 0, dropped_messages = 0, shortened = 0, kept = #messages, seed_kept = true,
      before = before, after = before, limit = limit, scale = scale,
    }
  end
  if count then scale = math.max(scale, before / sum) end
  local own = sizes
  if #sizes ~= #messages then
    own = {}
    for i = 1, #messages do own[i] = sizes[i] end
  end
  local fitted, after, report
  local known = opts.known or { list = {}, seed = 0, n = 0 }
  for _ = 1, ROUNDS do
    local out, total, list, seed, shortened = planned(messages, own, limit / scale - overhead, known)
    fitted, after = with_messages(request, out), math.ceil((total + overhead) * scale)
    report = report_of(messages, out, list, seed, opts.beat_of)
    report.shortened = shortened
    if not count then break end
    local said = count(fitted)
    after = said
    if said <= limit then break end
    scale = scale * math.max(said / limit, 1.05)
  end
  report.before, report.after, report.limit, report.scale = before, after, limit, scale
  if after > limit then report.over = true end
  return fitted, report
end
