package tool_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/kernel/logjson"
	"ashlar/kernel/tool"
)

func TestSchemasOfEveryDraft(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type":"object","required":["from_file"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const (
		fits  = ""
		warns = "cannot be used"
	)
	for name, c := range map[string]struct {
		schema, args string
		problem      string // "" fits
		warning      string
	}{
		"missing":             {`{"type":"object","required":["a"]}`, `{}`, "$: missing property 'a'", ""},
		"wrong type":          {`{"properties":{"a":{"type":"integer"}}}`, `{"a":"x"}`, "$.a: got string, want integer", ""},
		"deep":                {`{"properties":{"l":{"items":{"properties":{"n":{"type":"number"}}}}}}`, `{"l":[{"n":1},{"n":true}]}`, "$.l.1.n: got boolean, want number", ""},
		"not among":           {`{"properties":{"a":{"enum":["x","y"]}}}`, `{"a":"z"}`, "$.a: value must be one of 'x', 'y'", ""},
		"an integer that is":  {`{"properties":{"a":{"type":"integer"}}}`, `{"a":3.0}`, fits, ""},
		"2^53 and one":        {`{"properties":{"a":{"const":9007199254740993}}}`, `{"a":9007199254740993}`, fits, ""},
		"draft 4 exclusive":   {`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":1}`, "$.a:", ""},
		"draft 7 tuple":       {`{"properties":{"a":{"items":[{"type":"string"},{"type":"number"}]}}}`, `{"a":["x","y"]}`, "$.a.1: got string, want number", ""},
		"draft 7 definitions": {`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/d"}}}`, `{"a":1}`, "$.a: got number, want string", ""},
		"2020 $defs":          {`{"$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`, `{"a":1}`, "$.a: got number, want string", ""},
		"top-level oneOf":     {`{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"c":1}`, "missing property", ""},
		"unknown keywords":    {`{"x-order":1,"properties":{"a":{"format":"int32","example":3}}}`, `{"a":"x"}`, fits, ""},
		"no properties":       {`{"type":"object"}`, `{"a":"x"}`, fits, ""},
		"a file":              {`{"$ref":"file://` + secret + `"}`, `{"a":"x"}`, fits, warns},
		"a URL":               {`{"$ref":"http://127.0.0.1:9/schema"}`, `{"a":"x"}`, fits, warns},
		"a strange $schema":   {`{"$schema":"https://example.com/mine","type":"object"}`, `{}`, fits, warns},
		"itself":              {`{"$ref":"#"}`, `{"a":"x"}`, fits, warns},
		"itself by a detour":  {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`, `{"a":"x"}`, fits, warns},
		"a tree, which ends":  {`{"properties":{"left":{"$ref":"#"},"v":{"type":"number"}}}`, `{"left":{"left":{"v":"x"}}}`, "$.left.left.v: got string, want number", ""},
		"nonsense":            {`{"type":"banana","properties":17}`, `{"a":"x"}`, fits, warns},
		"look-ahead":          {`{"required":["a"],"properties":{"a":{"type":"string","pattern":"^(?=x).*$"}}}`, `{}`, "$: missing property 'a'", "is not checked"},
		"look-ahead, fits":    {`{"properties":{"a":{"pattern":"(?!x)"}}}`, `{"a":"x"}`, fits, "is not checked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, err := logjson.Object([]byte(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			args, err := logjson.Object([]byte(c.args))
			if err != nil {
				t.Fatal(err)
			}
			b, r, w := newBus(t, tool.Contract{Input: schema}, gives("ran"))
			for range 3 {
				res := dispatch(t, b, r, args)
				text, _ := res.Model.(string)
				if c.problem == "" && text != "ran" || c.problem != "" && (res.Kind != "validation" || !strings.Contains(text, c.problem)) {
					t.Errorf("got %q, want %q", text, c.problem)
				}
			}
			said := w.list()
			if c.warning == "" && len(said) != 0 || c.warning != "" && (len(said) != 1 || !strings.Contains(said[0], c.warning)) {
				t.Errorf("warned %q, want once %q", said, c.warning)
			}
		})
	}
}

func TestAProblemListIsBounded(t *testing.T) {
	t.Parallel()
	required := []any{}
	props := map[string]any{}
	for i := range 40 {
		name := "p" + string(rune('a'+i%26)) + json.Number("12").String() + strings.Repeat("x", i)
		required = append(required, name)
		props[name] = map[string]any{"type": "string"}
	}
	args := map[string]any{}
	for _, name := range required {
		args[name.(string)] = int64(1)
	}
	b, r, _ := newBus(t, tool.Contract{Input: map[string]any{"properties": props}}, gives("ran"))
	text := dispatch(t, b, r, args).Model.(string)
	if !strings.HasSuffix(text, "; and 35 more") {
		t.Errorf("got %s", text)
	}
}

func TestASchemaThatIsNoJSONIsSaidOnce(t *testing.T) {
	t.Parallel()
	b, r, w := newBus(t, tool.Contract{Input: map[string]any{"x": nan()}}, gives("ran"))
	for range 2 {
		if res := dispatch(t, b, r, nil); !res.OK {
			t.Errorf("%+v", res)
		}
	}
	if len(w.list()) != 1 {
		t.Errorf("warned %q", w.list())
	}
}
