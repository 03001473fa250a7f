-- llm_proto: neutral requests and results to and from the wires of providers.
--
--   llm_proto.adapter(kind) -> {build(request, conf), parse(raw, wire)}   kind: "openai" | "anthropic"
--   llm_proto.transport(wire, opts) -> raw       sends what build made; raises where nothing came back
--   llm_proto.backend(conf) -> result | nil, err a whole call without a session
--   llm_proto.failure(raised) -> call_error      what transport raised
--   llm_proto.count(value) -> tokens             an estimate: bytes / 3.2
--   llm_proto.profile(conf) -> {context_window?, max_output?, discovered}
--   llm_proto.probe(conf), health(conf) -> {alive, kind, status?, message?}   ping(conf) -> boolean
--   llm_proto.ask(conf)                          the part of conf that says where a call goes
--   llm_proto.target(conf) -> {provider, kind, model, base_url, dialect}
--
-- A neutral request has messages, system?, tools?, model?, max_tokens?, temperature?,
-- top_p?, top_k?, stop?, seed?, tool_choice?, parallel_tool_calls?, thinking?,
-- response_format?, betas?, cache_control?, context_management?. Fields of the request win over those of conf. conf adds provider,
-- base_url, api_key, api_key_env, dialect, headers, extra_body, stream, timeout,
-- progress_timeout, max_retries, strict_alternation, text_tool_calls.

local M = { VERSION = 1 }

local BYTES_PER_TOKEN = 3.2

local adapters = {
  openai = function() return require("llm_proto.openai") end,
  anthropic = function() return require("llm_proto.anthropic") end,
}

function M.adapter(kind)
  local load = adapters[kind]
  if not load then
    error("llm_proto: adapter: unsupported: no wire '" .. tostring(kind) .. "' in this build; there are: openai, anthropic", 2)
  end
  return load()
end

function M.count(value)
  local text = type(value) == "string" and value or std.json.encode(value)
  return math.ceil(#text / BYTES_PER_TOKEN)
end

-- ask is what of conf says where a call goes.
function M.ask(conf)
  return {
    provider = conf.provider, model = conf.model, base_url = conf.base_url,
    api_key = conf.api_key, api_key_env = conf.api_key_env, dialect = conf.dialect,
  }
end

function M.target(conf) return llm.resolve(M.ask(conf)) end

function M.profile(conf) return llm.window(M.ask(conf)) end

function M.probe(conf) return llm.probe(M.ask(conf)) end

function M.ping(conf) return M.probe(conf).kind == "ok" end

M.health = M.probe

-- A wire says where it goes in the words of conf, not in those of the target: a server
-- that conf names by its URL alone must not become a provider's, which has a key.
function M.transport(wire, opts)
  opts = opts or {}
  return llm.send(wire.body, {
    provider = wire.provider, model = wire.model, base_url = wire.base_url, path = wire.path, headers = wire.headers,
    api_key = wire.api_key, api_key_env = wire.api_key_env,
    timeout = opts.timeout, progress_timeout = opts.progress_timeout, max_retries = opts.max_retries,
    on_delta = opts.on_delta, session = opts.session, beat = opts.beat, defaults = opts.defaults,
  })
end

-- failure gives what transport raised as a call error.
local FAILURES = { validation = "invalid_request", unsupported = "invalid_request", permission = "auth", refused = "quota", limit = "server" }

function M.failure(raised)
  local e = knl.error(raised)
  -- What has no kind was raised by the script itself: in on_delta, in a hook.
  local kind = e.kind == nil and "unknown" or FAILURES[e.kind] or "transport"
  return { kind = kind, retryable = kind == "transport", message = e.message }
end

function M.backend(conf)
  local target = M.target(conf)
  local adapter = M.adapter(target.kind)
  local wire, err = adapter.build(conf, conf, target)
  if not wire then return nil, err end
  if conf.on_request then conf.on_request(wire) end
  local started = std.time.millis()
  local good, raw = pcall(M.transport, wire, conf)
  if not good then return nil, M.failure(raw) end
  if conf.on_response then conf.on_response(raw) end
  local result, failure = adapter.parse(raw, wire)
  if not result then return nil, failure end
  if conf.on_decoded then conf.on_decoded(result) end
  result.latency_ms = std.time.millis() - started
  return result
end

return M
