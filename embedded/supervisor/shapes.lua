-- supervisor.shapes: the shapes of what crosses supervisor, as lshape schemas.
--
--   shapes.child_opts, parallel_opts, merge_opts, entry, slot
--   shapes.api      export -> {args, returns}: what dev mode holds the exports to

local t = require("lshape.t")
local knl = require("knl.shapes")

local M = {}

M.budget = t.map_of(t.string, t.any):describe("{amount, tag?, desc?}, or amounts by tag")
M.child_opts = t.shape({
  budget = M.budget:is_optional(), -- the export's own check says that it is required
  owner = t.string:is_optional(), meta = t.table:is_optional(),
})
M.entry = t.tuple({ M.child_opts, knl.callable })
M.parallel_opts = t.shape({ joiner = t.string:is_optional(), timeout_ms = t.number:is_optional() })
M.merge_opts = t.shape({ limit = t.number:is_optional(), timeout_ms = t.number:is_optional() })
M.slot = t.any_of({
  t.shape({ ok = t.literal(true), values = t.shape({ n = t.integer }, { open = true }) }),
  t.shape({ ok = t.literal(false), err = knl.error, cancelled = t.literal(true):is_optional() }),
})

M.api = {
  child = { args = { t.any, M.child_opts, knl.callable } },
  parallel = { args = { t.any, t.table, M.parallel_opts:is_optional() }, returns = { t.array_of(M.slot) } },
  merge = { args = { t.table, M.merge_opts:is_optional() }, returns = { t.fn } },
}

return M
