-- knl.trusted: the functions of this binary that a device may hold and that promise
-- not to change the request that they are called with.
--
--   trusted.add(fn, {max_tokens?, default?, target?}) -> fn
--     max_tokens: what it asks for where a request names none
--     default: what its wire asks for where nobody names any
--     target() -> {provider, model, …}: where its calls go
--   trusted.of(fn) -> {max_tokens?, default?, target?} | nil
--
-- A beat hands its kept messages to such a function, and a copy to any other. One that
-- was not asked for while many others were added is forgotten, which costs time and
-- nothing else.

local MAX = 512

local young, old, n = {}, {}, 0

local function add(fn, facts)
  if n == MAX then young, old, n = {}, young, 0 end
  young[fn], n = facts or {}, n + 1
  return fn
end

local function of(fn)
  if fn == nil then return nil end
  if young[fn] then return young[fn] end
  if old[fn] then add(fn, old[fn]) end
  return young[fn]
end

return { add = add, of = of }
