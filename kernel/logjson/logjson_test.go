package logjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/quick"

	"ashlar/kernel"
	"ashlar/kernel/logjson"
)

func TestEqualValuesHaveEqualBytes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   any
		want string
	}{
		{"nil", nil, `null`},
		{"negative zero", math.Copysign(0, -1), `0`},
		{"negative zero number", json.Number("-0"), `0`},
		{"integral float", 3.0, `3`},
		{"largest exact float", float64(1<<53 - 1), `9007199254740991`},
		{"float that only looks integral", float64(1 << 60), `1.152921504606847e+18`},
		{"small float", 1e-9, `1e-9`},
		{"shortest", 0.1, `0.1`},
		{"huge", 1e300, `1e+300`},
		{"min int", int64(math.MinInt64), `-9223372036854775808`},
		{"beyond int64", json.Number("18446744073709551616"), `18446744073709551616`},
		{"a number that fits", json.Number("12"), `12`},
		{"keys by code point", map[string]any{"b": int64(1), "a": int64(2), "B": int64(3), "é": int64(4), "\U0001F600": int64(5), "\uFFFD": int64(6)},
			`{"B":3,"a":2,"b":1,"é":4,"` + "\uFFFD" + `":6,"😀":5}`},
		{"no HTML escaping", "<a & b>\u2028", "\"<a & b>\u2028\""},
		{"controls", "\x00\x01\b\t\n\f\r\x1f\"\\/", `"\u0000\u0001\b\t\n\f\r\u001f\"\\/"`},
		{"nil list and map", []any{[]any(nil), map[string]any(nil)}, `[[],{}]`},
		{"raw", map[string]any{"a": logjson.Raw(`[1]`)}, `{"a":[1]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := logjson.Marshal(c.in)
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestWhatHasNoLogJSONNamesItsPath(t *testing.T) {
	t.Parallel()
	cycle := map[string]any{}
	cycle["a"] = cycle
	wide := []any{nil, nil}
	wide[0], wide[1] = wide, wide
	for _, c := range []struct {
		name, want string
		in         any
	}{
		{"nan", "$.a[1].b: NaN", map[string]any{"a": []any{nil, map[string]any{"b": math.NaN()}}}},
		{"inf", "$[0]: an infinity", []any{math.Inf(-1)}},
		{"utf8", `$["a b"]: invalid UTF-8 at byte 1`, map[string]any{"a b": "x\xff"}},
		{"key", `$["\xff"]: invalid UTF-8`, map[string]any{"\xff": nil}},
		{"int", "$.n: a int is no value", map[string]any{"n": 1}},
		{"number", `$: "1x" is no number`, json.Number("1x")},
		{"cycle", "nested deeper than 128", cycle},
		{"wide cycle", "nested deeper than 128", wide},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dst := []byte("kept")
			out, err := logjson.Append(dst, c.in)
			if !errors.Is(err, kernel.Validation) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want %s", err, c.want)
			}
			if string(out) != "kept" {
				t.Errorf("destination is %q after a failure", out)
			}
		})
	}
}

func TestDepthIsBoundedAlikeInBothDirections(t *testing.T) {
	t.Parallel()
	nest := func(n int) any {
		var v any = "x"
		for range n {
			v = []any{v}
		}
		return v
	}
	if _, err := logjson.Marshal(nest(logjson.MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := logjson.Marshal(nest(logjson.MaxDepth + 1)); !errors.Is(err, kernel.Validation) {
		t.Errorf("encoding one level too many: %v", err)
	}
	text := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := logjson.Unmarshal(text(logjson.MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := logjson.Unmarshal(text(logjson.MaxDepth + 1)); !errors.Is(err, kernel.Validation) {
		t.Errorf("decoding one level too many: %v", err)
	}
	if _, err := logjson.Unmarshal(text(10_000_000)); !errors.Is(err, kernel.Validation) {
		t.Errorf("decoding ten million levels: %v", err)
	}
}

func TestUnmarshalRefusesWhatTheLogCannotSay(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, ` `, `nul`, `tru`, `1 2`, `{} x`, `{"a":1,"a":2}`, `{"a" 1}`, `{a:1}`, `{"a":1,}`, `[1,]`, `[1`, `{"a":1`,
		`"a`, `"\q"`, `"\u12"`, `"\u12g4"`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, "\"\xff\"", "\"\n\"", "\"\x01\"",
		`01`, `-`, `1.`, `.5`, `1e`, `+1`, `1e999`, `NaN`, "\x00", "\uFEFF{}", `{"a":1}}`,
	} {
		if v, err := logjson.Unmarshal([]byte(in)); !errors.Is(err, kernel.Validation) {
			t.Errorf("%q gave %v, %v", in, v, err)
		}
	}
	_, err := logjson.Unmarshal([]byte(`{"a":[1,{"b":tru}]}`))
	if err == nil || !strings.Contains(err.Error(), "$.a[1].b") || !strings.Contains(err.Error(), "byte 13") {
		t.Errorf("path and byte are missing: %v", err)
	}
}

func TestNumbersKeepTheirKind(t *testing.T) {
	t.Parallel()
	got, err := logjson.Unmarshal([]byte(" [ 1 , -0, 9223372036854775807, 9223372036854775808, 1.0, 1e2, \"\\u00e9\\ud83d\\ude00\\/\" ] "))
	want := []any{int64(1), int64(0), int64(math.MaxInt64), json.Number("9223372036854775808"), 1.0, 100.0, "é😀/"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, %v", got, err)
	}
}

func TestFloatsSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	if err := quick.Check(func(bits uint64) bool {
		f := math.Float64frombits(bits)
		b, err := logjson.Marshal(f)
		if err != nil {
			return math.IsNaN(f) || math.IsInf(f, 0)
		}
		v, err := logjson.Unmarshal(b)
		switch v := v.(type) {
		case float64:
			return err == nil && v == f
		case int64:
			return err == nil && float64(v) == f && math.Abs(f) < 1<<53
		}
		return false
	}, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}

func TestStringsSurviveARoundTripAndHideControls(t *testing.T) {
	t.Parallel()
	if err := quick.Check(func(s string, raw []byte) bool {
		in := []any{s, strings.ToValidUTF8(string(raw), "?")}
		b, err := logjson.Marshal(in)
		if err != nil {
			return false
		}
		for _, c := range b {
			if c < 0x20 {
				return false
			}
		}
		back, err := logjson.Unmarshal(b)
		return err == nil && reflect.DeepEqual(back, in) && json.Valid(b)
	}, nil); err != nil {
		t.Error(err)
	}
}

// FuzzCanonical holds every accepted text to: encoding is stable, and agrees
// with encoding/json about what is JSON.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{}`, `[1,2.5,"a\u0000b",null,true]`, `{"b":{"a":[-0,1e9,123456789012345678901234567890]}}`, `"\ud83d\ude00"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := logjson.Unmarshal(in)
		if err != nil {
			return
		}
		if !json.Valid(in) {
			t.Fatalf("accepted what is no JSON: %q", in)
		}
		once, err := logjson.Marshal(v)
		if err != nil {
			t.Fatalf("%q was read but not written: %v", in, err)
		}
		back, err := logjson.Unmarshal(once)
		if err != nil {
			t.Fatalf("own output refused: %q: %v", once, err)
		}
		twice, err := logjson.Marshal(back)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not canonical: %q then %q (%v)", once, twice, err)
		}
	})
}

func BenchmarkMarshal400KB(b *testing.B) {
	text := strings.Repeat("func main() {\n\tfmt.Println(\"hello\")\n}\n", 50)
	var msgs []any
	for range 200 {
		msgs = append(msgs, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}})
	}
	out, _ := logjson.Marshal(msgs)
	b.SetBytes(int64(len(out)))
	b.ReportAllocs()
	for b.Loop() {
		out, _ = logjson.Append(out[:0], msgs)
	}
}
