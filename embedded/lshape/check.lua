-- lshape.check: holds values to schemas.
--
--   check.check(v, schema, {registry?}) -> true | false, reason      check(v, …) is the same
--   check.assert(v, schema | name | "any", hint?, opts?) -> v        raises the reason
--   check.assert_dev(v, schema, hint?, opts?) -> v                   nothing outside of dev mode
--   check.is_dev_mode()          whether the variable check.dev_env_var ("LSHAPE_CHECK") is "1"
--   check.default_registry       name -> schema, for refs and names: a table, or a function that
--                                gives one; bound by whoever has one, asked when it is needed
--
-- A reason is "shape violation at <path>: <detail>", with " (ctx: <hint>)" behind it where there
-- is a hint; a path is $, $.a, $.a[1].b. Fields are visited in the order of their names and keys
-- in theirs, so the first failure of a value is always the same one. No schema (nil) fits every
-- value, but assert refuses it. A value nested deeper than 256 raises, whatever its schema, and so
-- does a check of more than a million steps; a schema that is none is a violation and does not raise.

local check = { dev_env_var = "LSHAPE_CHECK", default_registry = nil }

local MAX_DEPTH = 256
local MAX_STEPS = 1e6 -- schemas that are looked at in one check: alternatives below alternatives double them
local MAX_SHOWN = 60 -- bytes of a string in a reason

-- get reads a field of a value that may have a metatable of anyone's making.
local function index(v, key) return v[key] end

local function get(v, key)
  if getmetatable(v) == nil then return v[key] end
  local good, value = pcall(index, v, key)
  if good then return value end
end

local function shown(v)
  if type(v) == "string" then
    if #v > MAX_SHOWN then
      local cut = MAX_SHOWN
      while cut > 0 and v:byte(cut + 1) >= 0x80 and v:byte(cut + 1) < 0xC0 do cut = cut - 1 end -- whole characters
      v = v:sub(1, cut) .. "…"
    end
    local text = ("%q"):format(v):gsub("\\\n", "\\n")
    if utf8.len(v) then return text end
    return (text:gsub("[\128-\255]", function(c) return ("\\%d"):format(c:byte()) end))
  end
  if type(v) == "number" or type(v) == "boolean" then return tostring(v) end
  return type(v)
end

local function sorted(t)
  local keys = {}
  for key in pairs(t) do
    if type(key) == "string" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

local RANK = { number = 1, string = 2, boolean = 3 }

-- keys_of gives a table's keys in one order; odd is the type of a key that has no order.
local function keys_of(v)
  local keys, odd = {}, nil
  for key in pairs(v) do
    local kind = type(key)
    if not RANK[kind] then
      if not odd or kind < odd then odd = kind end
    else
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, function(a, b)
    local ra, rb = RANK[type(a)], RANK[type(b)]
    if ra ~= rb then return ra < rb end
    if ra == 3 then return not a and b end
    return a < b
  end)
  return keys, odd
end

-- length gives how many items a list has, or what makes a table none.
local function length(v)
  local n, top, bad = 0, 0, nil
  for key in pairs(v) do
    if type(key) ~= "number" or key < 1 or key ~= math.floor(key) then bad = true else
      n = n + 1
      if key > top then top = key end
    end
  end
  if bad then
    local keys, odd = keys_of(v)
    for _, key in ipairs(keys) do
      if type(key) ~= "number" or key < 1 or key ~= math.floor(key) then return nil, "expected a list, got the key " .. shown(key) end
    end
    return nil, "expected a list, got a key of type " .. odd
  end
  return n, nil, top
end

local big = std and std.json and std.json.int and getmetatable(std.json.int("9007199254740993"))

local function is_integer(v)
  if type(v) == "number" then return v == math.floor(v) and v < math.huge and v > -math.huge end
  return big ~= nil and type(v) == "userdata" and getmetatable(v) == big
end

local PRIM = {
  string = function(v) return type(v) == "string" end,
  number = function(v) return type(v) == "number" or is_integer(v) end,
  integer = is_integer,
  boolean = function(v) return type(v) == "boolean" end,
  table = function(v) return type(v) == "table" end,
  fn = function(v) return type(v) == "function" end,
  any = function() return true end,
}

local NAMED = { fn = "function" }

