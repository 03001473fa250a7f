-- agent.tools: the tool set of a run, from the registry and the extra tools.
--
--   tools(opts) -> map | nil, message
--
-- A name that two sources claim is refused: a model cannot tell them apart. An extra
-- tool is flat ({name, description, input_schema, handler}) or nested
-- ({name, schema = {description, input_schema}, handler}). group never reaches the
-- wire; tool_groups keeps the tools of the named groups, ungrouped ones being "default".

local adapter = require("knl_adapter")

local function flat(entry)
  if type(entry) ~= "table" then return nil end
  if entry.schema == nil then return entry end
  local out = {}
  for key, value in pairs(entry) do
    if key ~= "schema" then out[key] = value end
  end
  for _, key in ipairs({ "description", "input_schema" }) do
    if out[key] == nil then out[key] = entry.schema[key] end
  end
  return out
end

local function wanted(groups, group)
  if type(groups) ~= "table" or next(groups) == nil then return true end
  for _, name in ipairs(groups) do
    if name == (group or "default") then return true end
  end
  return false
end

return function(opts)
  local list, seen = {}, {}
  local function add(entry)
    if seen[entry.name] then return "duplicate tool name '" .. entry.name .. "'" end
    seen[entry.name] = true
    if wanted(opts.tool_groups, entry.group) then
      local out = {}
      for key, value in pairs(entry) do out[key] = value end
      out.group = nil
      list[#list + 1] = out
    end
  end
  for _, schema in ipairs(tool.schema()) do
    local name = schema.name
    local clash = add({
      name = name, description = schema.description, input_schema = schema.input_schema, group = schema.group,
      registered = true, repeatable = schema.repeatable,
    })
    if clash then return nil, clash end
  end
  for i, entry in ipairs(opts.extra_tools or {}) do
    local spec = flat(entry)
    if not spec or type(spec.name) ~= "string" then return nil, "extra_tools[" .. i .. "] has no name" end
    local clash = add(spec)
    if clash then return nil, clash end
  end
  return adapter.tools(list)
end
