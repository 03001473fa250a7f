-- knl_adapter: providers as ports, and tools as device tools. Sealed.
--
--   LLMPort.new{build, parse, classify} -> port
--     build(request, conf, target) -> wire | nil, call_error
--     parse(raw, wire)             -> neutral result | nil, call_error
--     classify(result)             -> {status = "ok"} | {status = "refused", refusal = {kind, detail?}}
--   port:open(conf) -> llm(request, ctx)      for a device
--   adapter.openai                            the port of Chat Completions
--   adapter.port(conf) -> port                the one that conf's provider speaks
--   adapter.tools(list) -> map                device tools from flat specs or ToolPorts
--   adapter.tool(port)  ToolPort.new{declare, invoke}  ToolPort.lua(spec)
--
-- A port never invents: a missing stop_reason stays missing, a result without usage
-- is refused by the beat.

local proto = require("llm_proto")
local trusted = require("knl.trusted")

local M = { LLMPort = {}, ToolPort = {} }

local Port = {}
Port.__index = Port

function M.LLMPort.new(spec)
  for _, name in ipairs({ "build", "parse", "classify" }) do
    if type(spec) ~= "table" or type(spec[name]) ~= "function" then
      error("knl_adapter: new: validation: " .. name .. " is required", 2)
    end
  end
  local port = {}
  for key, value in pairs(spec) do port[key] = value end
  return setmetatable(port, Port)
end

function Port:open(conf)
  conf = conf or {}
  local target -- where calls of this conf go: found at the first, kept for the rest
  return self.keeps(function(request, ctx)
    ctx = ctx or {}
    target = target or (self.target and self.target(conf) or proto.target(conf))
    local wire, err = self.build(request, conf, target, ctx.kept)
    if not wire then return nil, err end
    local good, raw = pcall(proto.transport, wire, {
      timeout = conf.timeout, progress_timeout = conf.progress_timeout, max_retries = conf.max_retries,
      on_delta = ctx.on_delta, session = ctx.session, beat = ctx.beat,
    })
    if not good then return nil, proto.failure(raw) end
    local result, failure = self.parse(raw, wire)
    if not result then return nil, failure end
    local verdict = self.classify(result)
    return {
      status = verdict.status, content = result.content, usage = result.usage, model = result.model,
      stop_reason = result.stop_reason, finish_reason = result.finish_reason, refusal = verdict.refusal,
    }
  end, { max_tokens = conf.max_tokens })
end

-- A port of somebody else's may change the request that it is given.
function Port.keeps(llm) return llm end

local openai = require("llm_proto.openai")

M.openai = M.LLMPort.new({
  keeps = trusted.add,
  build = openai.build,
  parse = openai.parse,
  classify = function(result)
    if result.refusal then return { status = "refused", refusal = { kind = "model", detail = result.refusal } } end
    if result.finish_reason == "content_filter" then return { status = "refused", refusal = { kind = "content_filter" } } end
    return { status = "ok" }
  end,
})

function M.port(conf)
  local kind = proto.target(conf).kind
  local port = M[kind]
  if kind ~= "openai" or not port then
    error("knl_adapter: port: unsupported: no port for providers of kind '" .. tostring(kind) .. "' in this build", 2)
  end
  return port
end

local ToolPort = {}
ToolPort.__index = ToolPort

function M.ToolPort.new(spec)
  for _, name in ipairs({ "declare", "invoke" }) do
    if type(spec) ~= "table" or type(spec[name]) ~= "function" then
      error("knl_adapter: new: validation: " .. name .. " is required", 2)
    end
  end
  return setmetatable({ declare = spec.declare, invoke = spec.invoke }, ToolPort)
end

function M.ToolPort.lua(spec)
  if type(spec) ~= "table" then error("knl_adapter: lua: validation: takes a table", 2) end
  if spec.schema ~= nil then error("knl_adapter: lua: validation: the field is input_schema, not schema", 2) end
  return M.ToolPort.new({ declare = function() return spec end, invoke = function(_, input) return spec.handler(input) end })
end

function M.tool(port)
  local spec, out = port:declare(), {}
  for key, value in pairs(spec) do
    if key ~= "name" then out[key] = value end
  end
  out.handler = function(input) return port:invoke(input) end
  return out, spec.name
end

function M.tools(list)
  local map = {}
  for i, entry in ipairs(list) do
    local tool, name
    if getmetatable(entry) == ToolPort then
      tool, name = M.tool(entry)
    elseif type(entry) == "table" then
      name, tool = entry.name, {}
      for key, value in pairs(entry) do
        if key ~= "name" then tool[key] = value end
      end
    end
    if type(name) ~= "string" then error("knl_adapter: tools: validation: entry " .. i .. " has no name", 2) end
    if map[name] then error("knl_adapter: tools: validation: duplicate tool name '" .. name .. "'", 2) end
    map[name] = tool
  end
  return map
end

return M
