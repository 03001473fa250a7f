-- knl.shapes: the shapes of what crosses knl, as lshape schemas.
--
--   shapes.<name>           one schema: outcome, request, llm_result, device_config, …
--   shapes.events           kind -> the data of an event of that kind
--   shapes.views            view -> one of its rows
--   shapes.call_error_kinds, shapes.call_error_retryable, shapes.error_kinds    lists and a map
--   shapes.session, shapes.module, shapes.rust      the declarations of the native half (knl_types)
--   shapes.api              export -> {args, returns}: what dev mode holds the exports to
--
-- Every export of knl has an entry in api and every entry an export. A session's handle is no
-- table: its schema says so in words, and the native half checks it on every call.

local t = require("lshape.t")
local types = require("knl_types")

local M = {}

local function optional(schema) return schema:is_optional() end

M.callable = t.any_of({ t.fn, t.table }):describe("a function, or a table that can be called")
M.session_handle = t.any:describe("a session's handle")
M.schema = t.shape({ kind = t.string }, { open = true }):describe("an lshape schema")

-- Errors.
local ERROR_KINDS = { "busy", "storage", "corruption", "closed", "validation", "unsupported", "timeout", "refused" }
M.error_kinds = ERROR_KINDS
M.error = t.shape({
  kind = optional(t.string), namespace = optional(t.string), method = optional(t.string),
  retryable = t.boolean, message = t.string,
}, { open = true })

