-- knl_types.luacats: the types of knl's native half, for editors. Sealed; it does nothing.
-- Written from the declarations that 'ashlar api knl' prints; do not edit it:
-- 'go test . -run KnlTypes -update' writes it anew, and the same test holds it to them.

---@meta

---A handle on one session: one stream of the log, with its budget.
---@class knl.session
local knl_session = {}

---The session's id.
---@return string id
function knl_session:id() end

---The id of the scope that its budget belongs to.
---@return string id
function knl_session:scope_id() end

---The principal that it was opened for.
---@return string id
function knl_session:owner() end

---Adds one event {kind, meta?, data?} and gives its seq. meta holds scalars; the kernel's own kinds are refused.
---@param event { kind: string, meta?: table, data?: table }
---@return integer seq
function knl_session:append(event) end

---Events from a seq on, at most 1000, and whether there are more: page by asking from the last seq + 1.
---@param from? integer
---@return any[] events
---@return boolean truncated
function knl_session:events(from) end

---How many events there are.
---@return integer n
function knl_session:len() end

---view("tail", {n = 20}): the last n events.
---@param name string
---@param opts? { n?: integer }
---@return any[] events
function knl_session:view(name, opts) end

---Answers one SELECT (or WITH) over the view events, which holds whole objects: json_extract(data, '$.x'). $stream is this session, IN $sessions the ones named. Gives rows by column, without null ones, and whether there are more.
---@param sql string
---@param params? table a list for each ?, or a table by name for :n @n $n
---@param opts? { sessions?: any[], timeout_ms?: integer, limit?: integer }
---@return any[] rows
---@return boolean truncated
function knl_session:query(sql, params, opts) end

---Asks for units: a number of the first tag, or a table by tag. Gives whether they were granted, and the tag; a refusal is recorded and does not raise.
---@param amount integer|table
---@return boolean granted
---@return string? tag
function knl_session:reserve(amount) end

---Deducts units without asking, down to 0.
---@param amount integer|table
function knl_session:spend(amount) end

---What is left of a tag (of the first one when none is named), nil when it was never granted.
---@param tag? string
---@return integer? left
function knl_session:remaining(tag) end

---Whether nothing is left of a tag that was granted.
---@return boolean yes
function knl_session:exhausted() end

---Ends the session through this handle; again does nothing. reason is closed where none is given.
---@param reason? string
---@param detail? string
function knl_session:close(reason, detail) end

---Sessions: the log's streams, each with its budget. require("knl") adds beat, device and the rest to them.
---@class knl
local knl = {}

---Opens a session and gives its handle.
---@param opts? { owner?: string, budget?: table, store?: any, meta?: table, parent?: knl.session }
---@return knl.session session
function knl.open(opts) end

---Takes up a session that has not ended, and gives its handle; budget adds to what is left.
---@param opts { session: string, store?: any, budget?: table }
---@return knl.session session
function knl.resume(opts) end

---A unique id that sorts by time.
---@return string id
function knl.new_beat_id() end

---Reads what was raised: {kind?, namespace?, method?, retryable, message}.
---@param raised any
---@return { kind?: string, namespace?: string, method?: string, retryable: boolean, message: string } error
function knl.error(raised) end

---Whether a value is a session's handle.
---@param value any
---@return boolean yes
function knl.is_session(value) end

---A page of a session without the bodies of its requests: what a fold needs. Part of knl.beat.
---@param session knl.session
---@param from integer
---@return any[] events
---@return boolean truncated
function knl.read(session, from) end

---Encodes a value once, for a request's list of messages; it never changes. Part of knl.beat.
---@param value table
---@return knl.packed packed
function knl.pack(value) end

---A whole session, as "events" or as "messages".
---@param session knl.session
---@param as string
---@return any[] records
function knl.export(session, as) end

---Reserves a beat and records its request in one commit. Part of knl.beat.
---@param session knl.session
---@param beat { request: table, window?: table, cost?: integer, max_tokens?: integer, default?: integer, target?: function }
---@return table begun
function knl.beat_begin(session, beat) end

---Records a reply or a failed call, with the settlement, in one commit. Part of knl.beat.
---@param session knl.session
---@param beat { beat: string, content?: any[], usage?: table, stop_reason?: string, finish_reason?: string, failed?: table }
function knl.beat_end(session, beat) end

---Tells the event stream how a beat ended. Part of knl.beat.
---@param session knl.session
---@param beat string
---@param outcome string
function knl.beat_done(session, beat, outcome) end

---Takes one tool call of a beat through the bus. Part of knl.beat.
---@param session knl.session
---@param call { beat: string, call_id: string, name: string, args?: table, refusal?: string, refusal_kind?: string, handler?: function, turn?: integer, contract?: { description?: string, input_schema?: table, group?: string, read_only?: boolean, idempotent?: boolean, repeatable?: boolean, timeout?: number, capabilities?: any[] } }
---@return table result
function knl.dispatch(session, call) end

---A page of a session of this run by its id, one that has ended too, and whether there is more.
---@param session string
---@param from? integer
---@return any[] events
---@return boolean truncated
function knl.page(session, from) end

---What the kernel offers: {session, module, errors, schema, fields}.
---@return table report
function knl.api() end

return {}
