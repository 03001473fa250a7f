package ashlar_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar"
	"ashlar/stdlib/llm/llmtest"
)

// inDevMode gives a rig whose runs have LSHAPE_CHECK=1.
func inDevMode(t *testing.T, replies ...llmtest.Reply) *rig {
	t.Helper()
	r := newRig(t, replies...)
	ws, err := ashlar.Open(context.Background(), ashlar.Options{
		Project: r.ws.Project(), Stderr: r.stderr, Stdout: r.stderr,
		Environ: []string{"ASHLAR_HOME=" + filepath.Join(r.dir, "dev"), "PATH=" + os.Getenv("PATH"), "LSHAPE_CHECK=1",
			"ASHLAR_MODEL=scripted-1", "ASHLAR_BASE_URL=" + r.model.URL(), "OPENAI_API_KEY=sk-rig-0123456789abcdef"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ws.Close(); err != nil {
			t.Error(err)
		}
	})
	r.ws = ws
	return r
}

// gates is what scripts of both modes share: the checks that hold in both.
const gates = `local sup = require("supervisor")
local function raises(want, f, ...) local ok, e = pcall(f, ...) if ok then error("it did not raise: " .. want, 2) end
  if not tostring(e):find(want, 1, true) then error("got " .. tostring(e) .. ", want " .. want, 2) end end
-- what a script must not get wrong in either mode, each in one message
local p = knl.open({ owner = "ada", budget = { beats = 9 } })
raises("unknown field 'sytem'", knl.device, { sytem = "x" })
raises("knl: open: validation: opts: unknown option \"budjet\"", knl.open, { budjet = {} })
raises("unknown option 'bugdet'", sup.child, p, { bugdet = {} }, print)
raises("budget is required", sup.child, p, {}, print)
raises("unknown option 'join'", sup.parallel, p, {}, { join = 1 })
raises("unknown option 'az'", knl.export, p, { az = 1 })
`

const exercise = `
p:append({ kind = "msg_user", data = { content = "hi" } })
local d = knl.device({ llm = llm_of(), tools = { t = { input_schema = { type = "object" }, handler = function() return "r" end } } })
local o = knl.beat(p, d)
eq(o.status, "ok", o.detail and tostring(o.detail.message or o.detail))
eq(knl.beat(p, d:with({ llm = function() return nil, { kind = "quota", message = "no" } end })).detail.kind, "quota")
eq(knl.beat(p, d:with({ fold = function() error("x") end })).status, "error")
eq(knl.beat("p", d).status, "error") eq(knl.beat(p, {}).status, "error")
eq(knl.session({ parent = p, budget = { from_parent = 1 } }, function(c) return c:owner() end), "ada")
eq(#knl.export(p) > 3, true) eq(#knl.page(p:id()) > 3, true) eq(#knl.export(p, { as = "messages" }), 2)
eq(sup.child(p, { budget = { amount = 1, tag = "beats" } }, function() return 5 end), 5)
local got = sup.parallel(p, { { { budget = { beats = 1 } }, function() return 1 end }, { { budget = { beats = 99 } }, print } })
eq(got[1].ok, true) eq(got[2].err.kind, "refused")
eq(knl.beat(p, d:with({ fold = sup.merge({ p }) })).status, "ok")
`

func TestDevModeHoldsExportsToTheirShapes(t *testing.T) {
	t.Parallel()
	r := inDevMode(t, llmtest.Text("a").Times(2))
	r.ok(gates + exercise + `
raises("shape violation at $.llm: fits none of 2 alternatives (the first: expected function, got number) (ctx: knl.device argument 1)", knl.device, { llm = 5 })
raises("shape violation at $.owner: expected string, got number (ctx: knl.open argument 1)", knl.open, { owner = 5 })
raises("shape violation at $.tools.t.handler: fits none of 2 alternatives", knl.device, { tools = { t = { handler = 5 } } })
raises("(ctx: supervisor.parallel argument 3)", sup.parallel, p, {}, { joiner = 5 })
raises("(ctx: supervisor.child argument 3)", sup.child, p, { budget = { beats = 1 } }, 5)
eq(rawget(knl, "shapes") ~= nil, true)
eq(knl.device.is(knl.device({})), true) eq(knl.fold, require("knl.fold"))`)
}

// An agent with tools, a registered one too, passes the gates.
func TestAnAgentRunsInDevMode(t *testing.T) {
	t.Parallel()
	r := inDevMode(t, llmtest.Calls(llmtest.Call{ID: "1", Name: "x", Args: `{}`}, llmtest.Call{ID: "2", Name: "y", Args: `{"n":1}`}), llmtest.Text("done"))
	r.ok(`
tool.register("x", { input_schema = { type = "object" } }, function() return "r" end)
local got = require("agent").run({ prompt = "go", extra_tools = { { name = "y", input_schema = { type = "object" }, handler = function(i) return i.n end } } })
eq(got.ok, true, tostring(got.error)) eq(got.content, "done")`)
}

func TestOutsideOfDevModeNothingIsWrapped(t *testing.T) {
	t.Parallel()
	r := newRig(t, llmtest.Text("a").Times(2))
	r.ok(gates + exercise + `
raises("knl: device: validation: llm must be a function", knl.device, { llm = 5 })
raises("knl: open: validation: opts.owner: got integer, want string", knl.open, { owner = 5 })
raises("joiner is", sup.parallel, p, {}, { joiner = 5 })
raises("a child's body must be a function", sup.child, p, { budget = { beats = 1 } }, 5)
eq(rawget(knl, "shapes"), nil) eq(package.loaded["lshape"], nil) eq(package.loaded["knl.shapes"], nil) eq(package.loaded["lshape.check"], nil)`)
}

// Every export has an entry in shapes.api, and every entry an export.
func TestShapesAreThoseOfTheExports(t *testing.T) {
	t.Parallel()
	newRig(t).ok(`
local L = require("lshape")
for _, name in ipairs({ "knl", "supervisor" }) do
  local M = require(name)
  local shapes = M.shapes
  eq(shapes, M.shapes)
  for export in pairs(M) do if export ~= "shapes" and not shapes.api[export] then error(name .. "." .. export .. " has no shape") end end
  for export in pairs(shapes.api) do if M[export] == nil then error(name .. " has no " .. export) end end
  for _, entry in pairs(shapes.api) do
    for _, list in ipairs({ entry.args or {}, entry.returns or {} }) do for _, s in ipairs(list) do L.reflect.walk(s, function(n) assert(L.t.is_schema(n)) end) end end
  end
end
local S = knl.shapes
for _, name in ipairs({ "outcome", "error", "error_kinds", "call_error", "call_error_kinds", "call_error_retryable", "request", "window_report", "event_base",
  "event_meta", "events", "device_config", "tool_spec", "tool_entry", "tool_policy_decision", "cost_result", "llm_result", "llm_usage", "tool_use_block",
  "session_handle", "callable", "open_opts", "resume_opts", "budget_grant", "budget_allocation", "query_opts", "export_opts", "schema", "api", "views",
  "session", "module", "rust" }) do if S[name] == nil then error("no shapes." .. name) end end
local types = require("knl_types")
eq(S.rust, types) eq(S.module, types.module) assert(types.session.append.args[1].schema.fields.kind)
-- what is published is what is
eq(table.concat(S.error_kinds, " "), table.concat(knl.api().errors, " "))
local s = knl.open()
for kind, retryable in pairs(S.call_error_retryable) do
  local d = knl.beat(s, knl.device({ llm = function() return nil, { kind = kind, message = "m" } end })).detail
  eq(d.kind, kind) eq(d.retryable, retryable, kind)
  assert(L.check(d, S.call_error))
end
s:append({ kind = "msg_user", data = { content = "x" } })
local n = 0
local d = knl.device({ tools = { t = { handler = function() return "r" end } }, llm = function(q)
  assert(L.check(q, S.request)) n = n + 1
  return n == 1 and call({ "a", "t" }) or say("done")
end })
for _ = 1, 2 do assert(L.check(knl.beat(s, d), S.outcome)) end
for _, e in ipairs(s:events()) do
  assert(L.check(e, S.event_base))
  if S.events[e.kind] then local ok, why = L.check(e.data, S.events[e.kind]) assert(ok, e.kind .. ": " .. tostring(why)) end
end
for view, schema in pairs(S.views) do for _, row in ipairs(knl.views[view](s)) do local ok, why = L.check(row, schema) assert(ok, view .. ": " .. tostring(why)) end end
-- the types in LuaCATS
local text = L.luacats.gen(types, "Knl")
assert(text:find("---@class KnlOpenOpts\n", 1, true) and text:find("---@alias KnlRemaining integer|nil", 1, true), text)`)
}

// The sealed names cannot be replaced by a project.
func TestShapesAreSealed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"lshape", "lshape.check", "knl_types", "knl.shapes"} {
		r := newRig(t)
		file := filepath.Join(r.ws.Project(), "lib", filepath.FromSlash(strings.ReplaceAll(name, ".", "/"))+".lua")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("return 1"), 0o644); err != nil {
			t.Fatal(err)
		}
		block := filepath.Join(r.dir, "block.lua")
		if err := os.WriteFile(block, []byte("return type(require('"+name+"'))"), 0o644); err != nil {
			t.Fatal(err)
		}
		run, err := r.ws.Prepare(ashlar.Task{Script: block})
		if err == nil {
			if res := run.Execute(context.Background()); res.Value != "table" {
				t.Errorf("%s: %v %v", name, res.Value, res.Err)
			}
		} else if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "lib") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
