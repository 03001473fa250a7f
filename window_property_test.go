package ashlar_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// histories makes event histories as crashes, interleaving and hostile tools leave them.
type histories struct {
	r      *rand.Rand
	events []map[string]any
	open   []string // ids that were called
	beat   int
}

var poison = []string{
	"", "plain", " ", "\n", "nul \x00 inside", "bell \x07", "lone surrogate \uFFFD\uFFFD", "ümläut €", "😀",
	`{"not":"parsed"`, "<tool_call>{}</tool_call>", "\u2028", strings.Repeat("long ", 200),
}

var callIDs = []string{"c1", "c2", "c3", "call_1", "toolu_01", "id with space", "c1_2", "x\x01y", "ü"}

var callNames = []string{"t", "read", "no.such", "name with space", strings.Repeat("n", 90), "ünï", "<|tool|>"}

func (h *histories) add(kind string, data map[string]any) {
	h.events = append(h.events, map[string]any{
		"kind": kind, "seq": len(h.events) + 1, "meta": map[string]any{"beat": fmt.Sprint("b", h.beat)}, "data": data,
	})
}

func (h *histories) pick(list []string) string { return list[h.r.Intn(len(list))] }

func (h *histories) text() map[string]any {
	return map[string]any{"type": "text", "text": h.pick(poison)}
}

func (h *histories) user() {
	switch h.r.Intn(4) {
	case 0:
		h.add("msg_user", map[string]any{"content": []any{h.text(), h.text()}})
	case 1:
		h.add("msg_user", map[string]any{"content": []any{}})
	default:
		h.add("msg_user", map[string]any{"content": h.pick(poison)})
	}
}

func (h *histories) reply() {
	h.beat++
	content := []any{}
	if h.r.Intn(4) == 0 {
		block := map[string]any{"type": "thinking", "thinking": h.pick(poison)}
		if h.r.Intn(2) == 0 {
			block["signature"] = "c2lnbmVk"
		}
		content = append(content, block)
	}
	for range h.r.Intn(3) {
		content = append(content, h.text())
	}
	seen := map[string]bool{}
	h.open = nil
	for range h.r.Intn(4) {
		id := h.pick(callIDs)
		if seen[id] { // a beat refuses a reply like that
			continue
		}
		seen[id] = true
		h.open = append(h.open, id)
		call := map[string]any{"type": "tool_use", "id": id, "name": h.pick(callNames), "input": map[string]any{"q": h.pick(poison)}}
		switch h.r.Intn(5) {
		case 0:
			call["input"] = map[string]any{}
			call["input_error"] = "unexpected end of JSON input"
		case 1:
			call["input"] = map[string]any{"deep": []any{1, "two", map[string]any{}, []any{}, nil}}
		}
		content = append(content, call)
	}
	data := map[string]any{"content": content, "stop_reason": "tool_use"}
	if h.r.Intn(3) > 0 {
		data["usage"] = map[string]any{"input_tokens": h.r.Intn(4000), "output_tokens": h.r.Intn(100)}
	}
	h.add("llm_response", data)
}

func (h *histories) result() {
	id := h.pick(callIDs) // an orphan, or one that comes twice
	if len(h.open) > 0 && h.r.Intn(6) > 0 {
		id = h.open[h.r.Intn(len(h.open))]
	}
	values := []any{h.pick(poison), h.pick(poison), 7, true, map[string]any{"ok": false, "reason": h.pick(poison)}, []any{}, []any{h.pick(poison)}}
	value := values[h.r.Intn(len(values))]
	if h.r.Intn(60) == 0 {
		text := h.pick(poison) + "x"
		value = strings.Repeat(text, 200_000/len(text))
	}
	data := map[string]any{"call_id": id, "ok": h.r.Intn(3) > 0, "result": value}
	if h.r.Intn(8) == 0 {
		delete(data, "result")
	}
	h.add("tool_result", data)
}

