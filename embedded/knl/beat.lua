-- knl.beat: one model call and the tool calls that it asks for.
--
--   beat(native, session, device) -> Outcome        never raises
--
-- The order is the contract: read and fold, filter, price, reserve together with
-- llm_request (one commit), call, llm_response or llm_call_failed together with
-- the settlement (one commit), then the tools. A beat that the quota does not cover
-- leaves no request behind. Of native it needs read, beat_begin, beat_end,
-- dispatch, error and is_session.

local Outcome = require("knl.outcome")
local device_of = require("knl.device")
local default_fold = require("knl.fold")
local tools = require("knl.tools")
local trusted = require("knl.trusted")
local windows = require("knl.window")

local CALL_KINDS = {
  transport = true, rate_limited = true, overloaded = true, server = true, auth = false,
  invalid_request = false, unknown = false, quota = false, context_length = false, truncated = false,
}

local MAX_CALLS = 128 -- tool calls of one reply
local MAX_NAME = 128 -- bytes of a tool's name

local USAGE = { "input_tokens", "output_tokens" }
local USAGE_TOO = { "cache_read_input_tokens", "cache_creation_input_tokens", "thinking_tokens" }

local function trace(e)
  if type(e) == "table" and e.message then return e.message end
  return tostring(e)
end

-- guard calls a function of the device: what it raises becomes the outcome.
local function guard(kind, f, ...)
  local got = { pcall(f, ...) }
  if got[1] then return true, got[2], got[3], got[4] end
  return false, Outcome.err(kind, trace(got[2]))
end

-- Sessions that policies read as well: what one reader has read of them the others need
-- not read again. {events = {…}} by id; the event of seq n is events[n].
local shared = {}

-- share begins to keep a session's events for several readers, unshare ends it.
local function share(id)
  shared[id] = shared[id] or { events = std.json.array() }
  return shared[id].events
end

local function unshare(id) shared[id] = nil end

