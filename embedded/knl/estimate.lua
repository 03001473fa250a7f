-- knl.estimate: how many tokens a request probably takes, before a provider has said so.
--
--   estimate.text(s)        -> tokens   of one text
--   estimate.message(m)     -> tokens   of one message, its role and joints included
--   estimate.envelope(request) -> tokens   of system and tools
--   estimate.request(request)  -> tokens   of all of it
--   estimate.shorten(s, bytes) -> text  head and tail of s and a marker between that says
--                                       how much was cut; at most bytes, no character is split
--
-- Words take about 3.2 bytes a token; what is no words (digits, base64, other scripts)
-- takes fewer, so that a long text is sampled. An estimate is meant to be too high
-- rather than too low; knl.window scales it by what the provider counted.

local M = {}

local BYTES_PER_TOKEN = 3.2
local BYTES_PER_DENSE_TOKEN = 1.6 -- of text that is no words
local SAMPLED = 2048 -- bytes: a longer text is sampled
local SAMPLE = 256 -- bytes of each of three samples
local PER_MESSAGE = 4 -- tokens of a message's frame
local PER_BLOCK = 8 -- tokens of a call's or a result's frame
local IMAGE = 1600 -- tokens: providers scale a picture to about that
local DOCUMENT_BYTES_PER_TOKEN = 16

-- dense gives the share of a sample that is neither letters nor room between words.
-- A sample without room between is dense as a whole, whatever it is made of.
local function dense(sample)
  local _, words = sample:gsub("[%a%s]", "")
  local _, room = sample:gsub("%s", "")
  if room * 24 < #sample then return 1 end
  return (#sample - words) / #sample
end

function M.text(s)
  local n = #s
  if n <= SAMPLED then return math.ceil(n / BYTES_PER_TOKEN) end
  local share = 0
  for _, at in ipairs({ 1, math.floor((n - SAMPLE) / 2), n - SAMPLE + 1 }) do
    share = math.max(share, dense(s:sub(at, at + SAMPLE - 1)))
  end
  return math.ceil(n * (share / BYTES_PER_DENSE_TOKEN + (1 - share) / BYTES_PER_TOKEN))
end

-- value estimates JSON without writing it.
local function value(v)
  if v == nil then return 0 end
  if type(v) == "string" then return M.text(v) + 1 end
  if type(v) ~= "table" then return 2 end
  local n = 1
  for key, inner in pairs(v) do
    if type(key) == "string" then n = n + M.text(key) + 1 end
    n = n + value(inner)
  end
  return n
end

local blocks = {}

local BLOCKS = {
  text = function(b) return value(b.text) end,
  thinking = function(b) return value(b.thinking) + value(b.signature) end,
  tool_use = function(b) return PER_BLOCK + value(b.name) + value(b.input) end,
  tool_result = function(b)
    if type(b.content) == "table" then return PER_BLOCK + blocks.list(b.content) end
    return PER_BLOCK + value(b.content)
  end,
  image = function() return IMAGE end,
  image_url = function() return IMAGE end,
  document = function(b) return math.max(IMAGE, math.ceil(#std.json.encode(b) / DOCUMENT_BYTES_PER_TOKEN)) end,
}

function blocks.list(content)
  local n = 0
  for _, block in ipairs(content) do
    local of = type(block) == "table" and BLOCKS[block.type]
    n = n + (of and of(block) or value(block))
  end
  return n
end

function M.message(m)
  local content = m.content
  if type(content) == "string" then return PER_MESSAGE + M.text(content) end
  if type(content) ~= "table" then return PER_MESSAGE end
  return PER_MESSAGE + blocks.list(content)
end

function M.envelope(request)
  local n = value(request.system)
  for _, tool in ipairs(request.tools or {}) do n = n + PER_BLOCK + value(tool) end
  return n
end

function M.request(request)
  local n = M.envelope(request)
  for _, message in ipairs(request.messages) do n = n + M.message(message) end
  return n
end

-- trail reports whether the byte at i goes on with the character before it.
local function trail(s, i)
  local b = s:byte(i)
  return b ~= nil and b >= 128 and b < 192
end

function M.shorten(s, bytes)
  if #s <= bytes then return s end
  local function marked(cut) return ("\n[… %d of %d bytes were left out here to fit the context window …]\n"):format(cut, #s) end
  local room = bytes - #marked(#s)
  if room < 2 then
    local marker = ("[%d bytes left out]"):format(#s)
    return #marker <= bytes and marker or ""
  end
  local head, tail = math.floor(room * 2 / 3), #s - (room - math.floor(room * 2 / 3)) + 1
  while head > 0 and trail(s, head + 1) do head = head - 1 end
  while tail <= #s and trail(s, tail) do tail = tail + 1 end
  return s:sub(1, head) .. marked(tail - head - 1) .. s:sub(tail)
end

return M
