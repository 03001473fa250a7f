-- knl.tools: the tool half of a beat.
--
--   tools.run(native, session, device, beat, out) -> list | nil, outcome
--
-- First every decision about every call, then the calls. A decision that is no
-- decision ends the beat before any call is recorded. A call goes through the bus
-- (native.dispatch), which records the intent, runs the handler and records what
-- came of it; Lua never runs a handler by itself.
--
-- When every tool among the calls is read-only they run concurrently; results keep
-- the model's order. When the quota covers no further call, that call and the rest
-- are answered "not run: budget", and the list says so in its field `stopped`.

local Outcome = require("knl.outcome")

local tools = {}

local function decide(device, block, out)
  local policy = device.tool_policy
  if not policy then return "run" end
  local good, decision, reason = pcall(policy, block, out)
  if not good then return "deny", "policy raised: " .. tostring(decision) end
  if decision == nil or decision == "run" then return "run" end
  if decision == "deny" then return "deny", reason end
  return nil, "tool_policy answered " .. tostring(decision) .. "; it answers nil, \"run\" or \"deny\""
end

local function plan(device, out)
  local calls, offered = {}, device.tools
  for _, block in ipairs(out.content) do
    if type(block) == "table" and block.type == "tool_use" then
      local decision, reason = decide(device, block, out)
      if not decision then return nil, Outcome.err("conf", reason) end
      calls[#calls + 1] = { block = block, decision = decision, reason = reason, tool = offered[block.name] }
    end
  end
  return calls
end

-- refusal gives why a call is not run, and the kind of that; nil where it is run.
local function refusal(call, out)
  local name = call.block.name
  if call.decision == "deny" then
    local text = "tool '" .. name .. "' denied by policy"
    if call.reason ~= nil then text = text .. ": " .. tostring(call.reason) end
    return text, "denied"
  end
  if call.block.input_error and out.stop_reason == "max_tokens" then
    return "the reply was cut at its token limit inside the arguments of '" .. name
      .. "'; nothing was run. Write less in one reply, or do it in several smaller calls", "validation"
  end
  if call.block.input_error then
    return "the arguments of '" .. name .. "' cannot be used: " .. tostring(call.block.input_error)
      .. "; nothing was run, send the call again with valid arguments", "validation"
  end
  if not call.tool then return "tool '" .. name .. "' not found", "not_found" end
end

local function dispatch(native, session, beat, call, out, turn)
  local block, tool = call.block, call.tool
  local spec = { beat = beat, call_id = block.id, name = block.name, args = block.input, turn = turn }
  spec.refusal, spec.refusal_kind = refusal(call, out)
  if tool and not spec.refusal and not tool.registered then
    local handler = tool.handler
    spec.handler = function(input) return handler(input) end
    spec.contract = {
      description = tool.description, input_schema = tool.input_schema, read_only = tool.read_only,
      idempotent = tool.idempotent, timeout = tool.timeout, capabilities = tool.capabilities,
    }
  end
  return native.dispatch(session, spec)
end

local function all_read_only(calls)
  for _, call in ipairs(calls) do
    if not (call.tool and call.tool.read_only and call.decision == "run") then return false end
  end
  return #calls > 1
end

-- side_by_side runs a function for every call at once. None is left running: the first
-- error is raised when all have ended.
local function side_by_side(calls, run, note)
  local started, failures = {}, {}
  for i, call in ipairs(calls) do
    local good, task = pcall(std.task.spawn, function() return run(i, call) end, { name = call.block.name })
    if not good then
      failures[1] = { raised = task }
      break
    end
    started[i] = task
  end
  for i, task in ipairs(started) do
    local good, result = pcall(task.join, task)
    if good then note(i, result) else failures[#failures + 1] = { raised = result } end
  end
  if failures[1] then error(failures[1].raised, 0) end
end

function tools.run(native, session, device, beat, out)
  local calls, failure = plan(device, out)
  if not calls then return nil, failure end
  local list = std.json.array()
  local function note(i, result)
    list[i] = { call_id = calls[i].block.id, name = calls[i].block.name, ok = result.ok }
    if result.stopped then list.stopped = result.stopped end
  end
  if all_read_only(calls) then
    side_by_side(calls, function(i, call) return dispatch(native, session, beat, call, out, i) end, note)
  else
    for i, call in ipairs(calls) do note(i, dispatch(native, session, beat, call, out)) end
  end
  return list
end

return tools
