package lua_test

import (
	"fmt"
	"testing"
)

// benchScript runs a script that repeats its work n times.
func benchScript(b *testing.B, format string) {
	host, _ := testHost(b)
	if _, err := run(b.Context(), b, host, fmt.Sprintf(format, b.N)); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		host, _ := testHost(b)
		if _, err := run(b.Context(), b, host, `return 1`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSyscall(b *testing.B) {
	benchScript(b, `local f = host.echo for i = 1, %d do f(i) end`)
}

func BenchmarkWaitingSyscall(b *testing.B) {
	benchScript(b, `local f = host.sleep for i = 1, %d do f(0) end`)
}

func BenchmarkCallback(b *testing.B) {
	benchScript(b, `local f, g = host.call, function(x) return x end for i = 1, %d do f(g) end`)
}

func BenchmarkCoroutineSwitch(b *testing.B) {
	benchScript(b, `local y = coroutine.yield
		local co = coroutine.wrap(function() while true do y() end end)
		for i = 1, %d do co() end`)
}

func BenchmarkCoroutineCreate(b *testing.B) {
	benchScript(b, `local w = coroutine.wrap for i = 1, %d do w(function() end)() end`)
}

func BenchmarkPcall(b *testing.B) {
	benchScript(b, `local p, f = pcall, function() end for i = 1, %d do p(f) end`)
}

func BenchmarkFib25(b *testing.B) {
	benchScript(b, `local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
		for i = 1, %d do fib(25) end`)
}

// BenchmarkMessages carries 400 messages out of the script and in again.
func BenchmarkMessages(b *testing.B) {
	benchScript(b, `local msgs = {}
		for i = 1, 400 do
			msgs[i] = {role = "user", content = {{type = "text", text = ("word "):rep(50)}, {type = "tool_use", id = "t" .. i, input = {path = "a/b", n = i}}}}
		end
		local f = host.echo
		for i = 1, %d do f(msgs) end`)
}