-- together steps over what the readers of a shared session have, and what is new.
local function together(native, session, all, from, step)
  local truncated = true
  while truncated do
    local rows
    rows, truncated = native.read(session, #all + 1)
    for _, event in ipairs(rows) do
      -- Another task may have read it while this one was waiting.
      if event.seq == #all + 1 then all[event.seq] = event end
    end
  end
  local last = #all
  for seq = from, last do step(all[seq]) end
  return math.max(from, last + 1)
end

-- pages reads a session to its end, without the bodies of requests.
local function pages(native, session, from, step)
  local both = shared[session:id()]
  if both then return together(native, session, both.events, from, step) end
  local truncated = true
  while truncated do
    local rows
    rows, truncated = native.read(session, from)
    for _, event in ipairs(rows) do
      step(event)
      from = event.seq + 1
    end
  end
  return from
end

-- The default fold keeps its folder with the session's id and steps over what is
-- new; any other fold is a function of all events. What is kept is only ever what
-- folding the log again would give, so it may be dropped at any time.
local folders, older, count = {}, {}, 0

local MAX_FOLDERS = 64 -- of each half: those that were not asked for since it filled go

local function keep(id, state)
  if count >= MAX_FOLDERS then folders, older, count = {}, folders, 0 end
  folders[id], older[id], count = state, nil, count + 1
  return state
end

local function folder_of(id)
  if folders[id] then return folders[id] end
  return keep(id, older[id] or { folder = default_fold.new(), from = 1, log = std.json.array(), wire = {}, copies = {}, track = {} })
end

local function copy(v)
  if type(v) ~= "table" then return v end
  local out = {}
  for key, value in pairs(v) do out[key] = copy(value) end
  return setmetatable(out, getmetatable(v))
end

-- common counts the messages, from the first, in which a list is as the kept ones are.
local function common(list, kept)
  if type(list) ~= "table" then return 0 end
  for i, message in ipairs(kept) do
    if list[i] == nil or not table.same(list[i], message) then return i - 1 end
  end
  return #kept
end

-- same gives common for the messages of a request, and remembers the answer for as long as
-- only this module and functions that change nothing have seen the list.
local function same(kept, list)
  if not kept.changed and not kept.seen then return #kept.messages end
  if kept.list ~= list or not kept.trusted then kept.list, kept.same = list, common(list, kept.messages) end
  return kept.same
end

-- shown gives copies of the kept messages, the same ones at each beat as long as
-- nobody changed them.
local function shown(state, messages)
  local out, copies = std.json.array(), state.copies
  for i, message in ipairs(messages) do
    if not table.same(copies[i], message) then copies[i] = copy(message) end
    out[i] = copies[i]
  end
  return out
end

-- folded_by asks a fold of somebody else's, and keeps its request in the window unless it
-- reports of its own.
local function folded_by(native, session, device, frozen)
  local kept = type(device.fold) == "table" and device.fold.read_events -- a fold that keeps what it read
  local events = kept and kept(session) or std.json.array()
  if not kept then pages(native, session, 1, function(event) events[#events + 1] = event end) end
  local request, report = device.fold(events, frozen)
  if kept and type(request) == "table" then request.messages = copy(request.messages) end
  local limit = report == nil and type(request) == "table" and type(request.messages) == "table" and windows.of(device)
  if limit then return windows.fit(request, limit) end
  return request, report
end

-- limits gives what bounds a request where the log is folded as it is: by the device's
-- window, or by a fold that only adds a limit of its own. plain is false for any other.
local function limits(device, folder)
  if device.fold == default_fold then return true, windows.of(device) end
  local of, limit, count_of = device.fold.plain_limit, nil, nil
  if of then limit, count_of = of(folder.marked) end
  return type(limit) == "number", limit, count_of
end

local function fold(native, session, device, frozen)
  if device.fold ~= default_fold and type(device.fold) == "function" then
    return folded_by(native, session, device, frozen)
  end
  local id = session:id()
  local state = folder_of(id)
  pages(native, session, state.from, function(event)
    -- Another task of this run may have stepped over it while this one was reading.
    if event.seq < state.from then return end
    state.folder:step(event)
    state.from = event.seq + 1
  end)
  local plain, limit, count_of = limits(device, state.folder)
  if not plain then return folded_by(native, session, device, frozen) end
  local messages = state.folder:messages()
  local request = default_fold.request(messages, device)
  local fitted, report = windows.apply(state.folder, state.track, request, limit, count_of)
  -- Only a function of this binary gets the kept messages themselves. What somebody
  -- else gets to see they may change: they get copies, and before a copy is used again
  -- or stands for what is kept it is compared.
  local alone = trusted.of(device.llm) and #device.filters == 0 and not device.cost
  if fitted ~= request then
    if not alone then fitted.messages = copy(fitted.messages) end
    return fitted, report
  end
  if #messages > #state.folder.list then
    request.messages = copy(messages)
    return request, report
  end
  if not alone then request.messages = shown(state, messages) end
  return request, report, {
    state = state, messages = messages, seen = not alone, changed = #device.filters > 0 or device.cost, trusted = trusted.of(device.llm),
  }
end

-- forget drops what is kept of a session that has ended.
local function forget(id)
  unshare(id)
  if folders[id] then count = count - 1 end
  folders[id], older[id] = nil, nil
end

-- recorded is a request as it goes into the log: where its messages are the kept
-- ones, each was encoded once. A filter may have put notes behind them.
local function recorded(native, request, kept)
  if not kept or kept.changed and same(kept, request.messages) < #kept.messages then return request end
  local out, log, all = {}, kept.state.log, kept.changed and request.messages or kept.messages
  for key, value in pairs(request) do out[key] = value end
  for i = #log + 1, #kept.messages do log[i] = native.pack(kept.messages[i]) end
  if #log > #kept.messages or #all > #kept.messages then
    -- Another beat of the session went on while this one was filtered or priced, or there
    -- are notes.
    local held = std.json.array()
    for i = 1, #kept.messages do held[i] = log[i] end
    for i = #kept.messages + 1, #all do held[i] = all[i] end
    log = held
  end
  out.messages = log
  return out
end

local function filtered(device, request)
  if #device.filters == 0 then return true, request end
  for i, filter in ipairs(device.filters) do
    local good, answer = guard("filter", filter, request)
    if not good then return false, answer end
    if type(answer) ~= "table" then
      return false, Outcome.err("filter", "filters[" .. i .. "] returned " .. type(answer) .. ", not a request")
    end
    request = answer
  end
  return true, request
end

local function priced(device, request)
  if not device.cost then return true, nil end
  local good, n = guard("conf", device.cost, request)
  if not good then return false, n end
  if type(n) ~= "number" or n < 1 or n ~= math.floor(n) then
    return false, Outcome.err("conf", "cost answered " .. tostring(n) .. "; it answers an integer of at least 1")
  end
  return true, n
end

-- bad_usage names what is no count of tokens, nil when nothing is.
local function bad_usage(usage)
  if type(usage) ~= "table" then return "llm_result.usage is missing" end
  for _, key in ipairs(USAGE) do
    if type(usage[key]) ~= "number" then return "llm_result.usage." .. key .. " is missing" end
  end
  for _, keys in ipairs({ USAGE, USAGE_TOO }) do
    for _, key in ipairs(keys) do
      local n = usage[key]
      if n ~= nil and (type(n) ~= "number" or n < 0 or n ~= math.floor(n) or n >= 2 ^ 53) then
        return "llm_result.usage." .. key .. " is " .. tostring(n) .. "; it is a count of tokens"
      end
    end
  end
  local cost = usage.cost
  if cost ~= nil and (type(cost) ~= "number" or cost < 0 or cost ~= math.floor(cost) or cost >= 2 ^ 53) then
    return "llm_result.usage.cost is " .. tostring(cost) .. "; it is a whole number of micro-USD"
  end
end

local function call_error(e)
  if type(e) ~= "table" then e = { message = tostring(e) } end
  local kind = CALL_KINDS[e.kind] ~= nil and e.kind or "unknown"
  local retryable = e.retryable
  if retryable == nil then retryable = CALL_KINDS[kind] end
  return {
    kind = kind, retryable = retryable and true or false, retry_after = e.retry_after,
    message = tostring(e.message or e.error or kind), status = e.status, usage = not bad_usage(e.usage) and e.usage or nil,
  }
end

-- bad_result names what is wrong with an llm_result, nil when nothing is.
local function bad_result(r)
  if type(r) ~= "table" then return "llm returned " .. type(r) .. ", not an llm_result" end
  if r.status ~= "ok" and r.status ~= "refused" then return "llm_result.status is " .. tostring(r.status) .. ", not ok or refused" end
  if type(r.content) ~= "table" then return "llm_result.content is no list of blocks" end
  local bad = bad_usage(r.usage)
  if bad then return bad end
  if r.status == "refused" and (type(r.refusal) ~= "table" or (r.refusal.kind ~= "model" and r.refusal.kind ~= "content_filter")) then
    return "llm_result.refusal.kind is neither model nor content_filter"
  end
  local seen, calls = {}, 0
  for i, block in ipairs(r.content) do
    if type(block) ~= "table" or type(block.type) ~= "string" then return "content[" .. i .. "] is no block" end
    if block.type == "tool_use" then
      calls = calls + 1
      if calls > MAX_CALLS then return "the reply holds more than " .. MAX_CALLS .. " tool calls" end
      if type(block.name) ~= "string" or block.name == "" then return "the model called a tool without a name" end
      if #block.name > MAX_NAME or block.name:find("%c") then return "the model called a tool by what is no name" end
      if type(block.id) ~= "string" or block.id == "" then return "a tool call without an id" end
      if seen[block.id] then return "two tool calls share the id " .. block.id end
      seen[block.id] = true
    end
  end
end

local function called(device, request, ctx)
  local got = { pcall(device.llm, request, ctx) }
  if not got[1] then return nil, call_error({ message = trace(got[2]) }) end
  if got[2] == nil then return nil, call_error(got[3] or "llm returned nothing") end
  local bad = bad_result(got[2])
  if bad then
    local usage = type(got[2]) == "table" and not bad_usage(got[2].usage) and got[2].usage or nil
    return nil, call_error({ kind = "server", retryable = false, message = bad, usage = usage })
  end
  return got[2]
end

-- failed records that a call brought nothing that could be used.
local function failed(native, session, beat, failure)
  native.beat_end(session, { beat = beat, failed = failure, usage = failure.usage })
  failure.usage = nil
  return Outcome.err("call", failure)
end

local function respond(native, session, device, beat, result)
  local good, raised = pcall(native.beat_end, session, {
    beat = beat, content = result.content, usage = result.usage,
    stop_reason = result.stop_reason, finish_reason = result.finish_reason,
  })
  if not good then
    local e = native.error(raised)
    if e.kind ~= "validation" then error(raised, 0) end
    -- A reply that has no JSON: the request gets its end all the same.
    return failed(native, session, beat, call_error({
      kind = "server", retryable = false, message = "the reply cannot be recorded: " .. e.message,
    }))
  end
  if result.status == "refused" then return Outcome.refused(result.refusal.kind, result) end
  local list, failure = tools.run(native, session, device, beat, result)
  if not list then return failure end
  local out = {}
  for key, value in pairs(result) do out[key] = value end
  out.beat, out.tools = beat, list
  out.stopped, list.stopped = list.stopped, nil
  return Outcome.ok(out)
end

-- finish is a beat from its request on: the call, its record, the tools.
local function finish(native, session, device, beat, request, kept)
  local result, failure = called(device, request, {
    session = session, beat = beat, on_delta = device.on_delta,
    kept = kept and {
      wire = kept.state.wire, messages = kept.messages,
      intact = function(messages) return same(kept, messages) end,
    },
  })
  if failure then return failed(native, session, beat, failure) end
  return respond(native, session, device, beat, result)
end

local function run(native, session, frozen)
  local device = device_of.fields(frozen) -- not through the proxy, which is a call for each field
  local good, request, window, kept = guard("conf", fold, native, session, device, frozen)
  if not good then
    local e = native.error(request.detail)
    if e.kind then return Outcome.err("state", e) end
    return request
  end
  if type(request) ~= "table" then return Outcome.err("conf", "fold returned " .. type(request) .. ", not a request") end
  if window and window.over then return Outcome.stopped("context") end
  local cost
  good, request = filtered(device, request)
  if not good then return request end
  good, cost = priced(device, request)
  if not good then return cost end
  local facts = trusted.of(device.llm)
  local begun = native.beat_begin(session, {
    request = recorded(native, request, kept), window = window, cost = cost,
    max_tokens = facts and facts.max_tokens, default = facts and facts.default, target = facts and facts.target,
  })
  if not begun.granted then return Outcome.stopped("budget", begun.tag, begun.bound) end
  if begun.max_tokens then
    local capped = {}
    for key, value in pairs(request) do capped[key] = value end
    capped.max_tokens, capped.capped = begun.max_tokens, true
    request = capped
  end
  local beat = begun.beat
  local fine, outcome = pcall(finish, native, session, device, beat, request, kept)
  native.beat_done(session, beat, fine and outcome.status or "error")
  if not fine then error(outcome, 0) end
  return outcome
end

local function beat(native, session, device)
  if not native.is_session(session) then return Outcome.err("conf", "the first argument is no session") end
  if not device_of.is(device) then return Outcome.err("conf", "the second argument is no device: make one with knl.device{…}") end
  if not device.llm then return Outcome.err("conf", "the device has no llm") end
  local good, outcome = pcall(run, native, session, device)
  if good then return outcome end
  return Outcome.err("state", native.error(outcome))
end

-- native is for the packs: a script may have put require("knl") in the place of the global.
return { beat = beat, forget = forget, pages = pages, share = share, unshare = unshare, native = knl }
