-- knl_types: the types of knl's native half, as lshape schemas. Sealed.
-- Written from the declarations that 'ashlar api knl' prints; do not edit it:
-- 'go test . -run KnlTypes -update' writes it anew, and the same test holds it to them.
--
--   types.<Name>                     a type that has a name: SessionId, OpenOpts, Remaining, …
--   types.module.<function>          {doc, args = {{name, schema}, …}, returns = {…}}
--   types.session.<method>           the same
--
-- In LuaCATS it is knl_types.luacats.

local t = require("lshape.t")

local M = {}

M.AppendEvent = t.shape({ kind = t.string, meta = t.table:describe("labels: scalars"):is_optional(), data = t.table:is_optional() }, { open = true })
M.Amount = t.any_of({ t.integer, t.table })
M.ApiReport = t.table
M.BeatId = t.string
M.Count = t.integer
M.ErrorTable = t.shape({ kind = t.string:is_optional(), namespace = t.string:is_optional(), method = t.string:is_optional(), retryable = t.boolean, message = t.string }, { open = true })
M.EventsResult = t.tuple({ t.array_of(t.any), t.boolean })
M.OpenOpts = t.shape({ owner = t.string:is_optional(), budget = t.table:describe("{amount, tag?, desc?}, {from_parent, tag?} of a child (from_parent may be amounts by tag), or amounts by tag; cost is in USD"):is_optional(), store = t.any:is_optional(), meta = t.table:describe("labels of the opening; scalars"):is_optional(), parent = t.any:describe("a handle: session"):is_optional() })
M.Owner = t.string
M.QueryOpts = t.shape({ sessions = t.array_of(t.any):describe("the ids of $sessions; default: this session"):is_optional(), timeout_ms = t.integer:describe("default 5000, at most 60000"):is_optional(), limit = t.integer:describe("rows; default 1000, at most 10000"):is_optional() })
M.Remaining = t.integer:is_optional()
M.ResumeOpts = t.shape({ session = t.string, store = t.any:is_optional(), budget = t.table:describe("{amount, tag?, desc?}, {from_parent, tag?} of a child (from_parent may be amounts by tag), or amounts by tag; cost is in USD"):is_optional() })
M.ScopeId = t.string
M.Seq = t.integer
M.SessionId = t.string
M.ViewName = t.literal("tail")
M.ViewOpts = t.shape({ n = t.integer:is_optional() })

