-- llm_proto.fields: what the builders of every wire do with a request's fields.
--
--   pick(request, conf, key)        the request's field, else that of conf
--   refuse(message)                 nil, call_error: refused before anything is sent
--   dropped(who, field, why?)       warns, once per run and field, that a field is left out
--   limit(request, conf, default?)  max_tokens | nil, and whether it is the default
--   format(request, conf)           {type, name?, schema?, strict?} | nil, call_error
--   choice(request, conf)           "auto" | "none" | "required" | {name} | nil, call_error
--   named(name, offered)            a called tool's name as every provider takes it
--   joined(blocks, kind, field)     the texts of a list of blocks

local clean = require("llm_proto.reply").clean

local M = {}

local MAX_NAME = 64 -- bytes of a tool's name

local warned = {} -- what this run was told; it decides nothing

function M.pick(request, conf, key)
  if request[key] ~= nil then return request[key] end
  return conf[key]
end

function M.refuse(message)
  return nil, { kind = "invalid_request", retryable = false, message = message }
end

function M.dropped(who, field, why)
  local message = "llm_proto: " .. who .. " takes no " .. field .. (why and " " .. why or "") .. ": left out"
  if not warned[message] then log.warn(message) end
  warned[message] = true
end

-- A budget's remainder is a limit, no wish: it never asks for more than conf does.
function M.limit(request, conf, default)
  local own = conf.max_tokens or default
  local defaulted = conf.max_tokens == nil and default ~= nil
  if request.max_tokens == nil then return own, defaulted end
  if request.capped and own then return math.min(request.max_tokens, own), defaulted end
  return request.max_tokens, false
end

function M.format(request, conf)
  local format = M.pick(request, conf, "response_format")
  if format == nil then return nil end
  if type(format) ~= "table" or type(format.type) ~= "string" then return M.refuse("response_format must be a table with a type") end
  if format.type ~= "json_schema" then return { type = format.type } end
  local inner = type(format.json_schema) == "table" and format.json_schema or format
  if type(inner.schema) ~= "table" then return M.refuse("response_format json_schema needs a schema") end
  return { type = "json_schema", name = inner.name or "answer", schema = inner.schema, strict = inner.strict, description = inner.description }
end

local CHOICES = { auto = "auto", none = "none", required = "required", any = "required" }

local function bad_choice(choice)
  return M.refuse("tool_choice is " .. tostring(choice) .. "; it is auto, none, required, any or {type = 'tool', name = …}")
end

local function known(tools, name)
  for _, tool in ipairs(tools) do
    if tool.name == name then return true end
  end
  return false
end

-- A choice without tools says nothing.
function M.choice(request, conf)
  local choice = M.pick(request, conf, "tool_choice")
  if choice == nil or not request.tools or #request.tools == 0 then return nil end
  if type(choice) ~= "table" then
    if not CHOICES[choice] then return bad_choice(choice) end
    return CHOICES[choice]
  end
  local name = choice.name or type(choice["function"]) == "table" and choice["function"].name
  if not name then
    if not CHOICES[choice.type] then return bad_choice(choice.type) end
    return CHOICES[choice.type]
  end
  if not known(request.tools, name) then return M.refuse("tool_choice names '" .. tostring(name) .. "', which is none of the tools") end
  return { name = name }
end

-- named: one that was offered stays as it is; what a model made up may be anything.
function M.named(name, offered)
  if offered[name] then return name end
  name = tostring(name):sub(1, MAX_NAME):gsub("[^%w_%-]", "_")
  return name ~= "" and name or "unknown"
end

function M.joined(blocks, kind, field)
  local parts = {}
  for _, block in ipairs(blocks) do
    if block.type == kind then parts[#parts + 1] = block[field] end
  end
  return clean(table.concat(parts, ""))
end

return M
