-- llm_proto.reply: what the replies of every wire have in common.
--
--   clean(text)               text without NUL
--   split_think(text)         thought | nil, text: a thought in <think> tags at the beginning
--   input_of(raw)             input, problem?, raw?: a call's arguments, from JSON text or a table
--   id_of(id, n)              a call's id; what no provider takes back gets one that is made
--   usage_of(block, wire, sizes)   disjoint fields; sizes() -> sent, said bytes, for an estimate
--   counted(block, wire)      the same where the provider counted all of it, else nil

local M = {}

local MAX_ID = 256 -- bytes of a call's id
local MAX_INPUT_DEPTH = 100 -- of a call's arguments, so that what holds them still has its JSON

-- clean keeps NUL out of what is sent back: providers refuse it for ever after.
function M.clean(text)
  if type(text) ~= "string" or not text:find("\0", 1, true) then return text end
  return (text:gsub("%z", "\239\191\189"))
end

function M.split_think(text)
  local thought, after = text:match("^%s*<think>(.-)</think>(.*)$")
  if thought then return thought, (after:gsub("^%s+", "")) end
  -- A reply that was cut while it was thinking holds no answer.
  local open = text:match("^%s*<think>(.*)$")
  if open then return open, "" end
  return nil, text
end

-- deeper reports whether a value nests deeper than so many levels.
local function deeper(value, levels)
  if type(value) ~= "table" then return false end
  if levels == 0 then return true end
  for _, inner in pairs(value) do
    if deeper(inner, levels - 1) then return true end
  end
  return false
end

-- Faults of arguments that are JSON and yet have no value here, as std.json says them.
local UNUSABLE = { "beyond float64", "occurs twice", "lone surrogate", "nested deeper" }

local function unusable(raised)
  local message = knl.error(raised).message
  for _, words in ipairs(UNUSABLE) do
    if message:find(words, 1, true) then return message end
  end
  return "not valid JSON, they do not parse"
end

function M.input_of(raw)
  if raw == nil or raw == "" then return {} end
  local good, value = true, raw
  if type(raw) ~= "table" then good, value = pcall(std.json.decode, raw, { null = "keep" }) end
  if good and type(value) == "table" and (next(value) == nil or #value == 0) then
    if deeper(value, MAX_INPUT_DEPTH) then
      return {}, "nested deeper than " .. MAX_INPUT_DEPTH, type(raw) == "string" and raw or nil
    end
    return next(value) == nil and {} or value
  end
  return {}, good and "no JSON object" or unusable(value), type(raw) == "string" and raw or nil
end

function M.id_of(id, n)
  if type(id) == "string" and id ~= "" and #id <= MAX_ID and not id:find("%c") then return id end
  return ("tc%07d"):format(n)
end

local function block_of(v) return type(v) == "table" and v or {} end

function M.usage_of(block, wire, sizes)
  local usage = llm.usage(block_of(block), { wire = wire })
  if not usage.estimated then return usage end
  local sent, said = sizes()
  return llm.usage(block_of(block), { wire = wire, sent = sent, said = said })
end

function M.counted(block, wire)
  local usage = llm.usage(block_of(block), { wire = wire })
  return not usage.estimated and usage or nil
end

return M
