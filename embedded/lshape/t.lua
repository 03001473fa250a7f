-- lshape.t: makes schemas.
--
--   t.string t.number t.integer t.boolean t.table t.fn t.any     {kind = "prim", prim}
--   t.shape(fields, {open?})      a table with named fields; a closed one refuses other text keys
--   t.partial(fields, {open?})    shape with every field optional
--   t.array_of(T)                 a list without holes; T is not optional
--   t.tuple({A, B, …})            so many positions; an optional one may be nil
--   t.one_of({literals})          one of these strings, numbers, booleans; "1" is not 1
--   t.literal(v)                  exactly v
--   t.discriminated(tag, {name = shape})   the field tag says which; every shape declares it
--   t.pattern(lua_pattern)        a string that matches
--   t.ref(name)                   the schema that a registry has by that name
--   t.any_of({A, B, …})           the first of at least two that fits
--   t.map_of(K, V)                a table whose keys are K (strings, numbers, booleans), values V
--   t.is_schema(v)
--
--   schema:is_optional()   nil fits too      {kind = "optional", inner}
--   schema:describe(doc)   a word about it   {kind = "described", inner, doc}
--   integer:min(n)         at least n        {kind = "prim", prim = "integer", min}
--
-- Constructors copy, so that no table of a caller is part of a schema. A mistake raises
-- "lshape: <constructor>: validation: …".

local t = {}

local KINDS = {
  prim = true, shape = true, array_of = true, tuple = true, one_of = true, literal = true, discriminated = true,
  pattern = true, ref = true, any_of = true, map_of = true, optional = true, described = true,
}

local SUGAR = { __index = {} }

local function fail(where, message, ...) error("lshape: " .. where .. ": validation: " .. message:format(...), 3) end

function t.is_schema(v) return type(v) == "table" and type(v.kind) == "string" and KINDS[v.kind] == true end

local function copy(v)
  if type(v) ~= "table" then return v end
  local out = {}
  for key, value in pairs(v) do out[key] = copy(value) end
  return setmetatable(out, t.is_schema(v) and SUGAR or nil)
end

local function make(schema) return setmetatable(schema, SUGAR) end

-- bare looks through descriptions.
local function bare(schema)
  while schema.kind == "described" do schema = schema.inner end
  return schema
end

local function need(where, what, v)
  if not t.is_schema(v) then
    error("lshape: " .. where .. ": validation: " .. what .. " is no schema (got " .. type(v) .. ")", 4)
  end
  return copy(v)
end

local function solid(where, what, v)
  local schema = need(where, what, v)
  if bare(schema).kind == "optional" then
    error("lshape: " .. where .. ": validation: " .. what .. " cannot be optional", 4)
  end
  return schema
end

for _, prim in ipairs({ "string", "number", "integer", "boolean", "table", "fn", "any" }) do
  t[prim] = make({ kind = "prim", prim = prim })
end

function SUGAR.__index:is_optional()
  if not t.is_schema(self) then fail("is_optional", "call it as a method: schema:is_optional()") end
  if bare(self).kind == "optional" then return copy(self) end
  return make({ kind = "optional", inner = copy(self) })
end

function SUGAR.__index:describe(doc)
  if not t.is_schema(self) then fail("describe", "call it as a method: schema:describe(doc)") end
  if type(doc) ~= "string" then fail("describe", "doc must be a string, got %s", type(doc)) end
  return make({ kind = "described", inner = copy(self), doc = doc })
end

function SUGAR.__index:min(n)
  if not t.is_schema(self) or self.kind ~= "prim" or self.prim ~= "integer" then fail("min", "is a method of t.integer") end
  if type(n) ~= "number" or n ~= math.floor(n) or n ~= n or n == math.huge or n == -math.huge then fail("min", "n must be an integer") end
  return make({ kind = "prim", prim = "integer", min = n })
end

local function options(where, opts)
  if opts == nil then return nil end
  if type(opts) ~= "table" then error("lshape: " .. where .. ": validation: options must be a table", 4) end
  for key in pairs(opts) do
    if key ~= "open" then error("lshape: " .. where .. ": validation: unknown option '" .. tostring(key) .. "'", 4) end
  end
  if opts.open ~= nil and type(opts.open) ~= "boolean" then error("lshape: " .. where .. ": validation: open must be a boolean", 4) end
  return opts.open or nil