M.module = {
  open = {
    doc = "Opens a session and gives its handle.",
    args = {
      { name = "opts", schema = t.shape({ owner = t.string:is_optional(), budget = t.table:describe("{amount, tag?, desc?}, {from_parent, tag?} of a child (from_parent may be amounts by tag), or amounts by tag; cost is in USD"):is_optional(), store = t.any:is_optional(), meta = t.table:describe("labels of the opening; scalars"):is_optional(), parent = t.any:describe("a handle: session"):is_optional() }):is_optional() },
    },
    returns = {
      { name = "session", schema = t.any:describe("a handle: session") },
    },
  },
  resume = {
    doc = "Takes up a session that has not ended, and gives its handle; budget adds to what is left.",
    args = {
      { name = "opts", schema = t.shape({ session = t.string, store = t.any:is_optional(), budget = t.table:describe("{amount, tag?, desc?}, {from_parent, tag?} of a child (from_parent may be amounts by tag), or amounts by tag; cost is in USD"):is_optional() }) },
    },
    returns = {
      { name = "session", schema = t.any:describe("a handle: session") },
    },
  },
  new_beat_id = {
    doc = "A unique id that sorts by time.",
    args = {},
    returns = {
      { name = "id", schema = t.string },
    },
  },
  error = {
    doc = "Reads what was raised: {kind?, namespace?, method?, retryable, message}.",
    args = {
      { name = "raised", schema = t.any },
    },
    returns = {
      { name = "error", schema = t.shape({ kind = t.string:is_optional(), namespace = t.string:is_optional(), method = t.string:is_optional(), retryable = t.boolean, message = t.string }, { open = true }) },
    },
  },
  is_session = {
    doc = "Whether a value is a session's handle.",
    args = {
      { name = "value", schema = t.any },
    },
    returns = {
      { name = "yes", schema = t.boolean },
    },
  },
  read = {
    doc = "A page of a session without the bodies of its requests: what a fold needs. Part of knl.beat.",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "from", schema = t.integer },
    },
    returns = {
      { name = "events", schema = t.array_of(t.any) },
      { name = "truncated", schema = t.boolean },
    },
  },
  pack = {
    doc = "Encodes a value once, for a request's list of messages; it never changes. Part of knl.beat.",
    args = {
      { name = "value", schema = t.table },
    },
    returns = {
      { name = "packed", schema = t.any:describe("a handle: packed") },
    },
  },
  export = {
    doc = "A whole session, as \"events\" or as \"messages\".",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "as", schema = t.string },
    },
    returns = {
      { name = "records", schema = t.array_of(t.any) },
    },
  },
  beat_begin = {
    doc = "Reserves a beat and records its request in one commit. Part of knl.beat.",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "beat", schema = t.shape({ request = t.table, window = t.table:is_optional(), cost = t.integer:is_optional(), max_tokens = t.integer:describe("the reply's limit where the request names none"):is_optional(), default = t.integer:describe("what the wire asks for where nobody names a limit: no more is reserved"):is_optional(), target = t.fn:describe("target() -> {provider, model}: where the call goes; asked where cost is bounded"):is_optional() }) },
    },
    returns = {
      { name = "begun", schema = t.table },
    },
  },
  beat_end = {
    doc = "Records a reply or a failed call, with the settlement, in one commit. Part of knl.beat.",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "beat", schema = t.shape({ beat = t.string, content = t.array_of(t.any):is_optional(), usage = t.table:is_optional(), stop_reason = t.string:is_optional(), finish_reason = t.string:is_optional(), failed = t.table:is_optional() }) },
    },
    returns = {},
  },
  beat_done = {
    doc = "Tells the event stream how a beat ended. Part of knl.beat.",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "beat", schema = t.string },
      { name = "outcome", schema = t.string },
    },
    returns = {},
  },
  dispatch = {
    doc = "Takes one tool call of a beat through the bus. Part of knl.beat.",
    args = {
      { name = "session", schema = t.any:describe("a handle: session") },
      { name = "call", schema = t.shape({ beat = t.string, call_id = t.string, name = t.string, args = t.table:is_optional(), refusal = t.string:is_optional(), refusal_kind = t.string:describe("denied, not_found or validation; default denied"):is_optional(), handler = t.fn:is_optional(), turn = t.integer:describe("place among calls that run side by side"):is_optional(), contract = t.shape({ description = t.string:describe("what the model reads"):is_optional(), input_schema = t.table:describe("JSON Schema of the arguments"):is_optional(), group = t.string:is_optional(), read_only = t.boolean:describe("changes nothing: may run beside others"):is_optional(), idempotent = t.boolean:describe("running it twice is running it once"):is_optional(), repeatable = t.boolean:describe("asking again and again is how it is used (polling): no loop is seen in it"):is_optional(), timeout = t.number:describe("seconds of one call"):is_optional(), capabilities = t.array_of(t.any):is_optional() }):is_optional() }) },
    },
    returns = {
      { name = "result", schema = t.table },
    },
  },
  page = {
    doc = "A page of a session of this run by its id, one that has ended too, and whether there is more.",
    args = {
      { name = "session", schema = t.string },
      { name = "from", schema = t.integer:is_optional() },
    },
    returns = {
      { name = "events", schema = t.array_of(t.any) },
      { name = "truncated", schema = t.boolean },
    },
  },
  api = {
    doc = "What the kernel offers: {session, module, errors, schema, fields}.",
    args = {},
    returns = {
      { name = "report", schema = t.table },
    },
  },
}

