package main

import (
	"fmt"

	"ashlar"
)

// policyBlock runs sessions of some beats that each call a tool, bare or with every
// seam of the device taken by a policy, and gives the seconds of one beat.
const policyBlock = `
local knl, adapter, policy = require("knl"), require("knl_adapter"), require("policy")
local llm = adapter.port({}):open({})
local room = policy.room({ port = {}, conf = { context_window = 128000, max_tokens = 1000 } })
local tools = { look = { description = "Looks.", handler = function() return ("word "):rep(40) end } }
local function wrapped(s)
  return policy.repeat_cap({})(s)(policy.beat_cap({ room = room })(s)(policy.require_args({})(policy.result_cap({ room = room })(tools))))
end
local stuck, fold, total, sessions, beats, wrap = policy.stagnation({}), policy.window({ room = room }), 0, %d, %d, %t
for i = 1, sessions do
  local s = knl.open({})
  s:append({ kind = "msg_user", data = { content = "hello" } })
  local device = knl.device({ llm = llm, tools = tools })
  if wrap then
    device = knl.device({ llm = llm, tools = wrapped(s), fold = fold, filters = { policy.room_note({ room = room }), policy.carry({})(s) } })
  end
  for _ = 1, beats do
    local before = std.time.now()
    local o = knl.beat(s, device)
    if wrap and stuck(s) then error("stuck") end
    total = total + std.time.now() - before
    if o.status ~= "ok" then error(std.json.encode(o)) end
  end
  s:close()
end
return total / sessions / beats`

// policies compares beats whose seams are all policies with bare ones, in sessions of
// one beat and of thirty.
func policies(p place) ([]figure, error) {
	m, err := startModel(func(n int) (string, string, string) { return "", "look", fmt.Sprintf(`{"n":%d}`, n) })
	if err != nil {
		return nil, err
	}
	defer m.close()
	dir, err := p.sub("policy")
	if err != nil {
		return nil, err
	}
	var out []figure
	for _, c := range []struct {
		what            string
		sessions, beats int
	}{{"the first beat of a session, wrapped in policies, against a bare one", 150, 1}, {"a beat of thirty, likewise", 6, 30}} {
		var took [2]float64
		for i, wrap := range []bool{false, true} {
			if took[i], err = seconds(dir, m.url, fmt.Sprintf(policyBlock, c.sessions, c.beats, wrap), ashlar.Bounds{}); err != nil {
				return nil, err
			}
		}
		out = append(out, figure{what: c.what, asked: 1.3, measured: took[1] / took[0],
			detail: fmt.Sprintf("%.2f ms against %.2f", took[1]*1e3, took[0]*1e3)})
	}
	return out, nil
}

// seconds runs a script that returns a number.
func seconds(dir, url, src string, bounds ashlar.Bounds) (float64, error) {
	v, ws, err := boundedBlock(dir, url, src, bounds)
	if err != nil {
		return 0, err
	}
	if err := ws.Close(); err != nil {
		return 0, err
	}
	switch n := v.(type) {
	case float64:
		return n, nil
	case int64:
		return float64(n), nil
	}
	return 0, fmt.Errorf("the block returned %v", v)
}

// foldBlock folds a log of 2,000 events and gives the seconds of one fold.
const foldBlock = `
local knl = require("knl")
local events = std.json.array()
local function add(kind, data) events[#events + 1] = { seq = #events + 1, kind = kind, meta = { beat = "b" .. #events }, data = data } end
add("msg_user", { content = "the task" })
for i = 1, 400 do
  add("llm_request", {})
  add("llm_response", { content = { { type = "text", text = "turn " .. i }, { type = "tool_use", id = "c" .. i, name = "t", input = { n = i } } }, usage = { input_tokens = 100 + 40 * i, output_tokens = 5 } })
  add("tool_call", { call_id = "c" .. i, name = "t", args = { n = i } })
  add("tool_result", { call_id = "c" .. i, ok = true, result = ("some words of a result "):rep(4) .. i })
  add("budget_reserved", { amount = 1, tag = "beats" })
end
local device = knl.device({ llm = function() end })
local count, times = 100, {}
for i = 1, count do
  local before = std.time.now()
  local request = knl.fold(events, device)
  times[i] = std.time.now() - before
  if #request.messages ~= 801 then error(#request.messages) end
end
table.sort(times)
return times[count / 2]`

func folds(p place) ([]figure, error) {
	dir, err := p.sub("fold")
	if err != nil {
		return nil, err
	}
	took, err := seconds(dir, "http://127.0.0.1:9/v1", foldBlock, ashlar.Bounds{})
	return []figure{{what: "folding 2,000 events", asked: 3, measured: took * 1e3, unit: " ms"}}, err
}

// childrenBlock runs so many supervised children at once, eight beats each, and gives
// the beats that they did in a second.
const childrenBlock = `
local knl, adapter, supervisor = require("knl"), require("knl_adapter"), require("supervisor")
local n, each = %d, 8
local device = knl.device({ llm = adapter.port({}):open({ max_tokens = 100 }) })
local parent = knl.open({ budget = { beats = n * each } })
local list, done = {}, 0
for i = 1, n do
  list[i] = { { budget = { amount = each, tag = "beats" } }, function(child)
    child:append({ kind = "msg_user", data = { content = "hello" } })
    for _ = 1, each do
      local o = knl.beat(child, device)
      if o.status == "ok" then done = done + 1 elseif o.status ~= "stopped" then error(std.json.encode(o)) end
    end
  end }
end
local before = std.time.now()
for i, result in ipairs(supervisor.parallel(parent, list)) do
  if not result.ok then error(tostring(result.err)) end
end
local took = std.time.now() - before
parent:close()
if %t then return done end
return done / took`

// supervised measures 64 children with one pool: what they do at once against one
// child, and that a pool that covers half of it gives no more.
func supervised(p place) ([]figure, error) {
	m, err := startModel(func(int) (string, string, string) { return "hello yourself", "", "" })
	if err != nil {
		return nil, err
	}
	defer m.close()
	m.wait = 20e6 // 20 ms
	dir, err := p.sub("children")
	if err != nil {
		return nil, err
	}
	one, err := seconds(dir, m.url, fmt.Sprintf(childrenBlock, 1, false), ashlar.Bounds{Beats: 1000})
	if err != nil {
		return nil, err
	}
	all, err := seconds(dir, m.url, fmt.Sprintf(childrenBlock, 64, false), ashlar.Bounds{Beats: 1000})
	if err != nil {
		return nil, err
	}
	const pool = 256
	done, err := seconds(dir, m.url, fmt.Sprintf(childrenBlock, 64, true), ashlar.Bounds{Beats: pool})
	if err != nil {
		return nil, err
	}
	return []figure{
		{what: "64 supervised children, beats a second against one", asked: 8, least: true, measured: all / one,
			detail: fmt.Sprintf("%.0f/s against %.0f/s", all, one)},
		{what: "beats that they get of a pool of 256", asked: pool, measured: done},
	}, nil
}
