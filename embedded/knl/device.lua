-- knl.device: the frozen policy bundle that a beat runs against.
--
--   device{llm?, tools?, tool_policy?, fold?, filters?, system?, model?, cost?, on_delta?, window?}
--   d:with{…}      another device, with some fields replaced
--   device.is(v)  device.fields(v)
--
-- Contracts of the fields:
--   llm(request, ctx) -> llm_result | nil, call_error    ctx = {session, beat, on_delta}
--     llm_result = {status = "ok" | "refused", content, usage, stop_reason?, refusal? = {kind, detail?}}
--       content = {{type = "text", text}, {type = "tool_use", id, name, input}, …}
--       usage = {input_tokens, output_tokens, …};  refusal.kind is "model" or "content_filter"
--     call_error = {kind, message, retryable?, retry_after?, status?, usage?}
--   fold(events, device) -> request[, window_report]
--   filters = {filter(request) -> request, …}            applied in order
--   cost(request) -> integer >= 1                        replaces the amount of the grant's first tag
--   tool_policy(tool_use, out) -> nil | "run" | "deny"[, reason]
--   tools = {name = {description, input_schema, handler, read_only?, idempotent?, timeout?, repeatable?}}
--           repeatable: the same call again is no doom loop (polling);
--           with registered = true instead of handler it is the tool that tool.register knows by the name
--   on_delta(text, kind)                                 kind is "text" or "thinking"
--   window = tokens, or {context_window, max_output?, reserve?}: what the model takes, reply
--           included; no request is larger (knl.window). Default: what the llm knows.
--
-- A device holds policy and no state: a key that names state is refused.

local default_fold = require("knl.fold")

local FIELDS = { "cost", "filters", "fold", "llm", "model", "on_delta", "system", "tool_policy", "tools", "window" }
local KNOWN, STATE = {}, { session = true, store = true, owner = true, budget = true }
for _, name in ipairs(FIELDS) do KNOWN[name] = true end

local TOOL_FIELDS = {
  description = true, input_schema = true, handler = true, group = true,
  read_only = true, idempotent = true, timeout = true, capabilities = true, registered = true, repeatable = true,
}

-- The key under which a device gives its fields to this module, and to nobody else.
local OPTIONS = {}
local device = {}

-- The error names the line that called new or with; checks lie one call deeper.
local function fail(message, level) error("knl: device: validation: " .. message, level or 4) end

local function callable(v)
  if type(v) == "function" then return true end
  local mt = getmetatable(v)
  return type(mt) == "table" and type(mt.__call) == "function"
end

local function check_tools(tools)
  if type(tools) ~= "table" then fail("tools must be a table from name to tool") end
  local out = {}
  for name, tool in pairs(tools) do
    if type(name) == "number" then fail("tools is a map from name to tool; agent.run{extra_tools} takes a list") end
    if type(name) ~= "string" or name == "" then fail("tools: a tool's name must be text, got " .. tostring(name)) end
    if type(tool) ~= "table" then fail("tool '" .. name .. "' must be a table") end
    for key in pairs(tool) do
      if not TOOL_FIELDS[key] then fail("tool '" .. name .. "': unknown field '" .. tostring(key) .. "'") end
    end
    if tool.registered then
      if tool.handler ~= nil then fail("tool '" .. name .. "' has a handler and is registered: the registry has its handler") end
    elseif not callable(tool.handler) then fail("tool '" .. name .. "' has no handler function") end
    local copy = {}
    for key, value in pairs(tool) do copy[key] = value end
    if not copy.input_schema then copy.input_schema = { type = "object" } end
    out[name] = copy
  end
  return out
end

local function check(opts)
  for key in pairs(opts) do
    if STATE[key] then
      fail("'" .. key .. "' is state and belongs to a session: pass it to knl.open, and the session to knl.beat")
    end
    if not KNOWN[key] then
      fail("unknown field '" .. tostring(key) .. "'; it takes " .. table.concat(FIELDS, ", "))
    end
  end
  for _, key in ipairs({ "llm", "fold", "cost", "tool_policy", "on_delta" }) do
    if opts[key] ~= nil and not callable(opts[key]) then fail(key .. " must be a function") end
  end
  if opts.filters ~= nil then
    if type(opts.filters) ~= "table" then fail("filters must be a list of functions") end
    for i, filter in ipairs(opts.filters) do
      if not callable(filter) then fail("filters[" .. i .. "] must be a function") end
    end
  end
end

local WINDOW = { context_window = true, max_output = true, reserve = true, discovered = true }

local function check_window(window)
  if window == nil then return end
  if type(window) == "number" then window = { context_window = window } end
  if type(window) ~= "table" then fail("window must be a number of tokens or {context_window, max_output?, reserve?}") end
  for key in pairs(window) do
    if not WINDOW[key] then fail("window: unknown field '" .. tostring(key) .. "'") end
  end
  for _, key in ipairs({ "context_window", "max_output", "reserve" }) do
    local n = window[key]
    if (n ~= nil or key == "context_window") and (type(n) ~= "number" or n < (key == "reserve" and 0 or 1) or n ~= math.floor(n)) then
      fail("window: " .. key .. " must be a whole number of tokens, got " .. tostring(n))
    end
  end
end

local methods = {}

-- copy goes as deep as what the device itself made: two levels of tables.
local function copy(fields)
  local out = {}
  for key, value in pairs(fields) do
    if type(value) == "table" and getmetatable(value) == nil then
      local inner = {}
      for k, v in pairs(value) do inner[k] = v end
      value = inner
    end
    out[key] = value
  end
  return out
end

-- new makes the frozen proxy: reading goes to the resolved fields, tables among them
-- are copies, writing raises.
function device.new(opts)
  if type(opts) ~= "table" then fail("takes a table of fields", 3) end
  check(opts)
  local fields = {}
  for key, value in pairs(opts) do fields[key] = value end
  fields.tools = check_tools(opts.tools or {})
  check_window(opts.window)
  if type(opts.window) == "table" then
    fields.window = {}
    for key, value in pairs(opts.window) do fields.window[key] = value end
  end
  fields.fold = opts.fold or default_fold
  fields.filters = {}
  for i, filter in ipairs(opts.filters or {}) do fields.filters[i] = filter end
  return setmetatable({}, {
    __index = function(_, key)
      if key == OPTIONS then return fields end
      local value = fields[key]
      if value == nil then return methods[key] end
      if key == "tools" or key == "filters" or key == "window" and type(value) == "table" then return copy(value) end
      return value
    end,
    __newindex = function(_, key)
      error("knl: device: validation: a device is frozen: '" .. tostring(key) .. "' cannot be set; derive one with device:with{…}", 2)
    end,
    __metatable = "knl.device",
  })
end

function device.is(v)
  return type(v) == "table" and getmetatable(v) == "knl.device" and v[OPTIONS] ~= nil
end

-- fields gives what a device holds, for the modules of this binary, which change nothing.
function device.fields(v) return v[OPTIONS] end

function methods.with(self, changes)
  if type(changes) ~= "table" then fail("with takes a table of fields", 3) end
  local opts = {}
  for key, value in pairs(self[OPTIONS]) do opts[key] = value end
  for key, value in pairs(changes) do opts[key] = value end
  return device.new(opts)
end

return device
