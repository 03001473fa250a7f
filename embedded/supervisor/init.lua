-- supervisor: sessions that work for a session.
--
--   supervisor.child(parent, opts, fn) -> what fn(child) returns | nil, err
--       opens a child of parent, paid from parent's budget, and closes it when fn has ended.
--       opts = {budget = {amount, tag?} | {beats = n, tokens = n, …}, owner?, meta?}; amounts are at
--       least 1. nil, err comes back when parent does not cover the budget (err.kind is "refused"),
--       and for nothing else: any other failure and what fn raises is raised.
--   supervisor.parallel(parent, {{opts, fn}, …}, {joiner?, timeout_ms?}) -> list
--       runs every fn(child) at once, each in a child of its own. The list has, by position,
--       {ok = true, values = {n, …}} or {ok = false, err, cancelled?}, none left out; err is what
--       knl.error reads. joiner = "isolate" (the default) lets the others go on when one fails,
--       "cancel_on_error" cancels them; after timeout_ms all are. What a cancelled child had
--       not returned is lost: its position says cancelled = true.
--   supervisor.merge(sessions, {limit?, timeout_ms?}) -> fold
--       a device's fold that reads several sessions, handles or ids of this run, into one request:
--       in the order of the list, each one whole, read to its end page by page. The beat's own
--       session comes where the list has it, else last. More than limit events in one session
--       raise, and so does a reading that takes longer than timeout_ms.
--   supervisor.shapes                the shapes of these; LSHAPE_CHECK=1 holds the exports to them
--
-- A child's units are spent for good: what it does not use does not come back. A cancel is a
-- cancel of std.task: a child that neither waits nor looks is cut only by timeout_ms.

local knl = require("knl")
local task = std.task

local M = {}

-- level is that of error, counted from here: 2 is the caller of refuse.
local function refuse(where, level, message, ...)
  error("supervisor: " .. where .. ": validation: " .. message:format(...), level)
end

