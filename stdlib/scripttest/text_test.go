package scripttest

import "testing"

func TestTextIsShaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local t, eq = std.text, function(a, b) if a ~= b then error(std.json.encode({a, b}), 2) end end
		eq(t.dedent("    a\n      b\n\n   \n    c"), "a\n  b\n\n\nc")
		eq(t.dedent("\ta\n\t\tb"), "a\n\tb") eq(t.dedent("\ta\n  b"), "\ta\n  b") eq(t.dedent(""), "") eq(t.dedent("  a\r\n\r\n  b"), "a\r\n\r\nb")
		eq(t.wrap("one two three", 7), "one two\nthree") eq(t.wrap("世界世界", 4), "世界\n世界") eq(t.wrap("abcdef", 3), "abc\ndef")
		eq(t.truncate_utf8("aé世", 2), "a") eq(t.truncate_utf8("aé世", 3), "aé") eq(t.truncate_utf8("aé", 99), "aé") eq(t.truncate_utf8("é", 1), "")
		eq(t.diff("a\nb\nc\n", "a\nx\nc\n", {from = "one", to = "two"}), "--- one\n+++ two\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n")
		eq(t.diff("same\n", "same\n"), "")
		assert(t.diff("a", "b"):find("No newline at end", 1, true))
		eq(select(2, t.diff(("l\n"):rep(20), ("l\n"):rep(10) .. "x\n" .. ("l\n"):rep(10), {context = 0}):gsub("\n", "")), 4)
		local m = t.fuzzy("rdf", {"read_file", "write_file", "rdf"})
		assert(#m == 2 and m[1].text == "rdf" and m[1].index == 3 and m[2].text == "read_file" and #m[2].at == 3 and m[2].at[1] == 1)
		assert(#t.fuzzy("r", {"r", "rr", "rrr"}, {limit = 2}) == 2 and #t.fuzzy("x", {}) == 0)`)
	for src, want := range map[string]string{
		`std.text.wrap("a", 0)`:                    "width must be",
		`std.text.truncate_utf8("a", -1)`:          "negative",
		`std.text.diff("a", "b", {context = -1})`:  "opts.context",
		`std.text.diff("a", "b", {ctx = 1})`:       "ctx",
		`std.text.fuzzy("a", {1})`:                 "candidates[1]",
		`std.text.diff(("a"):rep(9e6), "b")`:       "std.text: diff: limit",
		`std.text.fuzzy("a", {"a"}, {limit = -1})`: "opts.limit",
	} {
		w.fails(src, want)
	}
}

func TestStringsByCharacters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local s, eq = std.string, function(a, b) if a ~= b then error(std.json.encode({a, b}), 2) end end
		eq(s.trim("  a b\n"), "a b") eq(s.trim_start("  a "), "a ") eq(s.trim_end("  a "), "  a")
		eq(table.concat(s.split("a,b,,c", ","), "|"), "a|b||c") eq(table.concat(s.split("a.b.c", ".", 2), "|"), "a|b.c") eq(#s.split("", ","), 1)
		assert(s.starts_with("a.b", "a.") and not s.starts_with("ab", "a.") and s.ends_with("ab", "b") and s.contains("a%b", "%") and s.contains("a", ""))
		eq(s.replace("a.a.a", ".", "%1"), "a%1a.a") eq(s.replace_all("a.a.a", ".", ""), "aaa")
		eq(s.pad_start("7", 3, "0"), "007") eq(s.pad_end("é", 3), "é  ") eq(s.pad_start("abc", 2), "abc") eq(s.pad_start("x", 6, "ab"), "ababax")
		eq(s.truncate("abcdef", 5), "ab...") eq(s.truncate("abcde", 5), "abcde") eq(s.truncate("世界世界", 3, "…"), "世界…") eq(s.truncate("abc", 2), "..") eq(s.truncate("abc", 2, ""), "ab")
		eq(s.upper("aé"), "AÉ") eq(s.lower("AÉ"), "aé") eq(table.concat(s.chars("aé世"), "|"), "a|é|世") eq(s.char_count("aé世"), 3) eq(s.reverse("aé世"), "世éa")
		eq(std.json.encode(s.chars("")), "[]")`)
	for src, want := range map[string]string{
		`std.string.split("a", "")`:                                   "the separator is empty",
		`std.string.split("a", ",", 0)`:                               "limit must be",
		`std.string.replace("a", "", "b")`:                            "old is empty",
		`std.string.pad_start("a", 1e9)`:                              "std.string: pad_start: limit",
		`std.string.pad_start("a", 5, "")`:                            "fill is empty",
		`std.string.replace_all(("a"):rep(1e6), "a", ("b"):rep(1e3))`: "limit",
		`std.string.upper(1)`:                                         "text: got integer, want string",
		`std.string.truncate("abc", -1)`:                              "negative",
	} {
		w.fails(src, want)
	}
}

func TestFieldsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local schema = {
			name = {type = "string", required = true, min_len = 2, max_len = 4}, age = {type = "integer", min = 0, max = 9},
			kind = {one_of = {"a", 1}}, tags = {type = "list", max_len = 2}, extra = "table",
		}
		local function check(data, ...)
			local ok, messages = std.validate.check(data, schema)
			local want = {...}
			if ok ~= (#want == 0) or std.json.encode(messages or {}) ~= std.json.encode(#want > 0 and want or {}) then error(std.json.encode({ok, messages}), 2) end
		end
		check({name = "ab", age = 3, kind = "a", tags = {}, extra = {x = 1}, other = print and 1})
		check({name = "ab", kind = 1})
		check({}, "name is required")
		check({name = "é"}, "name has length 1, less than 2")
		check({name = "abcde", age = 3.5}, "age is number, not integer", "name has length 5, more than 4")
		check({name = "ab", age = -1, kind = "b", tags = {1, 2, 3}}, "age is -1, less than 0", "kind is none of a, 1", "tags has length 3, more than 2")
		check(7, "data is integer, not a table with fields")`)
	for src, want := range map[string]string{
		`std.validate.check({}, {a = {typ = "string"}})`: `unknown key "typ"`,
		`std.validate.check({}, {a = "strin"})`:          "schema.a.type is strin",
		`std.validate.check({}, {a = {min = "1"}})`:      "schema.a.min",
		`std.validate.check({}, {a = {one_of = {}}})`:    "schema.a.one_of",
		`std.validate.check({}, {a = 1})`:                "schema.a",
	} {
		w.fails(src, want)
	}
}

