-- policy.reading: what a log says of file states and of where it came from.
--
--   checkpoints(log)          -> {{seq, beat?, label?, files = {path = version}, missing = {path…}}…}
--   checkpoint_at(log, beat?) -> {seq, beat?, files = {path = content}, versions, missing} | nil
--     the last one up to the end of that beat, or of the log; "baseline" the first
--   lineage(log)              -> {{session, upto_seq, beat, reason?, spent?}…}, the newest first
--
-- log is a session or a list of exported events. A checkpoint event names versions, and
-- each checkpoint_blob holds the content of one.

local log = require("policy.log")

local M = {}

local function entry(event)
  return {
    seq = event.seq, beat = event.meta and event.meta.beat, label = event.meta and event.meta.label,
    files = event.data.files or {}, missing = event.data.missing or std.json.array(),
  }
end

function M.checkpoints(of)
  local list = std.json.array()
  for _, event in ipairs(log.events(of)) do
    if event.kind == "checkpoint" then list[#list + 1] = entry(event) end
  end
  return list
end

function M.checkpoint_at(of, beat)
  local found, ends, blobs, first = nil, nil, {}, nil
  local events = log.events(of)
  for _, event in ipairs(events) do
    if event.kind == "checkpoint_blob" then blobs[event.data.version] = event.data.content end
    if beat ~= nil and event.meta and event.meta.beat == beat then ends = event.seq end
  end
  if beat ~= nil and beat ~= "baseline" and not ends then return nil end
  for _, event in ipairs(events) do
    if event.kind == "checkpoint" then
      first = first or event
      if not ends or event.seq <= ends then found = event end
    end
  end
  if beat == "baseline" then found = first end
  if not found then return nil end
  local out = entry(found)
  out.versions, out.files = out.files, {}
  for path, version in pairs(out.versions) do out.files[path] = blobs[version] end
  return out
end

function M.lineage(of)
  local list = std.json.array()
  for _, event in ipairs(log.events(of)) do
    if event.kind == "forked_from" then
      local data = event.data
      table.insert(list, 1, { session = data.session, upto_seq = data.upto_seq, beat = data.beat, reason = data.reason, spent = data.spent })
    end
  end
  return list
end

return M
