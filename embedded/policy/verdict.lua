-- policy.verdict: runs a check and records what it said.
--
--   verdict{run?, changed?, kind = "verify", timeout?} -> check(session, out) -> result
--     run       a command (text or argv, run by sh.exec), or run(out, {timeout}) -> true | false |
--               {ok, …}; without it nothing is checked and the verdict is ok
--     changed   changed(session, out) -> false where nothing did since the last check: it is not
--               run again, and its verdict stands
--     timeout   seconds, or {first, factor = 3, floor = 60, measure = "longest"}: so many times
--               what earlier checks of the log took (longest, last, last_ok, first, or
--               measure(list of seconds, events)), at least floor, and first for the first
--     result = {ok, checked, ran?, changed?, result?, reason = "unchanged"?}
--   The event of the kind holds {ok, ran, timeout_s?, took_s?, stdout?, stderr?, exit_code?, reason?}.

local log = require("policy.log")
local options = require("policy.options")

local KNOWN = { run = true, changed = true, kind = true, timeout = true }
local TIMEOUT = { first = true, factor = true, floor = true, measure = true }
local MAX_TEXT = 32 * 1024 -- bytes of output that an event keeps, the end of it

local MEASURES = {
  longest = function(list)
    local max
    for _, check in ipairs(list) do max = math.max(max or 0, check.seconds) end
    return max
  end,
  last = function(list) return list[#list] and list[#list].seconds end,
  last_ok = function(list)
    for i = #list, 1, -1 do
      if list[i].ok then return list[i].seconds end
    end
  end,
  first = function(list) return list[1] and list[1].seconds end,
}

local function checked_timeout(timeout)
  if timeout == nil or type(timeout) == "number" then
    if timeout then options.number("verdict", "timeout", timeout, 0) end
    return timeout
  end
  options("verdict", timeout, TIMEOUT)
  if timeout.first == nil then options.fail("verdict", "timeout.first is required: the seconds of a first check") end
  local out = {
    first = options.number("verdict", "timeout.first", timeout.first, 0),
    factor = options.number("verdict", "timeout.factor", timeout.factor or 3, 0),
    floor = options.number("verdict", "timeout.floor", timeout.floor or 60, 0),
  }
  local measure = timeout.measure or "longest"
  out.measure = MEASURES[measure] or measure
  if not options.callable(out.measure) then
    options.fail("verdict", "timeout.measure is longest, last, last_ok, first or a function, got " .. tostring(measure))
  end
  return out
end

-- earlier lists the checks of a log that were run: {seconds, ok}; second the last verdict.
local function earlier(events, kind)
  local list, last = {}, nil
  for _, event in ipairs(events) do
    if event.kind == kind then
      last = event.data
      if event.data.ran and type(event.data.took_s) == "number" then
        list[#list + 1] = { seconds = event.data.took_s, ok = event.data.ok }
      end
    end
  end
  return list, last
end

local function seconds_of(timeout, list, events)
  if type(timeout) ~= "table" then return timeout end
  local measured = timeout.measure(list, events)
  if type(measured) ~= "number" then return timeout.first end
  return math.max(measured * timeout.factor, timeout.floor)
end

local function ended(text) return type(text) == "string" and #text > MAX_TEXT and text:sub(-MAX_TEXT) or text end

local function command(run, timeout)
  local r = sh.exec(run, { timeout = timeout })
  return {
    ok = r.ok and r.code == 0, stdout = r.stdout, stderr = r.stderr, exit_code = r.code, timed_out = r.timed_out,
  }
end

local function ask(run, out, timeout)
  local answer
  if options.callable(run) then answer = run(out, { timeout = timeout }) else answer = command(run, timeout) end
  if type(answer) ~= "table" then return { ok = answer == true } end
  local copy = {}
  for key, value in pairs(answer) do copy[key] = value end
  copy.ok = answer.ok == true
  return copy
end

return function(given)
  options("verdict", given, KNOWN)
  given = given or {}
  local run, changed, kind = given.run, given.changed, given.kind or "verify"
  if run ~= nil and type(run) ~= "string" and type(run) ~= "table" then options.fn("verdict", "run", run) end
  if changed ~= nil then options.fn("verdict", "changed", changed) end
  if type(kind) ~= "string" or kind == "" then options.fail("verdict", "kind must be the name of an event kind") end
  local timeout = checked_timeout(given.timeout)
  return function(session, out)
    if not log.is_session(session) then options.fail("verdict", "the check takes a session and what the beat brought") end
    local events = log.events(session)
    local list, last = earlier(events, kind)
    if run == nil then
      session:append({ kind = kind, data = { ok = true, ran = false } })
      return { ok = true, checked = false, ran = false }
    end
    local moved
    if changed then moved = changed(session, out) ~= false end
    if moved == false then
      local good = last ~= nil and last.ok == true
      session:append({ kind = kind, data = { ok = good, ran = false, reason = "unchanged" } })
      return { ok = good, checked = false, ran = false, changed = false, reason = "unchanged" }
    end
    local seconds = seconds_of(timeout, list, events)
    local before = std.time.now()
    local result = ask(run, out, seconds)
    session:append({ kind = kind, data = {
      ok = result.ok, ran = true, timeout_s = seconds, took_s = std.time.now() - before,
      stdout = ended(result.stdout), stderr = ended(result.stderr), exit_code = result.exit_code,
    } })
    return { ok = result.ok, checked = true, ran = true, changed = moved, result = result }
  end
end
