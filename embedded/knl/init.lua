-- knl: the kernel's Lua half. Sealed: no project may replace it.
--
--   knl.open(opts)  knl.resume(opts)      a session handle (see `ashlar api knl`)
--   knl.session(opts, fn)                 opens or resumes, runs fn(session), closes either way
--                                         A session ends with its run: what is left open is closed
--                                         then, and only an interrupted run leaves one to resume.
--   knl.device(fields)                    the frozen policy bundle (knl.device)
--   knl.beat(session, device) -> Outcome  one model call and its tool calls; never raises
--   knl.Outcome  knl.fold  knl.views  knl.new_beat_id()  knl.error(e)  knl.api()  knl.is_session(v)
--   knl.page(id, from?)                   events of a session of this run, one that has ended too
--   knl.export(session, {as = "events"|"messages"})
--   knl.shapes                            the shapes of all that (knl.shapes); LSHAPE_CHECK=1 holds
--                                         the exports to them
--
-- The native half keeps the record, the quota and the boundaries of a session;
-- every preference is here, and a caller can bring their own.

local native = knl

local beats = require("knl.beat")
local device = require("knl.device")

local M = {
  Outcome = require("knl.outcome"),
  fold = require("knl.fold"),
  views = require("knl.views")(native),
  open = native.open,
  resume = native.resume,
  new_beat_id = native.new_beat_id,
  api = native.api,
  is_session = native.is_session,
  page = native.page,
}

-- An error that was read prints as it was raised.
local ERROR = {
  __tostring = function(e)
    local parts = { e.namespace, e.method, e.kind, e.message }
    local text = {}
    for i = 1, 4 do
      if parts[i] ~= nil then text[#text + 1] = parts[i] end
    end
    return table.concat(text, ": ")
  end,
}

function M.error(raised) return setmetatable(native.error(raised), ERROR) end

M.device = setmetatable({ is = device.is }, { __call = function(_, fields) return device.new(fields) end })

function M.beat(session, dev) return beats.beat(native, session, dev) end

-- session is the bracket: the body's error outlives a failing close, which is logged.
function M.session(opts, fn)
  if type(opts) ~= "table" then error("knl: session: validation: opts must be a table", 2) end
  if type(fn) ~= "function" then error("knl: session: validation: fn must be a function", 2) end
  local s = opts.session and native.resume(opts) or native.open(opts)
  local got = table.pack(pcall(fn, s))
  beats.forget(s:id())
  local reason, detail = "scope_exit", nil
  if not got[1] then reason, detail = "error", native.error(got[2]).message end
  local closed, failure = pcall(s.close, s, reason, detail)
  if not got[1] then
    if not closed then log.warn("knl.session: closing failed: " .. tostring(failure)) end
    error(got[2], 0)
  end
  if not closed then error(failure, 0) end
  return table.unpack(got, 2, got.n)
end

function M.export(session, opts)
  opts = opts or {}
  for key in pairs(opts) do
    if key ~= "as" and key ~= "sessions" then error("knl: export: validation: unknown option '" .. tostring(key) .. "'", 2) end
  end
  local as = opts.as or "events"
  if as ~= "events" and as ~= "messages" then error("knl: export: validation: as is \"events\" or \"messages\"", 2) end
  for _, id in ipairs(opts.sessions or {}) do
    if id ~= session:id() then error("knl: export: validation: sessions may name only the session itself", 2) end
  end
  return native.export(session, as)
end

return require("lshape.gate").publish(M, "knl", function() return require("knl.shapes") end)
