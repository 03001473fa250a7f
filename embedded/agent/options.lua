-- agent.options: what is wrong with the options of a run, before anything is opened.
--
--   check(opts) -> message | nil

-- What later parts of this runtime bring; until then an option is refused by name.
local NOT_BUILT = {
  "enable_prompts", "enable_resources", "log_to_stderr", "mcp_servers", "on_log", "on_progress",
  "progress_to_log", "sampling",
}

local TYPES = {
  system = "string", on_turn = "function", on_delta = "function", extra_tools = "table", tool_groups = "table",
  budget = "table", provider = "string", model = "string", base_url = "string", api_key = "string",
  api_key_env = "string", headers = "table", extra_body = "table",
}

-- Every option of the loop and of the ports. What else is given is nobody's, and mostly a typo.
local KNOWN = {}
for name in ([[
  prompt system max_iterations max_tokens_budget extra_tools tool_groups history on_turn on_delta store budget
  compact max_repeats provider model base_url api_key api_key_env dialect headers extra_body stream timeout
  progress_timeout max_retries strict_alternation text_tool_calls max_tokens max_output context_window temperature
  top_p top_k stop seed tool_choice parallel_tool_calls thinking response_format betas cache_control
  context_management context_management_config presence_penalty frequency_penalty user logprobs n metadata
  service_tier prompt_cache_key]]):gmatch("%S+") do KNOWN[name] = true end

local function unknown(opts)
  local names = {}
  for key in pairs(opts) do
    if not KNOWN[key] then names[#names + 1] = tostring(key) end
  end
  table.sort(names)
  for _, name in ipairs(names) do log.warn("agent: run: nothing reads the option '" .. name .. "'; what goes to the provider as it is stands in extra_body") end
end

local COMPACT = { at = true, min_beats = true, reserve = true }

local ROLES = { user = true, assistant = true }

local function callable(v)
  local mt = getmetatable(v)
  return type(v) == "function" or type(mt) == "table" and type(mt.__call) == "function"
end

local function positive(v) return type(v) == "number" and v > 0 and v < math.huge end

local function whole(v) return positive(v) and v == math.floor(v) end

local function history(list)
  for i, message in ipairs(list) do
    local at = "history[" .. i .. "]"
    if type(message) ~= "table" then return at .. " is a " .. type(message) .. ", not a message" end
    if not ROLES[message.role] then return at .. ": role is " .. tostring(message.role) .. ", not user or assistant" end
    if type(message.content) ~= "string" and type(message.content) ~= "table" then
      return at .. ": content is a " .. type(message.content) .. ", not text or a list of blocks"
    end
  end
end

local function compact(opts)
  local given = opts.compact
  if given == nil or given == false then return end
  if given ~= true and type(given) ~= "table" then return "compact must be true or a table, got a " .. type(given) end
  for key, value in pairs(given == true and {} or given) do
    if not COMPACT[key] then return "compact: unknown option '" .. tostring(key) .. "'; it takes at, min_beats, reserve" end
    if not positive(value) then return "compact." .. key .. " must be a positive number" end
  end
  local reserve = type(given) == "table" and given.reserve
  if not opts.context_window or not (opts.max_tokens or reserve) then
    return "compact needs context_window, and max_tokens or compact.reserve"
  end
end

return function(opts)
  if type(opts) ~= "table" then return "agent.run takes a table of options" end
  for _, key in ipairs(NOT_BUILT) do
    if opts[key] ~= nil then return "option '" .. key .. "' is not in this build yet" end
  end
  if type(opts.prompt) ~= "string" or opts.prompt == "" then return "prompt is required" end
  if opts.history ~= nil then
    if type(opts.history) ~= "table" then return "history must be a table (messages array)" end
    local problem = history(opts.history)
    if problem then return problem end
  end
  for key, want in pairs(TYPES) do
    local v = opts[key]
    local good = v == nil or type(v) == want or want == "function" and callable(v)
    if not good then return key .. " must be a " .. want .. ", got a " .. type(v) end
  end
  if opts.max_iterations ~= nil and opts.max_iterations ~= false and not whole(opts.max_iterations) then
    return "max_iterations must be an integer of at least 1, or false"
  end
  if opts.max_tokens ~= nil and not whole(opts.max_tokens) then return "max_tokens must be an integer of at least 1" end
  if opts.context_window ~= nil and not whole(opts.context_window) then return "context_window must be a whole number of tokens, at least 1" end
  if opts.max_repeats ~= nil and opts.max_repeats ~= false and not (whole(opts.max_repeats) and opts.max_repeats >= 2) then
    return "max_repeats must be an integer of at least 2, or false"
  end
  local problem = compact(opts)
  if problem then return problem end
  for _, key in ipairs({ "max_tokens_budget", "timeout", "progress_timeout" }) do
    if opts[key] ~= nil and not positive(opts[key]) then return key .. " must be a positive number" end
  end
  unknown(opts)
end
