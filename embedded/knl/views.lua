-- knl.views: rows computed from a session's events, page by page.
--
--   views.usage(session)  -> {{stream, calls, input_tokens, output_tokens, thinking_tokens,
--                              cache_read_input_tokens, cache_creation_input_tokens, cost}}, false
--   views.ledger(session) -> {{seq, kind, amount, tag}…}, false     one for each budget event
--
-- cost is in micro-USD. usage is what the providers said; it is never reconciled with the ledger. A reply
-- without any counts 0, a failed call is one where a usage came with it.

local beat = require("knl.beat")

local SUMS = {
  "input_tokens", "output_tokens", "thinking_tokens", "cache_read_input_tokens", "cache_creation_input_tokens",
  "cost",
}

return function(native)
  local views = {}

  function views.usage(session)
    local row = { stream = session:id(), calls = 0 }
    for _, key in ipairs(SUMS) do row[key] = 0 end
    beat.pages(native, session, 1, function(event)
      local usage = event.data and event.data.usage
      if type(usage) ~= "table" then usage = nil end
      if event.kind == "llm_response" or event.kind == "llm_call_failed" and usage then
        row.calls = row.calls + 1
        for _, key in ipairs(SUMS) do row[key] = row[key] + (tonumber(usage and usage[key]) or 0) end
      end
    end)
    return { row }, false
  end

  function views.ledger(session)
    local rows = std.json.array()
    beat.pages(native, session, 1, function(event)
      if event.kind:sub(1, 7) == "budget_" then
        rows[#rows + 1] = { seq = event.seq, kind = event.kind, amount = event.data.amount or event.data.used, tag = event.data.tag }
      end
    end)
    return rows, false
  end

  return views
end
