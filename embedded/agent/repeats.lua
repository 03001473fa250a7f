-- agent.repeats: tells a doom loop, the same calls turn after turn, from work.
--
--   repeats(max, tools) -> watch(session, content) -> nil | message
--     content: the blocks of a turn. A turn whose calls equal those of the turn before is a
--     repetition; with the same results max of them are a doom loop, with other results twice
--     as many. A turn that calls a tool with repeatable = true (one that polls) is none.

local log = require("policy.log")

-- results gives the results of the last n turns, each as one text.
local function results(session, n)
  local list = log.beats(session)
  local out = {}
  for i = math.max(#list - n + 1, 1), #list do
    local parts = {}
    for k, result in ipairs(list[i].results) do parts[k] = log.canonical({ result.ok, result.result }) end
    out[#out + 1] = table.concat(parts, " ")
  end
  return out
end

local function alike(list)
  for i = 2, #list do
    if list[i] ~= list[1] then return false end
  end
  return true
end

return function(max, tools)
  local last, n
  return function(session, content)
    local parts, names = {}, {}
    for _, block in ipairs(content) do
      if block.type == "tool_use" then
        if (tools[block.name] or {}).repeatable then
          last = nil
          return nil
        end
        parts[#parts + 1] = log.canonical({ block.name, block.input })
        names[#names + 1] = block.name
      end
    end
    if #parts == 0 then
      last = nil
      return nil
    end
    local signature = table.concat(parts, " ")
    n = signature == last and n + 1 or 1
    last = signature
    if n < max or n < 2 * max and not alike(results(session, max)) then return nil end
    return ("the model made the same call %d times in a row: %s"):format(n, table.concat(names, ", "))
  end
end
