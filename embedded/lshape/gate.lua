-- lshape.gate: holds what a module exports to its declared shapes, in dev mode.
--
--   gate.publish(M, name, load)     M.shapes becomes what load() gives, made when it is first
--                                   asked for; in dev mode every export that shapes.api names is
--                                   wrapped, once, here. Gives M.
--
--   shapes.api = {export = {args = {schema, …}, returns = {schema, …}, rest = schema?}, …}
--
-- A wrapped export raises "shape violation at $…: … (ctx: name.export argument 2)" for an
-- argument or a result that does not fit; results that it does not declare pass. Fields that a
-- shape does not know are not its business: the export's own check names them, in both modes,
-- so that one typo is one message. An export that is a callable table stays that table.
-- Outside of dev mode nothing is wrapped, loaded or looked at.

local gate = {}

local function dev() return os.getenv("LSHAPE_CHECK") == "1" end

-- opened is a schema whose shapes let unknown fields pass.
local function opened(schema)
  if type(schema) ~= "table" then return schema end
  local out = {}
  for key, value in pairs(schema) do out[key] = opened(value) end
  if out.kind == "shape" then out.open = true end
  return out
end

local function all(list, change)
  local out = {}
  for i, schema in ipairs(list or {}) do out[i] = change(schema) end
  return out
end

local function same(schema) return schema end

local function wrap(check, where, fn, entry, skip)
  local args, returns = all(entry.args, opened), all(entry.returns, same)
  local rest = entry.rest and opened(entry.rest)
  local function hold(got, first, schemas, what, more)
    for i = 1, math.max(#schemas, more and got.n - first + 1 or 0) do
      local ok, why = check(got[first + i - 1], schemas[i] or more)
      if not ok then error(("%s (ctx: %s %s %d)"):format(why, where, what, i), 3) end
    end
  end
  return function(...)
    local got = table.pack(...)
    hold(got, 1 + skip, args, "argument", rest)
    local out = table.pack(fn(...))
    hold(out, 1, returns, "result")
    return table.unpack(out, 1, out.n)
  end
end

local function install(M, name, api)
  local check = require("lshape.check").check
  for export, entry in pairs(api) do
    local value = rawget(M, export)
    local where = name .. "." .. export
    if type(value) == "function" then
      M[export] = wrap(check, where, value, entry, 0)
    elseif type(value) == "table" and (entry.args or entry.returns) then
      local mt = getmetatable(value)
      if type(mt) == "table" and type(mt.__call) == "function" and not mt.gated then
        mt.__call, mt.gated = wrap(check, where, mt.__call, entry, 1), true
      end
    end
  end
end

function gate.publish(M, name, load)
  local made
  local function shapes()
    made = made or load()
    return made
  end
  if dev() then
    M.shapes = shapes()
    install(M, name, M.shapes.api)
    return M
  end
  return setmetatable(M, { __index = function(_, key)
    if key == "shapes" then return shapes() end
  end })
end

return gate
