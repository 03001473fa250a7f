-- knl.trusted: the functions of this binary that a device may hold and that promise
-- not to change the request that they are called with.
--
--   trusted.add(fn) -> fn
--   trusted.is(fn)
--
-- A beat hands its kept messages to such a function, and a copy to any other.

local set = {}

return {
  add = function(fn)
    set[fn] = true
    return fn
  end,
  is = function(fn) return set[fn] == true end,
}
