package lua

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/rand/v2"

	glua "github.com/yuin/gopher-lua"

	"ashlar/vm"
)

// openMath takes gopher-lua's math; random numbers come from the run's own source.
func (e *Engine) openMath() {
	L := e.proto
	glua.OpenMath(L)
	L.SetTop(0)
	t := e.table("math", map[string]glua.LGFunction{
		"random":     e.mathRandom,
		"randomseed": e.mathRandomSeed,
		"tointeger":  mathToInteger,
		"type":       mathType,
		"log":        mathLog,
		"floor":      rounding(math.Floor),
		"ceil":       rounding(math.Ceil),
	})
	t.RawSetString("huge", glua.LNumber(math.Inf(1)))
	t.RawSetString("maxinteger", glua.LNumber(maxExact))
	t.RawSetString("mininteger", glua.LNumber(-maxExact))
}

func rounding(f func(float64) float64) glua.LGFunction {
	return func(L *glua.LState) int {
		L.Push(glua.LNumber(f(float64(L.CheckNumber(1)))))
		return 1
	}
}

// mathType tells integers from other numbers as far as one number type can.
func mathType(L *glua.LState) int {
	switch n := L.CheckAny(1).(type) {
	case glua.LNumber:
		if isIntegral(float64(n)) {
			return pushString(L, "integer")
		}
		return pushString(L, "float")
	case *glua.LUserData:
		if _, ok := n.Value.(exact); ok {
			return pushString(L, "integer")
		}
	}
	L.Push(glua.LNil)
	return 1
}

func isIntegral(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<63 }

func mathToInteger(L *glua.LState) int {
	if n, ok := toNumber(L.CheckAny(1)); ok && isIntegral(n) {
		L.Push(glua.LNumber(n))
	} else {
		L.Push(glua.LNil)
	}
	return 1
}

// mathLog is math.log(x, base).
func mathLog(L *glua.LState) int {
	x := float64(L.CheckNumber(1))
	if L.Get(2) == glua.LNil {
		L.Push(glua.LNumber(math.Log(x)))
		return 1
	}
	switch base := float64(L.CheckNumber(2)); base {
	case 2:
		L.Push(glua.LNumber(math.Log2(x)))
	case 10:
		L.Push(glua.LNumber(math.Log10(x)))
	default:
		L.Push(glua.LNumber(math.Log(x) / math.Log(base)))
	}
	return 1
}

// randomSource reads the seed of math.random. It is a syscall, so a replay has the
// same seed and so the same numbers, without an entry for each.
func randomSource() *vm.Function {
	return &vm.Function{
		Name:    "seed",
		Doc:     "The seed of math.random.",
		Effect:  vm.Read,
		Results: []vm.Param{{Name: "seed", Type: vm.Integer}},
		Impl: func(_ context.Context, c *vm.Call) ([]vm.Value, error) {
			var b [8]byte
			if _, err := io.ReadFull(c.Host.Rand, b[:]); err != nil {
				return nil, err
			}
			return []vm.Value{int64(binary.LittleEndian.Uint64(b[:]))}, nil
		},
	}
}

func (e *Engine) random(s *strand) *rand.Rand {
	if e.lib.random == nil {
		out, err := e.dispatch(s, "math", randomSource(), nil, nil)
		if err != nil {
			s.raise(err)
		}
		seed, _ := out[0].(int64)
		e.lib.random = newRandom(uint64(seed))
	}
	return e.lib.random
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// mathRandom is math.random: [0,1), 1..n, or m..n.
func (e *Engine) mathRandom(L *glua.LState) int {
	r := e.random(strandOf(L))
	if L.GetTop() == 0 {
		L.Push(glua.LNumber(r.Float64()))
		return 1
	}
	low, high := 1.0, math.Floor(float64(L.CheckNumber(1)))
	if L.GetTop() > 1 {
		low, high = math.Floor(float64(L.CheckNumber(1))), math.Floor(float64(L.CheckNumber(2)))
	}
	if !(low <= high) || high-low >= maxExact {
		L.ArgError(L.GetTop(), "interval is empty or too wide")
	}
	L.Push(glua.LNumber(low + float64(r.Int64N(int64(high-low)+1))))
	return 1
}

func (e *Engine) mathRandomSeed(L *glua.LState) int {
	if L.GetTop() == 0 {
		e.lib.random = nil
		return 0
	}
	e.lib.random = newRandom(math.Float64bits(float64(L.CheckNumber(1))))
	return 0
}