func history(seed int64) []map[string]any {
	h := &histories{r: rand.New(rand.NewSource(seed))}
	for range 1 + h.r.Intn(40) {
		switch n := h.r.Intn(20); {
		case n < 3:
			h.user()
		case n < 9:
			h.reply()
		case n < 15:
			h.result()
		case n == 15:
			h.add("llm_call_failed", map[string]any{"kind": []string{"server", "context_length", "quota"}[h.r.Intn(3)], "error": "no", "retryable": false})
		case n == 16:
			h.add("llm_request", map[string]any{})
		case n == 17:
			h.add("tool_call", map[string]any{"call_id": h.pick(callIDs), "name": "t", "args": map[string]any{}})
		case n == 18:
			h.add([]string{"compact_started", "summary", "compact_skipped"}[h.r.Intn(3)], map[string]any{"content": h.pick(poison), "why": "empty"})
		default:
			h.add("budget_reserved", map[string]any{"amount": 1, "tag": "beats"})
		}
	}
	h.add("msg_user", map[string]any{"content": "go on"})
	return h.events
}

// foldHistories folds each history in every way that this binary has, twice, and gives
// what each wire would send.
const foldHistories = `
local policy, window = require("policy"), require("knl.window")
local wires = { openai = require("llm_proto.openai") }
local there, anthropic = pcall(require, "llm_proto.anthropic")
if there then wires.anthropic = anthropic end
local targets = {
  openai = { provider = "openai", kind = "openai", model = "m-1", dialect = "vllm" },
  anthropic = { provider = "anthropic", kind = "anthropic", model = "claude-sonnet-4-5" },
}
local device = knl.device({ system = "be exact", tools = { t = { description = "d", handler = function() end }, read = { handler = function() end } } })
local limited = device:with({ window = { context_window = 1500, max_output = 300 } })
local function fitted(dev, limit)
  return function(events)
    local folder = knl.fold.new()
    folder:steps(events)
    return (window.apply(folder, {}, knl.fold.request(folder:messages(), dev), limit))
  end
end
local folds = {
  default = function(events) return knl.fold(events, device) end,
  fitted = fitted(device, 900), tight = fitted(device, 260),
  tail = function(events) return (policy.window({ tail = 3 })(events, device)) end,
  room = function(events) return (policy.window({ room = policy.room({ port = {}, conf = { context_window = 1500, max_tokens = 300 } }) })(events, device)) end,
}
local out = std.json.array()
for n, events in ipairs(std.json.read_file(_CONTEXT)) do
  local before = std.json.encode(events)
  for name, fold in pairs(folds) do
    local request = fold(events)
    local text = std.json.encode(request)
    if text ~= std.json.encode(fold(events)) then error("history " .. n .. ", " .. name .. ": two requests differ") end
    for wire, proto in pairs(wires) do
      local built, err = proto.build(request, { stream = false }, targets[wire])
      if not built then error(err.message) end
      out[#out + 1] = { n = n, fold = name, wire = wire, body = std.json.encode(built.body) }
      if out[#out].body ~= std.json.encode(proto.build(request, { stream = false }, targets[wire]).body) then error("two bodies differ") end
    end
  end
  if std.json.encode(events) ~= before then error("history " .. n .. ": a fold changed its events") end
end
return out`

// Any history that a log can hold makes a request that both wires take: every call has
// exactly one result, nothing is empty, and building it twice gives the same bytes.
func TestAnyHistoryMakesAValidRequest(t *testing.T) {
	t.Parallel()
	const n = 300
	r := newRig(t)
	all := make([][]map[string]any, n)
	for i := range all {
		all[i] = history(int64(i))
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.ws.Project(), "histories.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	list, _ := r.ok(strings.ReplaceAll(foldHistories, "_CONTEXT", fmt.Sprintf("%q", path))).Value.([]any)
	seen, failures := map[string]int{}, 0
	for _, x := range list {
		m := x.(map[string]any)
		var body map[string]any
		if err := json.Unmarshal([]byte(str(m, "body")), &body); err != nil {
			t.Fatal(err)
		}
		seen[str(m, "wire")]++
		if err := validators[str(m, "wire")](body); err != nil {
			if failures++; failures < 6 {
				t.Errorf("history %d, fold %s, wire %s: %v\n%.1500s", num(m, "n")-1, str(m, "fold"), str(m, "wire"), err, str(m, "body"))
			}
		}
	}
	if failures > 0 {
		t.Errorf("%d of %d requests are not valid", failures, len(list))
	}
	if seen["openai"] != n*5 || seen["anthropic"] != n*5 {
		t.Errorf("%v requests were checked", seen)
	}
}
