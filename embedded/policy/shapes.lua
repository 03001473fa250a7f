-- policy.shapes: what the pack answers, as lshape's schemas.
--
--   stop_reason due skipped            words
--   result_too_large beat_budget repeated argument_missing     instead of a tool's result
--   split verdict checkpoint ledger    tables
--   summary compact_started compact_skipped                    data of events
--   api                                what each export gives

local t = require("lshape.t")

local M = {}

M.stop_reason = t.one_of({ "repeated", "no_progress", "context" })
M.due = t.one_of({ "dropped", "share" })
M.skipped = t.one_of({ "context", "empty", "truncated", "not_smaller", "refused", "call", "budget", "failed" })

local function refusal(reason, fields)
  fields.ok, fields.reason = t.literal(false), t.literal(reason)
  return t.shape(fields)
end

M.result_too_large = refusal("result_too_large", { tokens = t.number, limit = t.number })
M.beat_budget = refusal("beat_budget", { tokens = t.number, used = t.number, limit = t.number })
M.repeated = refusal("repeated", { times = t.integer, max = t.integer })
M.argument_missing = refusal("argument_missing", { missing = t.array_of(t.string) })

M.split = t.shape({
  window = t.integer, max_output = t.integer:is_optional(), limit = t.integer, held = t.integer,
  result_limit = t.integer, beat_budget = t.integer,
})
M.verdict = t.shape({
  ok = t.boolean, checked = t.boolean, ran = t.boolean:is_optional(), changed = t.boolean:is_optional(),
  result = t.table:is_optional(), reason = t.literal("unchanged"):is_optional(),
})
M.checkpoint = t.shape({
  seq = t.integer, beat = t.any:is_optional(), label = t.string:is_optional(), files = t.map_of(t.string, t.string),
  versions = t.map_of(t.string, t.string):is_optional(), missing = t.array_of(t.string),
})
M.ledger = t.shape({
  tools = t.map_of(t.string, t.shape({ ok = t.integer, failed = t.integer })), files = t.array_of(t.string),
  checks = t.map_of(t.string, t.table),
})

M.summary = t.shape({ content = t.string, ledger = M.ledger:is_optional() })
M.compact_started = t.shape({ why = M.due })
M.compact_skipped = t.shape({ why = M.skipped })

local value, list = { returns = { t.any } }, { returns = { t.table } }

M.api = {
  room = value, is_room = { returns = { t.boolean } }, split = { returns = { M.split } }, window = value, tokens = { returns = { t.fn } },
  result_cap = { returns = { t.fn } }, beat_cap = { returns = { t.fn } }, repeat_cap = { returns = { t.fn } },
  require_args = { returns = { t.fn } }, carry = { returns = { t.fn } }, thinking_cap = { returns = { t.fn } },
  room_note = { returns = { t.fn } }, stagnation = { returns = { t.fn } }, retry = { returns = { t.fn } },
  escalate = { returns = { t.fn } }, verdict = { returns = { t.fn } }, compact = value, ledger = { returns = { t.fn } },
  checkpoints = list, checkpoint_at = { returns = { M.checkpoint:is_optional() } }, lineage = list,
}

return M
