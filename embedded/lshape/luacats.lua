-- lshape.luacats: writes schemas as LuaCATS, what editors read.
--
--   luacats.class_for(name, schema, prefix?) -> text     one ---@class, or ---@alias of what is no
--                                                        shape; without a newline at its end
--   luacats.gen(registry, prefix?) -> text               a whole file: ---@meta, then every entry of
--                                                        the registry by name; entries that are no
--                                                        schema are left out
--
-- Names come in PascalCase, from "_" and "-", behind the prefix; a ref is the class of its name.
-- A shape inside a shape is written out in place.

local reflect = require("lshape.reflect")

local luacats = {}

local function pascal(name)
  return (("_" .. name):gsub("[_%-%.]+(.?)", string.upper))
end

local function class_name(name, prefix) return (prefix or "") .. pascal(name) end

local function line(text) return (text:gsub("%s*\n%s*", " ")) end

local function known(schema)
  local good = pcall(reflect.type_of, schema)
  return good
end

local function key_text(name)
  if name:find("^[%a_][%w_]*$") then return name end
  return "[" .. ("%q"):format(name) .. "]"
end

function luacats.class_for(name, schema, prefix)
  if type(name) ~= "string" or name == "" then error("lshape: class_for: validation: name must be a string", 2) end
  if not known(schema) then error("lshape: class_for: validation: '" .. name .. "' is no schema", 2) end
  local function ref(target) return class_name(target, prefix) end
  local inner, optional, doc = reflect.peel(schema)
  local out = {}
  if doc then out[1] = "---" .. line(doc) end
  if inner.kind ~= "shape" or optional then
    out[#out + 1] = "---@alias " .. class_name(name, prefix) .. " " .. reflect.type_of(optional and { kind = "optional", inner = inner } or inner, ref)
    return table.concat(out, "\n")
  end
  out[#out + 1] = "---@class " .. class_name(name, prefix)
  local names = {}
  for field in pairs(inner.fields) do names[#names + 1] = field end
  table.sort(names)
  for _, field in ipairs(names) do
    local kind, may_miss, word = reflect.peel(inner.fields[field])
    local text = "---@field " .. key_text(field) .. (may_miss and "?" or "") .. " " .. reflect.type_of(kind, ref)
    if word then text = text .. " " .. line(word) end
    out[#out + 1] = text
  end
  if inner.open then out[#out + 1] = "---@field [string] any" end
  return table.concat(out, "\n")
end

function luacats.gen(registry, prefix)
  if type(registry) ~= "table" then error("lshape: gen: validation: registry must be a table from name to schema", 2) end
  local names = {}
  for name, schema in pairs(registry) do
    if type(name) == "string" and known(schema) then names[#names + 1] = name end
  end
  table.sort(names)
  local out = { "---@meta" }
  for _, name in ipairs(names) do out[#out + 1] = luacats.class_for(name, registry[name], prefix) end
  return table.concat(out, "\n\n") .. "\n"
end

return luacats
