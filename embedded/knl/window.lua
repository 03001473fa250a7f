-- knl.window: how much of a model's context window a request may take, and what it takes.
--
--   window.fit                knl.fit: makes a request fit
--   window.of(device) -> limit | nil    tokens of a request; nil where no window is known
--     a device's window = tokens, or {context_window, max_output?, reserve?}
--   window.apply(folder, track, request, limit | nil, count?) -> request, report | nil
--     fits what knl.fold's folder has folded. Estimates are scaled by the providers' own
--     figures in the log (unless folder.unscaled: those are of other requests), and a request
--     that was found too long lowers the limit, also where no window is known. Without
--     either it costs nothing.
--
-- Everything comes from the log and the device, so that the same log makes the same request.

local estimate = require("knl.estimate")
local fit = require("knl.fit")
local trusted = require("knl.trusted")

local M = { fit = fit }

local MIN_SCALE, MAX_SCALE, SCALE_STEP = 0.75, 8, 8
local DEFAULT_REPLY = 4096 -- tokens kept for a reply whose length nobody knows
local AFTER_OVERFLOW = 0.75 -- of what was too long

-- limit_of gives the tokens that are left for a request beside its reply.
local function limit_of(window, reply)
  local all = window.context_window
  if type(all) ~= "number" or all < 1 then return nil end
  local held = reply or math.min(DEFAULT_REPLY, math.floor(all / 4))
  if held >= all then held = math.floor(all / 2) end
  return math.max(math.floor(all - held - (window.reserve or 0)), 1)
end

-- counted gives the tokens of a request as its provider counted them, 0 where it did not.
local function counted(usage)
  if type(usage) ~= "table" or usage.estimated then return 0 end
  return (tonumber(usage.input_tokens) or 0) + (tonumber(usage.cache_read_input_tokens) or 0)
    + (tonumber(usage.cache_creation_input_tokens) or 0)
end

-- scale_of gives the tokens of an estimated token: the sum of what providers counted
-- between two calls that followed one another, over the sum of what was estimated for
-- it. A cut between them shows as a fall, and says nothing. track goes on where it was.
local function scale_of(folder, track, overhead)
  local places, replies, sizes = folder.at, folder.replies, track.sizes
  for k = track.k + 1, #places do
    local tokens = counted(replies[k].data.usage)
    if tokens > 0 then
      for i = track.at + 1, places[k] do track.sum = track.sum + sizes[i] end
      track.at = places[k]
      if tokens > track.last then
        track.told, track.thought = track.told + tokens - track.last, track.thought + track.sum - track.before
      end
      track.last, track.before = tokens, track.sum
    end
    track.k = k
  end
  if track.told <= 0 then return 1 end
  local scale = track.told / math.max(track.thought + overhead, 1)
  return math.min(math.max(math.ceil(scale * SCALE_STEP) / SCALE_STEP, MIN_SCALE), MAX_SCALE)
end

-- shown is the limit that providers have shown by finding requests too long: each such
-- answer takes a quarter of what was thought to be possible.
local function shown(folder, sizes, overhead, scale, limit)
  local overflow = folder.overflow
  if not overflow then return limit end
  if not limit then
    limit = overhead
    for i = 1, overflow.n do limit = limit + sizes[i] end
    limit = limit * scale
  end
  return math.max(math.floor(limit * AFTER_OVERFLOW ^ overflow.times), 1)
end

-- of gives the limit of a device's requests, nil where nothing is known: its window,
-- or what its llm says of the model, asked once.
function M.of(device)
  local facts, window = trusted.of(device.llm), device.window
  local asked = facts and facts.max_tokens
  if window ~= nil then
    if type(window) == "number" then window = { context_window = window } end
    return limit_of(window, window.max_output or asked)
  end
  if not facts or not facts.profile then return nil end
  if facts.window == nil then
    local good, found = pcall(facts.profile)
    facts.window = good and found or false -- who cannot say it knows none
  end
  window = facts.window
  if not window or type(window.context_window) ~= "number" then return nil end
  -- What a model can write at most is no reason to keep most of its window for it.
  return limit_of(window, asked or window.max_output and math.min(window.max_output, math.floor(window.context_window / 4)))
end

-- beat_of gives the beat of the reply at a place of the folder's list.
local function beat_of(folder)
  return function(i)
    for k = #folder.at, 1, -1 do
      local reply = folder.replies[k]
      if folder.at[k] == i - 1 or i == 2 and folder.at[k] == 0 then return reply.meta and reply.meta.beat end
    end
  end
end

-- apply fits the request that was folded from a whole log. track is a table of its own
-- for each folder, {} at first: it keeps the estimates from one call to the next.
function M.apply(folder, track, request, limit, count)
  if not limit and not folder.overflow then return request, nil end
  if not track.sizes then
    track.sizes, track.k, track.at, track.last, track.sum = {}, 0, 0, 0, 0
    track.before, track.told, track.thought = 0, 0, 0
    track.known = { list = {}, seed = 0, n = 0 }
  end
  local overhead, list, sizes = estimate.envelope(request), folder.list, track.sizes
  for i = #sizes + 1, #list do sizes[i] = estimate.message(list[i]) end
  local scale = folder.unscaled and 1 or scale_of(folder, track, overhead)
  limit = shown(folder, sizes, overhead, scale, limit)
  local own, known = sizes, track.known
  if #request.messages ~= #list then -- with an answer that is not final, or shorter than the log by now
    own, known = {}, nil
    for i, size in ipairs(sizes) do own[i] = size end
  end
  return fit(request, limit, { sizes = own, known = known, scale = scale, overhead = overhead, beat_of = beat_of(folder), count = count })
end

return M
