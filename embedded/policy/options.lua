-- policy.options: what every factory of the pack asks of its configuration.
--
--   options(who, given, known) -> given     raises on a key that is not in known, and on one
--                                           that is state, with the reason
--   options.number(who, name, value, least, whole?)    raises where it is none
--   options.fn(who, name, value)                       raises where it cannot be called
--   options.fail(who, message)
--
-- A policy is configuration: the session comes later, from the caller's loop, so that one
-- policy serves many sessions and a resumed session finds its counts in its log.

local STATE = { session = true, store = true, owner = true, budget = true }

local function fail(who, message) error("policy: " .. who .. ": validation: " .. message, 0) end

local function names(known)
  local list = {}
  for name in pairs(known) do list[#list + 1] = name end
  table.sort(list)
  return #list > 0 and table.concat(list, ", ") or "no options"
end

local function check(who, given, known)
  if given == nil then given = {} end
  if type(given) ~= "table" then fail(who, "takes a table of options, got a " .. type(given)) end
  for key in pairs(given) do
    if STATE[key] and not known[key] then
      fail(who, "'" .. key .. "' is state, and a policy is configuration: the session is passed to what the factory returns")
    end
    if not known[key] then fail(who, "unknown option '" .. tostring(key) .. "'; it takes " .. names(known)) end
  end
  return given
end

local function number(who, name, value, least, whole)
  if type(value) ~= "number" or value ~= value or value < least or value == math.huge or whole and value ~= math.floor(value) then
    fail(who, name .. " must be " .. (whole and "a whole number" or "a number") .. " of at least " .. least .. ", got " .. tostring(value))
  end
  return value
end

local function callable(v)
  if type(v) == "function" then return true end
  local mt = getmetatable(v)
  return type(mt) == "table" and type(mt.__call) == "function"
end

local function fn(who, name, value)
  if not callable(value) then fail(who, name .. " must be a function, got a " .. type(value)) end
  return value
end

return setmetatable({ number = number, fn = fn, fail = fail, callable = callable }, {
  __call = function(_, ...) return check(...) end,
})
