-- policy.room: one division of a model's context window, for every policy that measures.
--
--   room{port, conf, reserve?, result_share = 0.25, beat_share = 0.5, call_reserve?} -> room
--   room.is(v)
--   room.split{window, max_output?, reserve?, result_share?, beat_share?} -> the numbers alone
--     {window, max_output, limit, held, result_limit, beat_budget}, all in tokens
--
-- port:profile(conf) -> {context_window, max_output} and port:count(request, conf) are asked
-- where the port has them; else conf.context_window and conf.max_tokens hold, and
-- knl.estimate counts. Of a room:
--   limit         what a request may take: the window less the reply and reserve
--   held          what is kept for the reply and beside it
--   result_limit  of one tool result; beat_budget of all results of one beat
--   room:split()                  the numbers, as a new table
--   room:count(request)           tokens of a request; room:count_text(text)
--   room:reply(request)           tokens that are left for the reply to it
--   room:thinking_stop(request?)  where reasoning must stop for the call to fit; nil without
--                                 call_reserve
--   room:limits_for_tools()       {tokens, bytes, beat_tokens, beat_bytes}

local estimate = require("knl.estimate")
local options = require("policy.options")

local BYTES_PER_TOKEN = 3.2

local KNOWN = { port = true, conf = true, reserve = true, result_share = true, beat_share = true, call_reserve = true }
local SPLIT = { window = true, max_output = true, reserve = true, result_share = true, beat_share = true }

local function share(who, name, value)
  options.number(who, name, value, 0)
  if value <= 0 or value > 1 then options.fail(who, name .. " must be more than 0 and at most 1, got " .. value) end
  return value
end

local function split(given)
  options("split", given, SPLIT)
  local window = options.number("split", "window", given.window, 1, true)
  local reserve = options.number("split", "reserve", given.reserve or 0, 0, true)
  if given.max_output ~= nil then options.number("split", "max_output", given.max_output, 1, true) end
  if not given.max_output and reserve == 0 then
    options.fail("room", "no room for the reply is known: name max_tokens in conf, or reserve")
  end
  local held = (given.max_output or 0) + reserve
  local limit = window - held
  if limit < 1 then
    options.fail("room", ("a window of %d tokens less %d for the reply and %d in reserve leaves none for the request"):format(window, held - reserve, reserve))
  end
  return {
    window = window, max_output = given.max_output, limit = limit, held = held,
    result_limit = math.max(math.floor(limit * share("room", "result_share", given.result_share or 0.25)), 1),
    beat_budget = math.max(math.floor(limit * share("room", "beat_share", given.beat_share or 0.5)), 1),
  }
end

local methods = {}

-- The key under which a room gives its fields to this module.
local FIELDS = {}

local function profile_of(port, conf)
  local profile = type(port.profile) == "function" and port:profile(conf) or {}
  return {
    window = profile.context_window or conf.context_window,
    max_output = conf.max_tokens or profile.max_output,
  }
end

local function new(given)
  options("room", given, KNOWN)
  if type(given.port) ~= "table" then options.fail("room", "port is required: knl_adapter.port(conf) gives one") end
  local conf = given.conf or {}
  if type(conf) ~= "table" then options.fail("room", "conf must be a table, got a " .. type(conf)) end
  local profile = profile_of(given.port, conf)
  if profile.window == nil then
    options.fail("room", "the context window is not known: name context_window in conf, or in config.toml for the model")
  end
  local fields = split({
    window = profile.window, max_output = profile.max_output, reserve = given.reserve,
    result_share = given.result_share, beat_share = given.beat_share,
  })
  if given.call_reserve ~= nil then
    fields.call_reserve = options.number("room", "call_reserve", given.call_reserve, 1, true)
    if fields.max_output and fields.call_reserve >= fields.max_output then
      options.fail("room", ("call_reserve (%d) leaves no room for reasoning in a reply of %d tokens"):format(given.call_reserve, fields.max_output))
    end
  end
  fields.port, fields.conf, fields.counts = given.port, conf, type(given.port.count) == "function"
  return setmetatable({}, {
    __index = function(_, key)
      if key == FIELDS then return fields end
      if key == "port" or key == "conf" then return nil end
      if fields[key] ~= nil then return fields[key] end
      return methods[key]
    end,
    __newindex = function(_, key) error("policy: room: validation: a room is frozen: '" .. tostring(key) .. "' cannot be set", 2) end,
    __metatable = "policy.room",
  })
end

local function is(v) return type(v) == "table" and getmetatable(v) == "policy.room" and v[FIELDS] ~= nil end

function methods.split(self)
  local out = {}
  for _, key in ipairs({ "window", "max_output", "limit", "held", "result_limit", "beat_budget" }) do out[key] = self[key] end
  return out
end

function methods.count(self, request)
  local fields = self[FIELDS]
  if fields.counts then
    local n = fields.port:count(request, fields.conf)
    if type(n) == "number" then return math.ceil(n) end
  end
  return estimate.request(request)
end

function methods.count_text(self, text)
  if type(text) == "string" and not self.counts then return estimate.text(text) end
  if type(text) ~= "string" then text = text == nil and "" or std.json.encode(text) end
  if text == "" then return 0 end
  return self:count({ messages = { { role = "user", content = text } } })
end

function methods.reply(self, request)
  local left = math.max(self.window - self:count(request), 0)
  return self.max_output and math.min(self.max_output, left) or left
end

function methods.thinking_stop(self, request)
  if not self.call_reserve then return nil end
  local reply = request and self:reply(request) or self.max_output or self.held
  return math.max(reply - self.call_reserve, 0)
end

function methods.limits_for_tools(self)
  return {
    tokens = self.result_limit, bytes = math.floor(self.result_limit * BYTES_PER_TOKEN),
    beat_tokens = self.beat_budget, beat_bytes = math.floor(self.beat_budget * BYTES_PER_TOKEN),
  }
end

-- of gives the room of options that name one, or a port to make one of.
local function of(who, given)
  if given.room ~= nil then
    if not is(given.room) then options.fail(who, "room must be what policy.room makes") end
    return given.room
  end
  if given.port ~= nil then return new({ port = given.port, conf = given.conf }) end
  options.fail(who, "room is required (policy.room{port, conf})")
end

return { new = new, is = is, split = split, of = of }
