-- policy: values for the seams of a device, and what a caller's loop asks. A pack: wrap it
-- through embedded.policy rather than shadow it.
--
--   a room     room is_room split
--   folds      window
--   costs      tokens
--   tools      result_cap beat_cap repeat_cap require_args
--   filters    carry thinking_cap room_note
--   loops      stagnation retry escalate verdict compact ledger
--   reading    checkpoints checkpoint_at lineage
--   shapes     what they answer, as lshape's schemas (policy.shapes); LSHAPE_CHECK=1 holds
--              the exports to them
--
-- Each factory takes configuration alone and refuses by name what it does not know, and what
-- is state (session, store, owner, budget): a session is passed to what the factory returns.
-- A policy reads the log and keeps nothing, so that a resumed session has its counts; only
-- verdict and compact append. The contracts are at the top of policy.<file>.

local filters = require("policy.filters")
local loops = require("policy.loops")
local options = require("policy.options")
local reading = require("policy.reading")
local rooms = require("policy.room")
local tools = require("policy.tools")

local M = {
  room = rooms.new, is_room = rooms.is, split = rooms.split,
  window = require("policy.window").new,
  result_cap = tools.result_cap, beat_cap = tools.beat_cap, repeat_cap = tools.repeat_cap, require_args = tools.require_args,
  carry = filters.carry, thinking_cap = filters.thinking_cap, room_note = filters.room_note,
  stagnation = loops.stagnation, retry = loops.retry, escalate = loops.escalate,
  verdict = require("policy.verdict"), compact = require("policy.compact"), ledger = require("policy.ledger"),
  checkpoints = reading.checkpoints, checkpoint_at = reading.checkpoint_at, lineage = reading.lineage,
}

-- tokens{room} -> cost: a request in tokens, for a grant tagged tokens.
function M.tokens(given)
  options("tokens", given, { room = true, port = true, conf = true })
  local room = rooms.of("tokens", given or {})
  return function(request) return math.max(room:count(request), 1) end
end

return require("lshape.gate").publish(M, "policy", function() return require("policy.shapes") end)