func TestRegularExpressions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local r, j = std.re, std.json.encode
		local function eq(a, b) if a ~= b then error(tostring(a) .. " is not " .. tostring(b), 2) end end
		local m = r.match("(?P<key>\\w+)=(\\d+)?(x)?", "é a=12;")
		eq(m.text, "a=12") eq(("é a=12;"):sub(m.start, m.stop), "a=12") eq(j(m.groups), '["a","12",false]') eq(m.named.key, "a")
		eq(r.match("z", "a"), nil)
		local all = r.find_all("[a-z]+", "ab cd ef", {limit = 2})
		eq(#all, 2) eq(all[2].text, "cd") eq(j(r.find_all("x", "")), "[]")
		eq(r.replace("(a)(b)", "ab ab", "$2${1}!"), "ba! ba!") eq(r.replace("a", "aaa", "$$", {limit = 2}), "$$a") eq(r.replace("", "ab", "-"), "-a-b-")
		eq(j(r.split("\\s*,\\s*", "a , b,c")), '["a","b","c"]') eq(j(r.split(",", "a,b,c", {limit = 2})), '["a","b,c"]')
		eq(r.match("(?i)GRÜN", "grün").text, "grün")
		-- What takes a backtracking matcher for ever is linear here.
		eq(r.match("^(a+)+$", ("a"):rep(50000) .. "!"), nil)`)
	for src, want := range map[string]string{
		`std.re.match("(", "a")`:                             "std.re: match: validation: missing closing )",
		`std.re.match("(?=a)", "a")`:                         "no look-around",
		`std.re.find_all("a", "a", {limit = 0})`:             "opts.limit",
		`std.re.replace("", ("a"):rep(1e6), ("b"):rep(1e3))`: "limit",
		`std.re.match(("a"):rep(1e5), "a")`:                  "limit",
		`std.re.match("a{1000}{1000}", "a")`:                 "validation",
	} {
		w.fails(src, want)
	}
}

func TestYAMLAndTOML(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local y, j = std.yaml, std.json.encode
		local function eq(a, b) if a ~= b then error(tostring(a) .. " is not " .. tostring(b), 2) end end
		eq(j(y.decode("a: 1\nb: [x, null, 2.5, true]\nc: {}\nd: []\ne: ~\nf: 18446744073709551615\n")), '{"a":1,"b":["x",null,2.5,true],"c":{},"d":[],"f":18446744073709551615}')
		eq(y.decode("e: ~", {null = "keep"}).e, std.json.null)
		eq(j(y.decode("1: a\ntrue: b\n2026-11-30: c\n")), '{"1":"a","2026-11-30":"c","true":"b"}')
		eq(j(y.decode("d: 2026-11-30\nt: 2026-11-30T10:00:00Z\n")), '{"d":"2026-11-30","t":"2026-11-30T10:00:00Z"}')
		eq(j(y.decode("base: &b {x: 1}\nc: {<<: *b, y: 2}\n").c), '{"x":1,"y":2}')
		eq(y.decode(""), nil) eq(y.decode("|\n  a\n  b\n"), "a\nb\n")
		local v = { name = "x: y", list = { 1, "2", true }, empty = std.json.array(), text = "a\nb\n", no = "no", n = std.json.decode("9007199254740993") }
		eq(j(y.decode(y.encode(v))), j(v))
		eq(y.encode({ b = 1, a = { "x" } }), "a:\n  - x\nb: 1\n")
		local t = std.toml
		eq(j(t.decode('a = 1\n[b]\nc = [1, 2]\nd = 1979-05-27\ne = 1979-05-27T07:32:00Z\n[[f]]\nx = 1\n')),
			'{"a":1,"b":{"c":[1,2],"d":"1979-05-27","e":"1979-05-27T07:32:00Z"},"f":[{"x":1}]}')
		eq(j(t.decode(t.encode({ a = 1, b = { c = { "x", "y" }, d = 1.5 }, e = true }))), '{"a":1,"b":{"c":["x","y"],"d":1.5},"e":true}')
		eq(j(t.decode("")), "{}")`)
	for src, want := range map[string]string{
		`std.yaml.decode("a: [")`:                           "std.yaml: decode: validation: not YAML",
		`std.yaml.decode("a: 1\na: 2")`:                     "validation",
		`std.yaml.decode("a: 1\n---\nb: 2")`:                "more than one document",
		`std.yaml.decode("a: .nan")`:                        "$.a is NaN",
		`std.yaml.decode("? [a]\n: 1")`:                     "validation",
		`std.yaml.decode("1: a\n'1': b")`:                   "already defined",
		`std.yaml.decode(("["):rep(200) .. ("]"):rep(200))`: "validation",
		`std.yaml.decode("a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f]")`: "validation",
		`std.yaml.encode({f = print})`:                                   "$.f is a function",
		`std.toml.decode("a = ")`:                                        "not TOML: line 1",
		`std.toml.decode("a = nan")`:                                     "$.a is NaN",
		`std.toml.encode({a = {std.json.null}})`:                         "$.a[1] is null",
		`std.toml.encode({a = std.json.decode("18446744073709551615")})`: "beyond the integers",
		`std.toml.encode({1, 2})`:                                        "value",
	} {
		w.fails(src, want)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.passes(`
		local function eq(a, b) if a ~= b then error(tostring(a) .. " is not " .. tostring(b), 2) end end
		local r = std.tmpl.render
		assert(r('{{define "tree"}}{{.n}}{{range .kids}}({{template "tree" .}}){{end}}{{end}}{{range 200}}{{template "tree" $}}{{break}}{{end}}',
			{n = 1, kids = {{n = 2, kids = {}}, {n = 3, kids = {}}}}) == "1(2)(3)")
		assert(#r('{{define "a"}}x{{end}}{{range 500}}{{template "a"}}{{end}}') == 500)
		eq(r("Hello {{.name}}!{{range $i, $f := .files}}\n{{$i}} {{$f.path | upper}}{{end}}", { name = "<you>", files = { { path = "a" }, { path = "b" } } }), "Hello <you>!\n0 A\n1 B")
		eq(r("{{if .a}}yes{{else}}no{{end}} {{.n}} {{.f}} {{json .o}}", { a = false, n = 3, f = 1.5, o = { x = { 1 } } }), 'no 3 1.5 {"x":[1]}')
		eq(r("{{.nothing}}|{{default \"d\" .nothing}}", {}, { missing = "empty" }), "|d")
		eq(r("{{.a}}", { a = std.json.null }), "") eq(r("plain"), "plain") eq(r("{{.}}", "text"), "text")
		eq(r('{{define "row"}}[{{.}}]{{end}}{{range .}}{{template "row" .}}{{end}}', { "a", "b" }), "[a][b]")
		eq(r('{{join ", " .l}}{{indent 2 .t}}', { l = { "a", 2 }, t = "x\ny" }), "a, 2  x\n  y")
		eq(r("{{range 3}}{{.}}{{end}}"), "012") eq(r("{{len .l}} {{index .l 1}}", { l = { 4, 5 } }), "2 5")`)
	for src, want := range map[string]string{
		`std.tmpl.render("{{.a}}", {b = 1})`:                                       `no entry for key "a"`,
		`std.tmpl.render("{{")`:                                                    "std.tmpl: render: validation",
		`std.tmpl.render("{{nothing}}")`:                                           `function "nothing" not defined`,
		`std.tmpl.render("{{range 100000000000}}{{end}}")`:                         "limit: the template took more than",
		`std.tmpl.render('{{define "a"}}{{template "a"}}{{end}}{{template "a"}}')`: "limit: more than 100 templates",
		`std.tmpl.render('{{define "a"}}{{range .}}{{template "a" $}}{{end}}{{end}}{{template "a" .}}', {1, 2})`: "limit: more than 100 templates",
		`std.tmpl.render(("{{range .}}"):rep(40000) .. "{{.x.y}}" .. ("{{end}}"):rep(40000), {1})`:               "limit: the template nests",
		`std.tmpl.render('{{$x := "x"}}{{range 60}}{{$x = print $x $x}}{{end}}')`:                                "limit",
		`std.tmpl.render('{{range 1000}}{{range 1000}}{{$.t}}{{end}}{{end}}', {t = ("x"):rep(1e4)})`:             "limit",
		`std.tmpl.render("x", {}, {missing = "zero"})`:                                                           "opts.missing",
	} {
		w.fails(src, want)
	}
}
