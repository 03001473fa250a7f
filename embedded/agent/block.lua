-- agent.block: what `ashlar run -a` runs, the agent on _PROMPT, with the registered tools.
-- _AGENT_PROFILE = {max_iterations?, provider?, model?, base_url?} comes from the flags.

local agent = require("agent")

local profile = _AGENT_PROFILE or {}
local prompt = _PROMPT
if _CONTEXT and _CONTEXT ~= "" then prompt = _CONTEXT .. "\n\n" .. (prompt or "") end

local result = agent.run({
  prompt = prompt, max_iterations = profile.max_iterations,
  provider = profile.provider, model = profile.model, base_url = profile.base_url,
})
if not result.ok and result.error_kind ~= "limit" then error(result.error, 0) end
return result.content
