package scripttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ashlar/vm"
)

func TestJSONIsWithoutLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local j = std.json
		assert(j.encode(j.array()) == "[]" and j.encode({}) == "{}")
		assert(j.encode({list = j.decode("[]"), obj = j.decode("{}")}) == '{"list":[],"obj":{}}')
		assert(j.encode({1, 2, x = 3}) == '{"1":1,"2":2,"x":3}') -- a mixed table, whole
		assert(j.encode({b = 1, a = {c = 1, b = 2}}) == '{"a":{"b":2,"c":1},"b":1}')
		assert(j.decode("null") == nil and j.decode('{"a":null}').a == nil)
		local list = j.decode("[1,null,3]")
		assert(#list == 3 and list[2] == j.null and j.is_null(list[2]) and j.encode(list) == "[1,null,3]")
		local kept = j.decode('{"a":null}', {null = "keep"})
		assert(kept.a == j.null and j.encode(kept) == '{"a":null}')
		local big = '{"n":9007199254740993,"m":-12345678901234567890123}'
		assert(j.encode(j.decode(big)) == '{"m":-12345678901234567890123,"n":9007199254740993}')
		assert(j.encode(1e15) == "1000000000000000" and j.encode(0.1) == "0.1" and j.encode(-0.0) == "0")
		local deep = ("["):rep(128) .. ("]"):rep(128)
		assert(j.encode(j.decode(deep)) == deep)
		assert(j.encode_pretty({a = {1}}) == '{\n  "a": [\n    1\n  ]\n}')
		j.write_file("v.json", {a = {1, j.null}})
		assert(j.encode(j.read_file("v.json")) == '{"a":[1,null]}')
		assert(std.fs.read("v.json"):sub(-1) == "\n")
		assert(j.decode('"\\ud834\\udd1e"') == "𝄞")
	`)
	for src, want := range map[string]string{
		`std.json.decode("{")`:                                          "std.json: decode: validation",
		`std.json.decode("")`:                                           "validation",
		`std.json.decode('{"a":"\255"}')`:                               "validation",
		`std.json.decode('{"a":1,}')`:                                   "validation",
		`std.json.decode("1", {nul = "keep"})`:                          "nul",
		`std.json.decode("1", {null = "drop"})`:                         "opts.null",
		`std.json.decode(("["):rep(129) .. ("]"):rep(129))`:             "128",
		`local d = {} for i = 1, 129 do d = {d} end std.json.encode(d)`: "128",
		`local t = {} t.self = t std.json.encode(t)`:                    "",
		`std.json.encode({a = {0/0}})`:                                  "a",
		`std.json.encode({f = print})`:                                  "f",
		`std.json.encode("\255")`:                                       "UTF-8",
	} {
		w.fails(src, want)
	}
	// A table that crosses to a tool must not lose a part.
	w.fails(`tool.register("x", {}, function(i) return i end) tool.call("x", {1, x = 2})`, "input")
}

func TestPathsAreText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.file("f.tar.gz", "")
	w.link("f.tar.gz", "l")
	w.passes(`
		local p = std.path
		local function eq(got, want) assert(got == want, tostring(got) .. " is not " .. tostring(want)) end
		eq(p.join("a", "b", "../c"), "a/c") eq(p.join("a", "/b"), "/b") eq(p.join(), "")
		eq(p.parent("a/b"), "a") eq(p.parent("a/b/"), "a") eq(p.parent("/"), nil) eq(p.parent(""), nil) eq(p.parent("/a"), "/") eq(p.dirname("x/y"), "x")
		eq(p.filename("a/b.c"), "b.c") eq(p.filename("/"), nil) eq(p.filename(".."), nil) eq(p.filename("a/"), "a") eq(p.basename("x/y"), "y")
		eq(p.stem("a/b.tar.gz"), "b.tar") eq(p.stem(".bashrc"), ".bashrc") eq(p.stem("/"), nil)
		eq(p.ext("a/b.tar.gz"), "gz") eq(p.ext(".bashrc"), nil) eq(p.ext("b."), nil) eq(p.ext("b"), nil)
		eq(p.is_absolute("/a"), true) eq(p.is_absolute("a"), false)
		eq(p.absolute("l"), std.env.project_root() .. "/f.tar.gz")
	`)
	w.fails(`std.path.absolute("none")`, "std.path: absolute: not_found: none does not exist")
	w.fails(`std.path.absolute("l/below")`, "not_found")
	w.fails(`std.path.join(1, {})`, "part")
}

func TestEnvironmentAndClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local e = std.env
		assert(e.get("A") == "1" and e.get("NONE") == nil and e.get_or("NONE", 7) == 7 and e.get_or("A", 7) == "1")
		e.set("B", "2") assert(e.get("B") == "2" and os.getenv("B") == "2")
		assert(e.home() == "/home/x" and e.agent_id() == "agent-1" and e.project_root():sub(1, 1) == "/")
		assert(sh.exec("echo \"[$B]\"").stdout == "[]\n") -- the overlay is this run's alone
		local a = std.time.now() std.time.sleep(0.02) local b = std.time.now()
		assert(b - a >= 0.02 and b - a < 5 and math.abs(std.time.millis() / 1000 - b) < 5)
		local secs, x, y = std.time.measure(function() std.time.sleep(0.02) return "x", {1} end)
		assert(secs >= 0.02 and x == "x" and y[1] == 1)
		log.info("hello", 1, {}) log.debug("d") log.warn("w") log.error("e")
	`)
	if got := strings.Join(w.logs, "|"); got != "info: hello|debug: d|warn: w|error: e" {
		t.Errorf("logged %s", got)
	}
	for src, want := range map[string]string{
		`std.env.set("", "x")`: "key", `std.env.set("a=b", "x")`: "key", `std.env.set("A", nil)`: "value", `std.time.sleep(-1)`: "0 to 86400",
		`std.time.sleep(86401)`: "0 to 86400", `std.time.sleep(1/0)`: "seconds", `std.time.measure(function() error("boom") end)`: "boom",
		`log.info({})`: "log: info: validation: msg: got object, want string",
	} {
		w.fails(src, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if _, err := w.runIn(ctx, `std.time.sleep(60)`); err == nil || time.Since(start) > 2*time.Second {
		t.Errorf("a sleep outlived its run: %v", err)
	}
}

func TestDigestsAndRandomness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local c = std.crypto
		assert(c.sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
		assert(c.hmac_sha256("key", "The quick brown fox jumps over the lazy dog") == "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8")
		assert(#c.random_hex(8) == 16 and c.random_hex(8) ~= c.random_hex(8))
		assert(c.uuid():match("^%x+%-%x+%-4%x+%-[89ab]%x+%-%x+$") and #c.uuid() == 36)
		assert(c.base64_encode("\0\255x") == "AP94" and c.base64_decode("AP94") == "\0\255x" and c.base64_encode("") == "")
	`)
	for src, want := range map[string]string{
		`std.crypto.random_hex(0)`: "bytes must be 1", `std.crypto.random_hex(2^30)`: "bytes must be 1", `std.crypto.random_hex(1.5)`: "bytes",
		`std.crypto.base64_decode("*")`: "not base64",
	} {
		w.fails(src, want)
	}
}

func TestTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		tool.register("b", {description = "adds", input_schema = {type = "object", required = {"a"}, properties = {a = {type = "integer"}}}},
			function(input) std.time.sleep(0.01) return {sum = input.a + 1, none = std.json.null, list = std.json.array()} end)
		tool.register("a", {}, function() return "old" end)
		tool.register("a", {description = "text"}, function(i) return "new" end, {group = "g"})
		tool.register("raises", {}, function() error("boom " .. "` + canary + `", 0) end)
		tool.register("table", {}, function() error({code = 7}) end)
		tool.register("slow", {timeout = 0.05}, function() std.time.sleep(60) end)
		tool.register("spins", {timeout = 0.05}, function() while true do end end)
		tool.register("bytes", {}, function() return "a\255b\0c" end)
		tool.register("nested", {}, function() return tool.call("b", {a = 41}).sum end)
		assert(table.concat(tool.list(), " ") == "a b bytes nested raises slow spins table")
		local s = tool.schema()
		assert(s[1].name == "a" and s[1].group == "g" and s[1].description == "text" and s[1].input_schema.type == "object")
		assert(s[2].input_schema.required[1] == "a" and s[2].group == nil)
		local r = tool.call("b", {a = 1})
		assert(r.sum == 2 and std.json.encode(r) == '{"list":[],"none":null,"sum":2}')
		assert(tool.call("a") == "new" and tool.call("nested") == 42 and tool.call("bytes") == "a\255b\0c")
		local function raises(want, ...)
			local ok, err = pcall(tool.call, ...)
			assert(not ok and tostring(err):find(want, 1, true), tostring(err))
		end
		raises("not_found: tool not found: none", "none")
		raises("missing property 'a'", "b", {})
		raises("$.a: got string", "b", {a = "x"})
		raises("boom [redacted:KEY]", "raises")
		raises("tool: call: ", "table")
		raises("timeout: tool 'slow' raised: the tool took longer than 50ms", "slow")
		raises("timeout: tool 'spins'", "spins")
	`)
	for src, want := range map[string]string{
		`tool.register("", {}, print)`:                    "name is empty",
		`tool.register("x", {timeout = -1}, print)`:       "spec.timeout",
		`tool.register("x", {timeout = 0}, print)`:        "spec.timeout",
		`tool.register("x", {capabilities = {1}}, print)`: "spec.capabilities[1]",
		`tool.register("x", {inputs = {}}, print)`:        "inputs",
		`tool.register("x", {description = 1}, print)`:    "spec.description",
		`tool.call("x", "y")`:                             "input",
	} {
		w.fails(src, want)
	}
}

func TestDeferringEndsTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.run(`pcall(job.defer, "the database is not there") std.fs.write("after", "x")`)
	var exit *vm.Exit
	if !errors.As(err, &exit) || exit.Code != 75 || exit.Deferred != "the database is not there" {
		t.Errorf("got %v", err)
	}
	w.passes(`assert(not std.fs.exists("after"))`)
	w.fails(`job.defer("")`, "say what is missing")
}
