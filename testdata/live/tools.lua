-- live/tools: two agents with tools on a real llama.cpp server, in the dialect of its
-- Chat Completions and over its Messages endpoint. Run by testdata/live/run.sh, which
-- names model and server; it raises where anything is not as it must be.

local agent = require("agent")
local adapter = require("knl_adapter")

local function tool(name, property, result)
  return {
    name = name, description = "Use it when asked to use " .. name .. ".", read_only = true,
    input_schema = { type = "object", properties = { [property] = { type = "string" } }, required = { property } },
    handler = function() return result end,
  }
end

local ASKS = {
  { tool = tool("get_weather", "city", "21 degrees, sunny"), prompt = "Use get_weather: what is the weather in Paris?", holds = "21" },
  { tool = tool("add", "terms", "42"), prompt = "Use add to compute 17 + 25.", holds = "42" },
}

local server = assert(std.env.get("LIVE_SERVER"), "LIVE_SERVER names the server")

local target = llm.resolve({})
if target.dialect ~= "llamacpp" then error("the dialect is " .. target.dialect, 0) end
local profile = adapter.port({}):profile({})
if profile.context_window ~= 4096 or not profile.discovered then
  error("the server's window is " .. tostring(profile.context_window), 0)
end

local WIRES = {
  { name = "chat completions", opts = {} },
  { name = "messages", opts = { provider = "anthropic", base_url = server, model = "smollm2-135m", cache_control = false, context_management = false } },
}

for _, wire in ipairs(WIRES) do
  for _, ask in ipairs(ASKS) do
    local opts = { prompt = ask.prompt, max_iterations = 4, max_tokens = 120, temperature = 0, extra_tools = { ask.tool } }
    for key, value in pairs(wire.opts) do opts[key] = value end
    local result = agent.run(opts)
    if not result.ok then error(wire.name .. ": " .. tostring(result.error), 0) end
    local called = false
    for _, message in ipairs(result.messages) do
      for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
        called = called or block.type == "tool_use" and block.name == ask.tool.name
      end
    end
    if not called then error(wire.name .. ": " .. ask.tool.name .. " was not called", 0) end
    if not result.content:find(ask.holds, 1, true) then error(wire.name .. ": the answer is " .. result.content, 0) end
    if result.usage.input_tokens == 0 or result.usage.output_tokens == 0 then error(wire.name .. ": no usage", 0) end
    log.info(wire.name .. ": " .. ask.tool.name .. " gave " .. result.content:gsub("%s+", " "))
  end
end
return "two tools, two wires"
