-- knl.outcome: what a beat ends in, as a plain table that survives JSON.
--
--   ok       {status, out}             out is the llm_result, with beat and tools
--   refused  {status, reason, detail}  the model or its filter said no
--   error    {status, kind, detail}    kind is the stage: conf, filter, call, state
--   stopped  {status, reason, tag?, bound?}  "budget": the quota did not cover the beat, bound is
--                                      "run" when it was the run's pool; "context": not even the
--                                      last message fits the window. No request was recorded
--
-- match is exhaustive: a missing arm and an unknown status both raise, so that a
-- new outcome cannot pass a caller unseen.

local Outcome = {}

local ARMS = { ok = "ok", refused = "refused", error = "err", stopped = "stopped" }

function Outcome.ok(out) return { status = "ok", out = out } end
function Outcome.refused(reason, detail) return { status = "refused", reason = reason, detail = detail } end
function Outcome.err(kind, detail) return { status = "error", kind = kind, detail = detail } end
function Outcome.stopped(reason, tag, bound) return { status = "stopped", reason = reason, tag = tag, bound = bound } end

local function is(status)
  return function(o) return type(o) == "table" and o.status == status end
end

Outcome.is_ok = is("ok")
Outcome.is_refused = is("refused")
Outcome.is_error = is("error")
Outcome.is_stopped = is("stopped")

function Outcome.match(o, arms)
  if type(o) ~= "table" or not ARMS[o.status] then
    error("knl: match: validation: not an outcome: " .. tostring(type(o) == "table" and o.status or o), 2)
  end
  if type(arms) ~= "table" then error("knl: match: validation: arms must be a table", 2) end
  for _, arm in pairs(ARMS) do
    if type(arms[arm]) ~= "function" then
      error("knl: match: validation: arm '" .. arm .. "' is missing", 2)
    end
  end
  if o.status == "ok" then return arms.ok(o.out) end
  if o.status == "refused" then return arms.refused(o.reason, o.detail) end
  if o.status == "error" then return arms.err(o.kind, o.detail) end
  return arms.stopped(o.reason, o.tag)
end

return Outcome