-- Each kind gives nil where v fits, else the detail and the path below v as a list that is
-- written back to front.
local KIND = {}
local visit

local function under(step, detail, path)
  path = path or {}
  path[#path + 1] = step
  return detail, path
end

local function at_field(name)
  if name:find("^[%a_][%w_]*$") then return "." .. name end
  return "[" .. shown(name) .. "]"
end

local function at_key(key)
  if type(key) == "string" then return at_field(key) end
  return "[" .. shown(key) .. "]"
end

function KIND.prim(v, schema)
  local test = PRIM[schema.prim]
  if not test then return "the schema's prim is " .. shown(schema.prim) end
  if not test(v) then
    return "expected " .. (NAMED[schema.prim] or schema.prim) .. ", got " .. (schema.prim == "integer" and type(v) == "number" and tostring(v) or type(v))
  end
  if type(schema.min) == "number" and type(v) == "number" and v < schema.min then
    return ("expected at least %s, got %s"):format(tostring(schema.min), tostring(v))
  end
end

function KIND.optional(v, schema, ctx, depth)
  if v == nil then return nil end
  return visit(v, schema.inner, ctx, depth)
end

function KIND.described(v, schema, ctx, depth) return visit(v, schema.inner, ctx, depth) end

function KIND.shape(v, schema, ctx, depth)
  if type(v) ~= "table" then return "expected table, got " .. type(v) end
  local fields = schema.fields
  if type(fields) ~= "table" then return "the schema's fields are " .. shown(fields) end
  for _, name in ipairs(sorted(fields)) do
    local detail, path = visit(get(v, name), fields[name], ctx, depth)
    if detail then return under(at_key(name), detail, path) end
  end
  if schema.open then return nil end
  local extra
  for key in pairs(v) do
    if type(key) == "string" and fields[key] == nil and (extra == nil or key < extra) then extra = key end
  end
  if extra then return under(at_field(extra), "unexpected field") end
end

function KIND.array_of(v, schema, ctx, depth)
  if type(v) ~= "table" then return "expected a list, got " .. type(v) end
  local n, problem, top = length(v)
  if not n then return problem end
  for i = 1, top do
    local item = rawget(v, i)
    if item == nil then return under("[" .. i .. "]", "the list has a hole here") end
    local detail, path = visit(item, schema.elem, ctx, depth)
    if detail then return under("[" .. i .. "]", detail, path) end
  end
end

function KIND.tuple(v, schema, ctx, depth)
  if type(v) ~= "table" then return "expected a list, got " .. type(v) end
  local n, problem, top = length(v)
  if not n then return problem end
  if type(schema.items) ~= "table" then return "the schema's items are " .. shown(schema.items) end
  local items = #schema.items
  for i = 1, items do
    local detail, path = visit(rawget(v, i), schema.items[i], ctx, depth)
    if detail then return under("[" .. i .. "]", detail, path) end
  end
  if top > items then return ("expected %d items, got %d"):format(items, top) end
end

function KIND.one_of(v, schema)
  local names = {}
  for i, value in ipairs(type(schema.values) == "table" and schema.values or {}) do
    if rawequal(v, value) then return nil end
    names[i] = shown(value)
  end
  return "expected one of " .. table.concat(names, ", ") .. ", got " .. shown(v)
end

function KIND.literal(v, schema)
  if not rawequal(v, schema.value) then return "expected " .. shown(schema.value) .. ", got " .. shown(v) end
end

function KIND.discriminated(v, schema, ctx, depth)
  if type(v) ~= "table" then return "expected table, got " .. type(v) end
  local tag, variants = schema.tag, schema.variants
  if type(tag) ~= "string" or type(variants) ~= "table" then return "the schema has no variants" end
  local name = get(v, tag)
  local variant = type(name) == "string" and variants[name]
  if variant then return visit(v, variant, ctx, depth) end
  local names = {}
  for i, key in ipairs(sorted(variants)) do names[i] = shown(key) end
  return under(at_field(tag), "expected one of " .. table.concat(names, ", ") .. ", got " .. shown(name))
end

function KIND.pattern(v, schema)
  if type(v) ~= "string" then return "expected string, got " .. type(v) end
  local good, found = pcall(string.find, v, schema.pattern)
  if not good then return "the schema's pattern cannot be used: " .. tostring(found) end
  if not found then return shown(v) .. " does not match the pattern " .. shown(schema.pattern) end
end

local function named(name, ctx)
  local registry = ctx.registry
  if registry == nil then registry = check.default_registry end
  if type(registry) == "function" then registry = registry() end
  if type(registry) ~= "table" then return nil, "no registry is bound to look up the shape " .. shown(name) end
  local schema = get(registry, name)
  if schema == nil then return nil, "the registry has no shape " .. shown(name) end
  return schema
end

function KIND.ref(v, schema, ctx, depth)
  local target, problem = named(schema.name, ctx)
  if not target then return problem end
  return visit(v, target, ctx, depth)
end

function KIND.any_of(v, schema, ctx, depth)
  local n = type(schema.alternatives) == "table" and #schema.alternatives or 0
  local first
  for i = 1, n do
    local detail = visit(v, schema.alternatives[i], ctx, depth)
    if not detail then return nil end
    first = first or detail
  end
  return ("fits none of %d alternatives (the first: %s)"):format(n, tostring(first))
end

function KIND.map_of(v, schema, ctx, depth)
  if type(v) ~= "table" then return "expected table, got " .. type(v) end
  local keys, odd = keys_of(v)
  for _, key in ipairs(keys) do
    local detail = visit(key, schema.key, ctx, depth)
    if detail then return under(at_key(key), "the key: " .. detail) end
    local below, path = visit(rawget(v, key), schema.value, ctx, depth)
    if below then return under(at_key(key), below, path) end
  end
  if odd then return "expected keys that are strings, numbers or booleans, got a key of type " .. odd end
end

local steps = 0 -- of the check that runs: one at a time, since nothing in it waits

function visit(v, schema, ctx, depth)
  if depth == 0 then steps = 0 end
  steps = steps + 1
  if steps > MAX_STEPS then error("lshape: check: limit: the check took more than " .. MAX_STEPS .. " steps", 0) end
  if depth >= MAX_DEPTH then error("lshape: check: limit: the value or its schema nests deeper than " .. MAX_DEPTH, 0) end
  if type(schema) ~= "table" then return "the schema is " .. shown(schema) .. ", no table with a kind" end
  local kind = KIND[schema.kind]
  if not kind then return "the schema's kind is " .. shown(schema.kind) end
  return kind(v, schema, ctx, depth + 1)
end

local NONE = {}

-- context checks the options of a check.
local function context(where, opts)
  if opts == nil then return NONE end
  if type(opts) ~= "table" then error("lshape: " .. where .. ": validation: options must be a table", 3) end
  for key in pairs(opts) do
    if key ~= "registry" then error("lshape: " .. where .. ": validation: unknown option '" .. tostring(key) .. "'; it takes registry", 3) end
  end
  return opts
end

local function reason(detail, path, hint)
  local parts = { "shape violation at $" }
  for i = #(path or NONE), 1, -1 do parts[#parts + 1] = path[i] end
  local text = table.concat(parts) .. ": " .. detail
  if hint ~= nil then text = text .. " (ctx: " .. tostring(hint) .. ")" end
  return text
end

function check.check(v, schema, opts)
  if schema == nil then return true end
  local detail, path = visit(v, schema, context("check", opts), 0)
  if not detail then return true end
  return false, reason(detail, path)
end

function check.assert(v, schema, hint, opts)
  if schema == nil then error("lshape: assert: validation: the schema is nil" .. (hint and " (ctx: " .. tostring(hint) .. ")" or ""), 2) end
  if schema == "any" then return v end
  opts = context("assert", opts)
  if type(schema) == "string" then
    local target, problem = named(schema, opts)
    if not target then error("lshape: assert: validation: " .. problem, 2) end
    schema = target
  end
  local detail, path = visit(v, schema, opts, 0)
  if detail then error(reason(detail, path, hint), 2) end
  return v
end

local mode, asked = nil, nil -- the environment is read once for each variable's name

function check.is_dev_mode()
  if asked ~= check.dev_env_var then
    asked = check.dev_env_var
    mode = os.getenv(asked) == "1"
  end
  return mode
end

function check.assert_dev(v, schema, hint, opts)
  if not check.is_dev_mode() then return v end
  return check.assert(v, schema, hint, opts)
end

return setmetatable(check, { __call = function(_, v, schema, opts) return check.check(v, schema, opts) end })