M.call_error_retryable = {
  transport = true, rate_limited = true, overloaded = true, server = true, auth = false, invalid_request = false,
  unknown = false, quota = false, context_length = false, truncated = false,
}
M.call_error_kinds = {}
for kind in pairs(M.call_error_retryable) do M.call_error_kinds[#M.call_error_kinds + 1] = kind end
table.sort(M.call_error_kinds)
M.call_error = t.shape({
  kind = t.one_of(M.call_error_kinds), retryable = t.boolean, retry_after = optional(t.number),
  message = t.string, status = optional(t.integer),
}, { open = true })

-- What a model is asked and answers.
local blocks = t.array_of(t.shape({ type = t.string }, { open = true }))
M.tool_use_block = t.shape({ type = t.literal("tool_use"), id = t.string, name = t.string, input = optional(t.any) }, { open = true })
M.request = t.shape({
  messages = t.array_of(t.shape({ role = t.string, content = t.any }, { open = true })),
  system = optional(t.any), tools = optional(t.array_of(t.table)), model = optional(t.string), max_tokens = optional(t.integer:min(1)),
}, { open = true })
M.llm_usage = t.shape({
  input_tokens = t.integer:min(0), output_tokens = t.integer:min(0), thinking_tokens = optional(t.integer:min(0)),
  cache_read_input_tokens = optional(t.integer:min(0)), cache_creation_input_tokens = optional(t.integer:min(0)),
}, { open = true })
M.llm_result = t.shape({
  status = t.one_of({ "ok", "refused" }), content = blocks, usage = M.llm_usage,
  stop_reason = optional(t.string), finish_reason = optional(t.string),
  refusal = optional(t.shape({ kind = t.one_of({ "model", "content_filter" }), detail = optional(t.any) })),
}, { open = true })
M.window_report = t.shape({
  dropped = optional(t.any), kept = optional(t.any), seed_kept = optional(t.boolean), before = optional(t.number),
  after = optional(t.number), limit = optional(t.number), reserve = optional(t.number),
}, { open = true })

-- What a beat runs against.
M.tool_spec = t.shape({
  description = optional(t.string), input_schema = optional(t.table), handler = optional(M.callable), group = optional(t.string),
  read_only = optional(t.boolean), idempotent = optional(t.boolean), repeatable = optional(t.boolean), timeout = optional(t.number),
  capabilities = optional(t.array_of(t.string)), registered = optional(t.boolean),
})
M.tool_entry = t.shape({ call_id = t.string, name = t.string, ok = t.boolean })
M.tool_policy_decision = t.one_of({ "run", "deny" }):is_optional()
M.cost_result = t.integer:min(1)
M.device_config = t.shape({
  llm = optional(M.callable), tools = optional(t.map_of(t.string, M.tool_spec)), tool_policy = optional(M.callable),
  fold = optional(M.callable), filters = optional(t.array_of(M.callable)), system = optional(t.any), model = optional(t.string),
  cost = optional(M.callable), on_delta = optional(M.callable),
}, { open = true })
M.outcome = t.discriminated("status", {
  ok = t.shape({ status = t.literal("ok"), out = t.shape({ beat = t.string, content = blocks, tools = t.array_of(M.tool_entry) }, { open = true }) }),
  refused = t.shape({ status = t.literal("refused"), reason = t.one_of({ "model", "content_filter" }), detail = t.any }),
  error = t.shape({ status = t.literal("error"), kind = t.one_of({ "conf", "filter", "call", "state" }), detail = t.any }),
  stopped = t.shape({ status = t.literal("stopped"), reason = t.string, tag = optional(t.string), bound = optional(t.string) }),
})

-- The log.
M.event_meta = t.map_of(t.string, t.any_of({ t.string, t.number, t.boolean }))
M.event_base = t.shape({ kind = t.string, meta = optional(M.event_meta), data = optional(t.table) }, { open = true })
local content = t.any_of({ t.string, t.array_of(t.any) })
M.events = {
  msg_user = t.shape({ content = content }, { open = true }),
  llm_request = t.shape({ request = t.table, window = optional(M.window_report) }, { open = true }),
  llm_response = t.shape({ content = t.array_of(t.any), usage = t.table, stop_reason = optional(t.string), finish_reason = optional(t.string) }, { open = true }),
  llm_call_failed = t.shape({
    error = t.string, kind = t.one_of(M.call_error_kinds), retryable = t.boolean, retry_after = optional(t.number), status = optional(t.integer),
  }, { open = true }),
  tool_call = t.shape({ call_id = t.string, name = t.string, args = optional(t.any) }, { open = true }),
  tool_result = t.shape({ call_id = t.string, ok = t.boolean, result = optional(t.any) }, { open = true }),
}
M.views = {
  usage = t.shape({ stream = t.string, calls = t.integer, input_tokens = t.integer, output_tokens = t.integer, thinking_tokens = t.integer }, { open = true }),
  ledger = t.shape({ seq = t.integer, kind = t.string, amount = optional(t.integer), tag = optional(t.string) }, { open = true }),
  beats = t.shape({
    beat = t.any_of({ t.string, t.number }), seq_from = t.integer, seq_to = t.integer, kinds = t.string,
    dropped = optional(t.integer), before = optional(t.number), after = optional(t.number),
  }),
  tool_pairs = t.shape({ beat = optional(t.any_of({ t.string, t.number })), call_id = t.string, name = optional(t.string), ok = optional(t.integer) }),
  sessions = t.shape({
    session = t.string, meta = t.string, parent = optional(t.string), opened_epoch_ms = t.integer, closed_epoch_ms = optional(t.integer),
  }),
  tree = t.shape({
    session = t.string, parent = t.string, opened_epoch_ms = t.integer, closed_epoch_ms = optional(t.integer), open_children = optional(t.string),
  }),
}

-- Opening a session.
M.budget_grant = t.shape({ amount = t.integer:min(0), tag = optional(t.string), desc = optional(t.string) })
local by_tag = t.map_of(t.string, t.number)
M.budget_allocation = t.shape({ from_parent = t.any_of({ t.integer:min(0), by_tag }), tag = optional(t.string), desc = optional(t.string) })
M.open_opts = types.OpenOpts
M.resume_opts = types.ResumeOpts
M.query_opts = t.shape({ sessions = optional(t.array_of(t.string)), timeout_ms = optional(t.integer:min(1)), limit = optional(t.integer:min(1)) })
M.export_opts = t.shape({ as = optional(t.one_of({ "events", "messages" })), sessions = optional(t.array_of(t.string)) })

M.session, M.module, M.rust = types.session, types.module, types

local nothing = {}
M.api = {
  Outcome = nothing, views = nothing, fold = { args = { t.table, t.table }, returns = { M.request, optional(M.window_report) } },
  open = { args = { optional(M.open_opts) }, returns = { M.session_handle } },
  resume = { args = { M.resume_opts }, returns = { M.session_handle } },
  session = { args = { t.table, M.callable } },
  device = { args = { M.device_config }, returns = { t.table } },
  beat = { args = { t.any, t.any }, returns = { M.outcome } },
  export = { args = { M.session_handle, optional(M.export_opts) }, returns = { t.array_of(t.table) } },
  new_beat_id = { returns = { t.string } },
  error = { returns = { M.error } },
  api = { returns = { t.table } },
  is_session = { returns = { t.boolean } },
  page = { args = { t.string, optional(t.integer) }, returns = { t.array_of(t.table), t.boolean } },
}

return M
