-- lshape.reflect: reads schemas.
--
--   reflect.fields(shape) -> {{name, type, optional, doc?}, …}    sorted by name
--   reflect.walk(schema, visitor)     calls visitor(schema, path) for the schema and everything
--                                     below it: a parent before its children, those in the order
--                                     of their names; a visitor that returns false keeps it out
--                                     of what is below
--   reflect.type_of(schema, name_of_ref?) -> text                 as LuaCATS writes it
--
-- A described or optional shape is read as the shape that it is about.

local reflect = {}

local function sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

-- peel takes descriptions and options off: what is left, whether it was optional, the outermost
-- word about it.
local function peel(schema)
  local optional, doc = false, nil
  while schema.kind == "optional" or schema.kind == "described" do
    if schema.kind == "optional" then optional = true elseif doc == nil then doc = schema.doc end
    schema = schema.inner
  end
  return schema, optional, doc
end

local function quoted(v)
  if type(v) == "string" then return (("%q"):format(v):gsub("\\\n", "\\n")) end
  return tostring(v)
end

local PRIM = { fn = "function" }

local function key_text(name)
  if name:find("^[%a_][%w_]*$") then return name end
  return "[" .. quoted(name) .. "]"
end

local TYPE = {}

-- Every TYPE gives the text, and whether it is a union, which a list must put in parentheses.
local function of(schema, ref)
  local text, union = TYPE[schema.kind](schema, ref)
  return text, union or false
end

local function union(schemas, ref)
  local parts, seen = {}, {}
  for _, schema in ipairs(schemas) do
    local text = of(schema, ref)
    if not seen[text] then parts[#parts + 1], seen[text] = text, true end
  end
  return table.concat(parts, "|"), #parts > 1
end

function TYPE.prim(schema) return PRIM[schema.prim] or schema.prim end
function TYPE.described(schema, ref) return of(schema.inner, ref) end
function TYPE.optional(schema, ref) return of(schema.inner, ref) .. "|nil", true end
function TYPE.pattern() return "string" end
function TYPE.literal(schema) return quoted(schema.value) end
function TYPE.ref(schema, ref) return ref(schema.name) end
function TYPE.any_of(schema, ref) return union(schema.alternatives, ref) end

function TYPE.one_of(schema)
  local parts = {}
  for i, value in ipairs(schema.values) do parts[i] = quoted(value) end
  return table.concat(parts, "|"), #parts > 1
end

function TYPE.shape(schema, ref)
  local parts = {}
  for _, name in ipairs(sorted(schema.fields)) do
    local inner, optional = peel(schema.fields[name])
    parts[#parts + 1] = key_text(name) .. (optional and "?" or "") .. ": " .. of(inner, ref)
  end
  if #parts == 0 then return "table" end
  return "{ " .. table.concat(parts, ", ") .. " }"
end

function TYPE.array_of(schema, ref)
  local text, is_union = of(schema.elem, ref)
  if is_union then text = "(" .. text .. ")" end
  return text .. "[]"
end

function TYPE.tuple(schema, ref)
  local parts = {}
  for i, item in ipairs(schema.items) do parts[i] = of(item, ref) end
  return "[" .. table.concat(parts, ", ") .. "]"
end

function TYPE.discriminated(schema, ref)
  local variants = {}
  for i, name in ipairs(sorted(schema.variants)) do variants[i] = schema.variants[name] end
  return union(variants, ref)
end

function TYPE.map_of(schema, ref) return "table<" .. of(schema.key, ref) .. ", " .. of(schema.value, ref) .. ">" end

local function need(where, schema)
  if type(schema) ~= "table" or not TYPE[schema.kind] then error("lshape: " .. where .. ": validation: takes a schema", 3) end
end

function reflect.type_of(schema, name_of_ref)
  need("type_of", schema)
  return (of(schema, name_of_ref or function(name) return name end))
end

reflect.peel = peel

function reflect.fields(shape)
  need("fields", shape)
  shape = peel(shape)
  if shape.kind ~= "shape" then error("lshape: fields: validation: takes a shape, got " .. shape.kind, 2) end
  local out = {}
  for i, name in ipairs(sorted(shape.fields)) do
    local inner, optional, doc = peel(shape.fields[name])
    out[i] = { name = name, type = reflect.type_of(inner), optional = optional, doc = doc }
  end
  return out
end

-- children lists what is directly below a schema, in order, each with its step of the path.
local function children(schema)
  local out = {}
  local function add(step, child) out[#out + 1] = { step = step, schema = child } end
  local kind = schema.kind
  if kind == "shape" then
    for _, name in ipairs(sorted(schema.fields)) do add("." .. name, schema.fields[name]) end
  elseif kind == "discriminated" then
    for _, name in ipairs(sorted(schema.variants)) do add("<" .. name .. ">", schema.variants[name]) end
  elseif kind == "tuple" then
    for i, item in ipairs(schema.items) do add("[" .. i .. "]", item) end
  elseif kind == "any_of" then
    for i, item in ipairs(schema.alternatives) do add("|" .. i, item) end
  elseif kind == "map_of" then
    add("[key]", schema.key)
    add("[value]", schema.value)
  elseif kind == "array_of" then
    add("[]", schema.elem)
  elseif kind == "optional" or kind == "described" then
    add("", schema.inner)
  end
  return out
end

local function walk(schema, visitor, path)
  if visitor(schema, path) == false then return end
  for _, child in ipairs(children(schema)) do walk(child.schema, visitor, path .. child.step) end
end

function reflect.walk(schema, visitor)
  need("walk", schema)
  if type(visitor) ~= "function" then error("lshape: walk: validation: visitor must be a function", 2) end
  walk(schema, visitor, "$")
end

return reflect