end

local function fields_of(where, fields)
  if type(fields) ~= "table" then error("lshape: " .. where .. ": validation: fields must be a table from name to schema", 4) end
  local out = {}
  for name, schema in pairs(fields) do
    if type(name) ~= "string" then error("lshape: " .. where .. ": validation: a field's name must be a string, got " .. tostring(name), 4) end
    if not t.is_schema(schema) then error("lshape: " .. where .. ": validation: field '" .. name .. "' is no schema", 4) end
    out[name] = copy(schema)
  end
  return out
end

function t.shape(fields, opts)
  return make({ kind = "shape", fields = fields_of("shape", fields), open = options("shape", opts) })
end

function t.partial(fields, opts)
  local out = fields_of("partial", fields)
  for name, schema in pairs(out) do
    if bare(schema).kind ~= "optional" then out[name] = make({ kind = "optional", inner = schema }) end
  end
  return make({ kind = "shape", fields = out, open = options("partial", opts) })
end

function t.array_of(elem) return make({ kind = "array_of", elem = solid("array_of", "the element", elem) }) end

-- list copies a list that must be dense, with at least min items.
local function list(where, v, min, item)
  if type(v) ~= "table" then error("lshape: " .. where .. ": validation: takes a list", 4) end
  local n = 0
  for _ in pairs(v) do n = n + 1 end
  local out = {}
  for i = 1, n do
    if v[i] == nil then error("lshape: " .. where .. ": validation: the list has a hole or a key that is no index", 4) end
    out[i] = item(i, v[i])
  end
  if n < min then error("lshape: " .. where .. ": validation: takes at least " .. min .. " items", 4) end
  return out
end

local LITERAL = { string = true, number = true, boolean = true }

local function literal(where, v)
  if not LITERAL[type(v)] or v ~= v then error("lshape: " .. where .. ": validation: a literal is a string, a number or a boolean", 4) end
  return v
end

function t.tuple(items)
  return make({ kind = "tuple", items = list("tuple", items, 0, function(i, v) return need("tuple", "item " .. i, v) end) })
end

function t.one_of(values)
  local seen = {}
  return make({ kind = "one_of", values = list("one_of", values, 1, function(_, v)
    literal("one_of", v)
    if seen[v] then error("lshape: one_of: validation: '" .. tostring(v) .. "' is there twice", 5) end
    seen[v] = true
    return v
  end) })
end

function t.literal(v) return make({ kind = "literal", value = literal("literal", v) }) end

function t.discriminated(tag, variants)
  if type(tag) ~= "string" or tag == "" then fail("discriminated", "tag must be a field's name") end
  if type(variants) ~= "table" or next(variants) == nil then fail("discriminated", "takes a table from name to shape") end
  local out = {}
  for name, schema in pairs(variants) do
    if type(name) ~= "string" then fail("discriminated", "a variant's name must be a string, got %s", tostring(name)) end
    local shape = t.is_schema(schema) and bare(schema)
    if not shape or shape.kind ~= "shape" then fail("discriminated", "variant '%s' is no shape", name) end
    if not shape.fields[tag] then fail("discriminated", "variant '%s' does not declare the field '%s'", name, tag) end
    out[name] = copy(schema)
  end
  return make({ kind = "discriminated", tag = tag, variants = out })
end

function t.pattern(pattern)
  if type(pattern) ~= "string" or pattern == "" then fail("pattern", "takes a Lua pattern that is not empty") end
  local good, problem = pcall(string.find, "", pattern)
  if not good then fail("pattern", "%s", tostring(problem)) end
  return make({ kind = "pattern", pattern = pattern })
end

function t.ref(name)
  if type(name) ~= "string" or name == "" then fail("ref", "takes the name of a shape") end
  return make({ kind = "ref", name = name })
end

function t.any_of(alternatives)
  return make({ kind = "any_of", alternatives = list("any_of", alternatives, 2, function(i, v) return need("any_of", "alternative " .. i, v) end) })
end

function t.map_of(key, value)
  return make({ kind = "map_of", key = solid("map_of", "the key", key), value = solid("map_of", "the value", value) })
end

return t