local function known(where, level, opts, keys)
  for key in pairs(opts) do
    if not keys[key] then
      local names = {}
      for name in pairs(keys) do names[#names + 1] = name end
      table.sort(names)
      refuse(where, level, "unknown option '%s'; it takes %s", tostring(key), table.concat(names, ", "))
    end
  end
end

local function whole(v) return type(v) == "number" and v >= 1 and v == math.floor(v) and v < 2 ^ 53 end

-- share turns the option budget into what knl.open takes.
local function share(where, level, budget)
  if type(budget) ~= "table" or next(budget) == nil then
    refuse(where, level, "budget is required: {amount, tag?}, or amounts by tag")
  end
  if budget.amount == nil then
    for tag, n in pairs(budget) do
      if type(tag) ~= "string" then refuse(where, level, "budget: a tag is text, got %s", tostring(tag)) end
      if not (whole(n) or tag == "cost" and type(n) == "number" and n > 0) then
        refuse(where, level, "budget.%s must be an integer of at least 1, got %s", tag, tostring(n))
      end
    end
    return { from_parent = budget }
  end
  for key in pairs(budget) do
    if key ~= "amount" and key ~= "tag" and key ~= "desc" then refuse(where, level, "budget: unknown key '%s'", tostring(key)) end
  end
  if not whole(budget.amount) then
    refuse(where, level, "budget.amount must be an integer of at least 1, got %s", tostring(budget.amount))
  end
  return { from_parent = budget.amount, tag = budget.tag, desc = budget.desc }
end

local CHILD = { budget = true, owner = true, meta = true }

-- opening checks a child's options and gives those of knl.open.
local function opening(where, level, parent, opts, fn)
  if not knl.is_session(parent) then refuse(where, level, "the first argument is no session") end
  if type(opts) ~= "table" then refuse(where, level, "a child's options must be a table") end
  if type(fn) ~= "function" then refuse(where, level, "a child's body must be a function") end
  known(where, level + 1, opts, CHILD)
  return { parent = parent, budget = share(where, level + 1, opts.budget), owner = opts.owner, meta = opts.meta }
end

-- attempt runs a child. It gives false, err when the parent refused, else true and what fn
-- returned; born is told the child as soon as there is one.
local function attempt(open, fn, born)
  local entered = false
  local got = table.pack(pcall(knl.session, open, function(child)
    entered = true
    if born then born(child) end
    return fn(child)
  end))
  if got[1] then return table.unpack(got, 1, got.n) end
  local e = knl.error(got[2])
  if not entered and e.kind == "refused" then return false, e end
  error(got[2], 0)
end

function M.child(parent, opts, fn)
  local got = table.pack(attempt(opening("child", 4, parent, opts, fn), fn))
  if not got[1] then return nil, got[2] end
  return table.unpack(got, 2, got.n)
end

local PARALLEL = { joiner = true, timeout_ms = true }

local function plan(parent, list, opts)
  if type(list) ~= "table" then refuse("parallel", 4, "the second argument must be a list of {opts, fn}") end
  known("parallel", 5, opts, PARALLEL)
  local joiner = opts.joiner or "isolate"
  if joiner ~= "isolate" and joiner ~= "cancel_on_error" then
    refuse("parallel", 4, "joiner is \"isolate\" or \"cancel_on_error\", got %s", tostring(joiner))
  end
  if opts.timeout_ms ~= nil and not whole(opts.timeout_ms) then
    refuse("parallel", 4, "timeout_ms must be an integer of at least 1, got %s", tostring(opts.timeout_ms))
  end
  local entries = {}
  for i, entry in ipairs(list) do
    if type(entry) ~= "table" then refuse("parallel", 4, "entry %d must be {opts, fn}", i) end
    entries[i] = { open = opening("parallel", 5, parent, entry[1], entry[2]), fn = entry[2] }
  end
  for key in pairs(list) do
    if type(key) ~= "number" or not entries[key] then refuse("parallel", 4, "the list of entries has a hole or a key '%s'", tostring(key)) end
  end
  return entries, joiner
end

local function cancelled(message)
  return { ok = false, cancelled = true, err = knl.error("supervisor: parallel: cancelled: " .. message) }
end

-- work runs one entry and gives what its position says.
local function work(entry, token)
  if token:is_cancelled() then return cancelled("cancelled before it began") end
  local got = table.pack(pcall(attempt, entry.open, entry.fn, function(child) entry.session = child end))
  if got[1] and got[2] then return { ok = true, values = table.pack(table.unpack(got, 3, got.n)) } end
  local err = got[1] and got[3] or knl.error(got[2])
  return { ok = false, err = err, cancelled = err.kind == "cancelled" and token:is_cancelled() or nil }
end

local function run(entries, joiner, out)
  return function(scope)
    local token = scope:token()
    for i, entry in ipairs(entries) do
      scope:spawn(function()
        out[i] = work(entry, token)
        if not out[i].ok and joiner == "cancel_on_error" then scope:cancel() end
      end, { name = "child " .. i })
    end
  end
end

function M.parallel(parent, list, opts)
  opts = opts or {}
  if type(opts) ~= "table" then refuse("parallel", 3, "options must be a table") end
  if not (task and task.scope and task.with_timeout) then
    error("supervisor: parallel: unsupported: this host has no std.task.scope to run children in", 2)
  end
  local entries, joiner = plan(parent, list, opts)
  local out, body = {}, nil
  body = run(entries, joiner, out)
  local good, raised
  if opts.timeout_ms then
    good, raised = pcall(task.with_timeout, opts.timeout_ms, body)
  else
    good, raised = pcall(task.scope, "supervisor.parallel", body)
  end
  if not good and knl.error(raised).kind ~= "timeout" then error(raised, 0) end
  for i, entry in ipairs(entries) do
    if not out[i] then
      -- It was cut: its bracket could not close the session.
      out[i] = cancelled(("cut after %s ms"):format(tostring(opts.timeout_ms)))
      if entry.session then pcall(entry.session.close, entry.session, "error", out[i].err.message) end
    end
  end
  return out
end

-- whole_session reads a session to its end, page by page.
local function whole_session(source, limit, step)
  local from, truncated, n = 1, true, 0
  while truncated do
    local rows
    if type(source) == "string" then rows, truncated = knl.page(source, from) else rows, truncated = source:events(from) end
    for _, event in ipairs(rows) do
      from, n = event.seq + 1, n + 1
      if limit and n > limit then
        local id = type(source) == "string" and source or source:id()
        error(("supervisor: merge: limit: session %s has more than %d events"):format(id, limit), 0)
      end
      step(event)
    end
  end
end

local MERGE = { limit = true, timeout_ms = true }

function M.merge(sessions, opts)
  opts = opts or {}
  if type(sessions) ~= "table" then refuse("merge", 3, "sessions must be a list of handles or ids") end
  if type(opts) ~= "table" then refuse("merge", 3, "options must be a table") end
  known("merge", 4, opts, MERGE)
  for key in pairs(MERGE) do
    if opts[key] ~= nil and not whole(opts[key]) then refuse("merge", 3, "%s must be an integer of at least 1, got %s", key, tostring(opts[key])) end
  end
  local sources = {}
  for i, source in ipairs(sessions) do
    if type(source) ~= "string" and not knl.is_session(source) then refuse("merge", 3, "sessions[%d] is neither a session nor an id", i) end
    sources[i] = source
  end
  if #sources == 0 then refuse("merge", 3, "sessions is empty") end

  -- Events are numbered anew, since a fold tells calls apart by where they stand.
  local function read(own)
    local all, seen = std.json.array(), false
    local scope = own[1] and own[1].data and own[1].data.scope_id
    local function add(event)
      event.seq = #all + 1
      all[#all + 1] = event
    end
    for _, source in ipairs(sources) do
      whole_session(source, opts.limit, function(event)
        if event.kind == "session_opened" and event.data.scope_id == scope then seen = true end
        add(event)
      end)
    end
    if not seen then
      for _, event in ipairs(own) do
        local copy = {}
        for key, value in pairs(event) do copy[key] = value end
        add(copy)
      end
    end
    return all
  end

  return function(events, device)
    if not opts.timeout_ms then return knl.fold(read(events), device) end
    return knl.fold(task.with_timeout(opts.timeout_ms, function() return read(events) end), device)
  end
end

return require("lshape.gate").publish(M, "supervisor", function() return require("supervisor.shapes") end)