M.session = {
  id = {
    doc = "The session's id.",
    args = {},
    returns = {
      { name = "id", schema = t.string },
    },
  },
  scope_id = {
    doc = "The id of the scope that its budget belongs to.",
    args = {},
    returns = {
      { name = "id", schema = t.string },
    },
  },
  owner = {
    doc = "The principal that it was opened for.",
    args = {},
    returns = {
      { name = "id", schema = t.string },
    },
  },
  append = {
    doc = "Adds one event {kind, meta?, data?} and gives its seq. meta holds scalars; the kernel's own kinds are refused.",
    args = {
      { name = "event", schema = t.shape({ kind = t.string, meta = t.table:describe("labels: scalars"):is_optional(), data = t.table:is_optional() }, { open = true }) },
    },
    returns = {
      { name = "seq", schema = t.integer },
    },
  },
  events = {
    doc = "Events from a seq on, at most 1000, and whether there are more: page by asking from the last seq + 1.",
    args = {
      { name = "from", schema = t.integer:is_optional() },
    },
    returns = {
      { name = "events", schema = t.array_of(t.any) },
      { name = "truncated", schema = t.boolean },
    },
  },
  len = {
    doc = "How many events there are.",
    args = {},
    returns = {
      { name = "n", schema = t.integer },
    },
  },
  view = {
    doc = "view(\"tail\", {n = 20}): the last n events.",
    args = {
      { name = "name", schema = t.string },
      { name = "opts", schema = t.shape({ n = t.integer:is_optional() }):is_optional() },
    },
    returns = {
      { name = "events", schema = t.array_of(t.any) },
    },
  },
  query = {
    doc = "Answers one SELECT (or WITH) over the view events, which holds whole objects: json_extract(data, '$.x'). $stream is this session, IN $sessions the ones named. Gives rows by column, without null ones, and whether there are more.",
    args = {
      { name = "sql", schema = t.string },
      { name = "params", schema = t.table:describe("a list for each ?, or a table by name for :n @n $n"):is_optional() },
      { name = "opts", schema = t.shape({ sessions = t.array_of(t.any):describe("the ids of $sessions; default: this session"):is_optional(), timeout_ms = t.integer:describe("default 5000, at most 60000"):is_optional(), limit = t.integer:describe("rows; default 1000, at most 10000"):is_optional() }):is_optional() },
    },
    returns = {
      { name = "rows", schema = t.array_of(t.any) },
      { name = "truncated", schema = t.boolean },
    },
  },
  reserve = {
    doc = "Asks for units: a number of the first tag, or a table by tag. Gives whether they were granted, and the tag; a refusal is recorded and does not raise.",
    args = {
      { name = "amount", schema = t.any_of({ t.integer, t.table }) },
    },
    returns = {
      { name = "granted", schema = t.boolean },
      { name = "tag", schema = t.string:is_optional() },
    },
  },
  spend = {
    doc = "Deducts units without asking, down to 0.",
    args = {
      { name = "amount", schema = t.any_of({ t.integer, t.table }) },
    },
    returns = {},
  },
  remaining = {
    doc = "What is left of a tag (of the first one when none is named), nil when it was never granted.",
    args = {
      { name = "tag", schema = t.string:is_optional() },
    },
    returns = {
      { name = "left", schema = t.integer:is_optional() },
    },
  },
  exhausted = {
    doc = "Whether nothing is left of a tag that was granted.",
    args = {},
    returns = {
      { name = "yes", schema = t.boolean },
    },
  },
  close = {
    doc = "Ends the session through this handle; again does nothing. reason is closed where none is given.",
    args = {
      { name = "reason", schema = t.string:is_optional() },
      { name = "detail", schema = t.string:is_optional() },
    },
    returns = {},
  },
}

return M
