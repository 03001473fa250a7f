-- demo: an agent that reads a file through a tool and answers from it.
--
-- It offers one tool, read_file, confined to the project, and lets the model decide.
-- Run it on the shipped recording with `make demo`, or on a real model:
--
--   ashlar run -s blocks/demo.lua --base-url http://127.0.0.1:8080/v1 \
--     "Use read_file on notes.txt. What is the secret word?"

local agent = require("agent")

local function read_file(input)
  if input.path:sub(1, 1) == "/" or input.path:find("..", 1, true) then
    error("only files of the project can be read, got " .. input.path, 0)
  end
  local text = std.fs.read(std.path.join("testdata", "demo", input.path))
  return (text:gsub("%s+$", ""))
end

local result = agent.run({
  prompt = _PROMPT or "Use read_file on notes.txt. What is the secret word?",
  system = "You answer from files. Read a file before you speak of it.",
  max_iterations = 6,
  max_tokens = 200,
  -- A model of 135 million parameters opens a call only when it has to; a capable one
  -- decides for itself, so nothing is set for it.
  tool_choice = std.env.get("DEMO_TOOL_CHOICE"),
  extra_tools = {
    {
      name = "read_file",
      description = "Reads a text file and returns its content.",
      read_only = true,
      input_schema = {
        type = "object",
        properties = { path = { type = "string", description = "the file's name, such as notes.txt" } },
        required = { "path" },
      },
      handler = read_file,
    },
  },
})

if not result.ok then error(result.error, 0) end
return result.content
