-- policy.ledger: facts of a log that a summary should not have to remember.
--
--   ledger{track = {"path"}, kinds = {"verify"}} -> read(session or events) -> facts
--     facts = {tools = {name = {ok, failed}}, files = {value…}, checks = {kind = {ok, …}}}
--     track   the arguments whose values are listed, each once, in the order of the last use
--     kinds   the events whose newest data is kept

local log = require("policy.log")
local options = require("policy.options")

local MAX_FILES = 200 -- the newest
local MAX_TEXT = 512 -- bytes of each text of a check

local function list(name, given, default)
  if given == nil then return default end
  if type(given) ~= "table" then options.fail("ledger", name .. " must be a list of names, got a " .. type(given)) end
  return given
end

local function short(data)
  local out = {}
  for key, value in pairs(data) do
    if type(value) == "string" and #value > MAX_TEXT then value = require("knl.estimate").shorten(value, MAX_TEXT) end
    out[key] = value
  end
  return out
end

return function(given)
  options("ledger", given, { track = true, kinds = true })
  given = given or {}
  local track, kinds = list("track", given.track, { "path" }), {}
  for _, kind in ipairs(list("kinds", given.kinds, { "verify" })) do kinds[kind] = true end
  return function(of)
    local tools, checks, last = {}, {}, {}
    local names, n = {}, 0
    for _, event in ipairs(log.events(of)) do
      local data = event.data
      if kinds[event.kind] then checks[event.kind] = short(data) end
      if event.kind == "tool_call" then
        names[tostring(event.meta.beat) .. " " .. tostring(data.call_id)] = data.name
        for _, arg in ipairs(track) do
          local value = type(data.args) == "table" and data.args[arg]
          if type(value) == "string" then
            n = n + 1
            last[value] = n
          end
        end
      elseif event.kind == "tool_result" then
        local name = names[tostring(event.meta.beat) .. " " .. tostring(data.call_id)]
        if name then
          tools[name] = tools[name] or { ok = 0, failed = 0 }
          local key = data.ok and "ok" or "failed"
          tools[name][key] = tools[name][key] + 1
        end
      end
    end
    local files = std.json.array()
    for value in pairs(last) do files[#files + 1] = value end
    table.sort(files, function(a, b) return last[a] < last[b] end)
    while #files > MAX_FILES do table.remove(files, 1) end
    return { tools = tools, files = files, checks = checks }
  end
end
