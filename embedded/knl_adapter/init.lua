-- knl_adapter: providers as ports, and tools as device tools. Sealed.
--
--   LLMPort.new{build, parse, classify} -> port
--     build(request, conf, target) -> wire | nil, call_error
--     parse(raw, wire)             -> neutral result | nil, call_error
--     classify(result)             -> {status = "ok"} | {status = "refused", refusal = {kind, detail?}}
--     and, where the port knows better than what is here: discover(conf), tokenize(request,
--     conf), health(conf), default_max_output; or profile, probe, count themselves
--   port:open(conf) -> llm(request, ctx)      for a device
--   port:profile(conf) -> {context_window?, max_output?, discovered?}
--     conf's context_window and max_output, else config.toml, else asked of the server
--   port:probe(conf) -> {alive, kind, status?, message?}
--   port:count(request, conf) -> tokens       by the server's tokenizer, else bytes / 3.2
--   adapter.openai  adapter.anthropic         the ports of Chat Completions and of Messages
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
  local found -- where calls of this conf go: found at the first, kept for the rest
  local function target()
    found = found or (self.target and self.target(conf) or proto.target(conf))
    return found
  end
  return self.keeps(function(request, ctx)
    ctx = ctx or {}
    local wire, err = self.build(request, conf, target(), ctx.kept)
    if not wire then return nil, err end
    local good, raw = pcall(proto.transport, wire, {
      timeout = conf.timeout, progress_timeout = conf.progress_timeout, max_retries = conf.max_retries,
      on_delta = ctx.on_delta, session = ctx.session, beat = ctx.beat, defaults = wire.defaults,
    })
    if not good then return nil, proto.failure(raw) end
    local result, failure = self.parse(raw, wire)
    if not result then return nil, failure end
    local verdict = self.classify(result)
    return {
      status = verdict.status, content = result.content, usage = result.usage, model = result.model,
      stop_reason = result.stop_reason, finish_reason = result.finish_reason, refusal = verdict.refusal,
    }
  end, { max_tokens = conf.max_tokens, default = self.default_max_output, target = target,
    profile = function() return self:profile(conf) end })
end

-- facts asks what a model takes: the spec's own discover, else config.toml or the server.
local function facts(self, conf)
  if conf.context_window then return { context_window = conf.context_window } end
  if self.discover then return self.discover(conf) or {} end
  local good, found = pcall(proto.profile, conf)
  return good and found or {}
end

function Port:profile(conf)
  conf = conf or {}
  local found = facts(self, conf)
  return {
    context_window = found.context_window, discovered = found.discovered,
    max_output = conf.max_output or found.max_output or self.default_max_output,
  }
end

function Port:probe(conf)
  if self.health then return self.health(conf or {}) end
  return proto.probe(conf or {})
end

-- count: the body is what would be sent, so that the server's own rules hold.
function Port:count(request, conf)
  conf = conf or {}
  if self.tokenize then return self.tokenize(request, conf) end
  local target = self.target and self.target(conf) or proto.target(conf)
  local wire, err = self.build(request, conf, target)
  if not wire then return nil, err end
  local good, tokens = pcall(llm.count, wire.body, proto.ask(conf))
  if good and tokens then return tokens end
  return proto.count({ wire.body.messages, wire.body.tools, wire.body.system })
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

local anthropic = require("llm_proto.anthropic")

M.anthropic = M.LLMPort.new({
  keeps = trusted.add,
  build = anthropic.build,
  parse = anthropic.parse,
  default_max_output = anthropic.DEFAULT_MAX_TOKENS,
  classify = function(result)
    if result.refusal then return { status = "refused", refusal = result.refusal } end
    return { status = "ok" }
  end,
})

local PORTS = { openai = true, anthropic = true }

function M.port(conf)
  local kind = proto.target(conf).kind
  local port = M[kind]
  if not PORTS[kind] or not port then
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
